"""Merges of pairs of open heads in a mirror, to find their conflicts early.

See docs/design/conflicts.md 2.
"""

import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from cachetools import LRUCache

from bot.github.client import RepositoryClient
from bot.github.gitbuild import mirror as mirrors
from bot.github.gitbuild.chain import ID, Clash, Words, Workbench, displayed
from bot.github.gitbuild.command import Command, GitFailed
from bot.github.gitbuild.mirror import Mirror, Unusable
from service.provider.overlaps import OverlapRequest, Overlaps, Pair
from service.provider.values import ListedPullRequest
from service.vocabulary import Sha

HEADS_MAX = 300
PATHS_MAX = 2_000
"""The most paths of one head that are compared."""
HEADS_KEPT = 2_000
TURN_MAX = 25
"""Merges before others get the mirror."""

IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "headgate"), ("EMAIL", "headgate@localhost"), ("DATE", "@0 +0000"))
}
TITLE = b"a landing that is foreseen\n"


@dataclass(slots=True)
class Remembered:
    """Facts of the heads of one mirror that a process has read."""

    paths: LRUCache[Sha, frozenset[bytes]] = field(default_factory=lambda: LRUCache(HEADS_KEPT))
    """The files that a head changes since it left its target branch."""
    landed: LRUCache[tuple[Sha, Sha, object], Sha | None] = field(
        default_factory=lambda: LRUCache(HEADS_KEPT)
    )
    """The commit of a head merged into a tip by some rules, None for a conflict."""


@dataclass(slots=True)
class Overlapping:
    """Compares the heads of one request."""

    mirror: Mirror
    client: RepositoryClient
    request: OverlapRequest
    known: Remembered
    bench: Workbench = field(init=False)

    def __post_init__(self) -> None:
        self.bench = Workbench(self.mirror, self.client, self.request.rules)

    async def compare(self) -> Overlaps:
        """Merge pairs until the limits. Raises Unusable, GitFailed, the provider's errors."""
        began_s = self._cpu_s()
        wanted_heads = [one for one in self.request.heads[:HEADS_MAX] if ID.fullmatch(one.head)]
        heads = await self._fetched(wanted_heads)
        paths = {one.number: await self._paths(one.head) for one in heads}
        wanted = list(self._candidates(heads, paths))
        found: list[Pair] = []

        def is_over() -> bool:
            is_all = len(found) >= min(len(wanted), self.request.pairs_max)
            return is_all or self._cpu_s() - began_s >= self.request.cpu_s_max

        while not is_over():
            async with self.mirror.held():
                for one, other in islice(wanted, len(found), len(found) + TURN_MAX):
                    if is_over():
                        break
                    low, high = sorted((one, other), key=lambda each: each.number)
                    found.append(Pair(low, high, await self._clash(low, high)))
        return Overlaps(tuple(found), len(wanted) - len(found), self._cpu_s() - began_s)

    async def _fetched(self, heads: Sequence[ListedPullRequest]) -> list[ListedPullRequest]:
        """Fetch the tip, and the heads that were not seen yet; return those that are there.

        If one cannot be fetched, the others are compared all the same. If git refuses the objects
        of one, because they are broken or too many, it is not fetched again.
        """
        tip = {mirrors.base_ref(self.request.target): self.request.tip}
        new = [one for one in heads if one.head not in self.known.paths]
        missing: set[Sha] = set()
        parts = [new]
        async with self.mirror.held():
            while parts:
                part = parts.pop()
                refs = {f"pull/{one.number}": one.head for one in part}
                try:
                    await self.mirror.fetch(self.client, tip | refs)
                except (GitFailed, Unusable) as failed:
                    if not part:
                        raise
                    if len(part) == len(new):
                        # Without these it must work: else it is not they.
                        await self.mirror.fetch(self.client, tip)
                    if len(part) > 1:
                        parts += [part[len(part) // 2 :], part[: len(part) // 2]]
                        continue
                    missing.add(part[0].head)
                    if isinstance(failed, GitFailed):
                        self.known.paths[part[0].head] = frozenset()
        return [one for one in heads if one.head not in missing]

    async def _paths(self, head: Sha) -> frozenset[bytes]:
        if head not in self.known.paths:
            async with self.mirror.held():
                base = await self._output("merge-base", self.request.tip, head)
                start = base.decode("ascii").strip() or self.request.tip
                form = ("diff-tree", "-r", "-z", "--name-only", "--no-renames")
                listed = await self._output(*form, start, head)
            paths = [path for path in listed.split(b"\0") if path]
            self.known.paths[head] = frozenset(paths[:PATHS_MAX])
        return self.known.paths[head]

    def _candidates(
        self, heads: Sequence[ListedPullRequest], paths: Mapping[int, frozenset[bytes]]
    ) -> Iterator[tuple[ListedPullRequest, ListedPullRequest]]:
        """Yield the pairs with common files that were not compared, the first heads first."""
        for at, one in enumerate(heads):
            for other in heads[:at]:
                low, high = sorted((one, other), key=lambda each: each.number)
                is_new = (low.head, high.head) not in self.request.compared
                if is_new and not paths[one.number].isdisjoint(paths[other.number]):
                    yield one, other

    async def _clash(self, low: ListedPullRequest, high: ListedPullRequest) -> tuple[str, ...]:
        """Return the files in which one conflicts once the other has landed.

        None if either conflicts with the target branch itself: then that is its trouble. Also none
        if git refuses to merge them: no other pair may suffer from that.
        """
        try:
            return await self._found(self.bench, low, high)
        except GitFailed as failed:
            if not mirrors.is_harmless(failed):
                raise
            return ()

    async def _found(
        self, bench: Workbench, low: ListedPullRequest, high: ListedPullRequest
    ) -> tuple[str, ...]:
        landed = await self._landed(bench, low.head)
        if landed is None:
            return ()
        merged = await bench.merge(landed, high.head)
        if not isinstance(merged, Clash) or await self._landed(bench, high.head) is None:
            return ()
        both = self.known.paths[low.head] & self.known.paths[high.head]
        names = {displayed(path) for path in both}
        return tuple(path for path in merged.paths if path in names) or merged.paths

    async def _landed(self, bench: Workbench, head: Sha) -> Sha | None:
        """Return the commit of a head merged into the tip; None if it conflicts."""
        key = (self.request.tip, head, self.request.rules)
        if key not in self.known.landed:
            tip = self.request.tip
            tree = await bench.merge(tip, head)
            made = None
            if not isinstance(tree, Clash):
                made = (await bench.commit(tree, (tip, head), Words(TITLE, IDENTITY))).sha
            self.known.landed[key] = made
        return self.known.landed[key]

    async def _output(self, *arguments: str) -> bytes:
        return (await self.mirror.run(Command(arguments, expects=(1,)))).text

    def _cpu_s(self) -> float:
        """Return the CPU time of the git commands that have ended, and of what rules united."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime + self.bench.united_s
