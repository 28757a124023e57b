"""Reading a mirror for landings that a merge result takes back, or that have its work already.

See docs/design/undone-work.md 2. Nothing is stored: git finds the landings of a few paths faster
than a database would give back the lines of all landings.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.github.gitbuild import patches
from bot.github.gitbuild.chain import ID
from bot.github.gitbuild.command import Command, GitFailed
from bot.github.gitbuild.mirror import Mirror
from service.landed_work import GENERATED
from service.provider.undoing import ledger
from service.provider.undoing.changes import FileChange, Landing
from service.provider.undoing.generated import written
from service.provider.undoing.ledger import Ledger, Undone
from service.vocabulary import Sha

LANDINGS_MAX = 3_000
PATHS_MAX = 5_000
OUTPUT_BYTES_MAX = 8 << 20
COMMITS_MAX = 250
ROUNDS_MAX = 3
WITHIN_S = 10.0
LINE = ("log", "--first-parent", "--diff-merges=first-parent", patches.HEADER)
ALONE = ("log", "--no-walk=unsorted", "--diff-merges=first-parent", patches.HEADER)
# Paths are read from standard input, and no character of theirs is a pattern.
LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}


@dataclass(frozen=True, slots=True)
class Question:
    """A merge result to judge: its tree on a tip, after which the landings `after` .. tip count.

    `head`: the commit that was merged. `generated`: globs for paths that do not count.
    """

    tip: Sha
    result: Sha
    head: Sha
    after: Sha
    generated: Sequence[str] = GENERATED

    def __post_init__(self) -> None:
        if not all(ID.fullmatch(sha) for sha in (self.tip, self.result, self.head, self.after)):
            raise GitFailed("log", "an object id is malformed")

    @property
    def span(self) -> str:
        """The landings that count, as git reads them from standard input."""
        return f"{self.tip}\n^{self.after}\n"


@dataclass(frozen=True, slots=True)
class Landed:
    """Work that has landed already; by which landing, if one is known.

    `stands_twice`: the merge result would have it once more at another place, which may be meant;
    else the result equals the tip.
    """

    landing: Landing | None
    stands_twice: bool = False


@dataclass(frozen=True, slots=True)
class Landings:
    """Reads landings of one mirror, which is held.

    `output_max`: the most bytes of one command's output.
    """

    mirror: Mirror
    output_max: int = OUTPUT_BYTES_MAX

    async def undone_by(self, question: Question) -> tuple[Undone, ...]:
        """Return the landings that a merge result takes back, newest first. Raises GitFailed.

        Where the lines are too many to read, contents alone are compared.
        """
        whole = await self._change(question.tip, question.result)
        change = written(whole, question.generated)
        touched = {path for file in change for path in (file.path, file.source)}
        if not touched:
            return ()
        by_contents = await self._ledger(patches.RAW, question.span, touched)
        if self.mirror.is_blobless:
            # Lines would cost a fetch for each landing.
            return by_contents.undone_by(change)
        paths = ledger.losing(change) | by_contents.returned(change)
        if not paths:
            return ()
        try:
            return await self._undone_in(question, change, paths)
        except GitFailed:
            return by_contents.undone_by(change)

    async def landed_already(self, question: Question) -> Landed | None:
        """Return the landing that has done a pull request's work, None where there is work left."""
        change = await self._change(question.tip, question.result)
        if change:
            return None if self.mirror.is_blobless else await self._repeated(question, change)
        base = await self._output("merge-base", question.tip, question.head)
        own = await self._change(Sha(base.decode("ascii").strip()), question.head)
        if not own:
            return None
        known = await self._ledger(self._form, question.span, {file.path for file in own})
        return Landed(ledger.landing_like(own, known.landings))

    async def messages_of(self, question: Question) -> tuple[str, ...]:
        """Return the messages of the newest commits that a head brings, at most 250."""
        limit = f"--max-count={COMMITS_MAX}"
        listed = await self._output(
            "log", "-z", "--format=%B", limit, question.head, f"^{question.tip}"
        )
        return tuple(listed.decode("utf-8", "replace").split("\0"))

    async def line_of(self, tip: Sha, after: Sha) -> tuple[Sha, ...]:
        """Return the first-parent line from a commit back to, but without, an older one."""
        limit = f"--max-count={COMMITS_MAX}"
        listed = await self._output("rev-list", "--first-parent", limit, tip, f"^{after}")
        return tuple(Sha(line) for line in listed.decode("ascii").split())

    async def commits_of(self, landing: Sha) -> tuple[Sha, ...]:
        """Return a landing and, of a merge, the commits that came with it, at most 250."""
        limit = f"--max-count={COMMITS_MAX}"
        listed = await self._output("rev-list", limit, landing, f"^{landing}^1")
        return tuple(Sha(line) for line in listed.decode("ascii").split())

    async def _undone_in(
        self, question: Question, change: Sequence[FileChange], paths: frozenset[bytes]
    ) -> tuple[Undone, ...]:
        """Return what is undone, after reading all files of what seems undone.

        The first look is at the paths of the change; a landing may have lines elsewhere that
        still stand, or its file may have had another name.
        """
        undone: tuple[Undone, ...] = ()
        span = question.span
        for _ in range(ROUNDS_MAX):
            known = await self._ledger(patches.PATCH, span, paths)
            undone = known.undone_by(change)
            whole = [each.landing.commit for each in undone]
            born = {each.commit for each in known.landings if _creates(each, paths)}
            wider = paths | await self._paths_beside(question, set(whole), born, paths)
            if wider == paths:
                break
            if whole and not born:
                # What is older has lost nothing.
                span = f"{question.tip}\n^{whole[-1]}^\n"
            paths = wider
        return undone

    async def _paths_beside(
        self, question: Question, whole: set[Sha], born: set[Sha], paths: frozenset[bytes]
    ) -> frozenset[bytes]:
        """Return all paths of some landings, and what files that others create were before."""
        if not whole | born:
            return frozenset()
        feed = "".join(f"{sha}\n" for sha in sorted(whole | born)).encode()
        listed = await self._run(*ALONE, *patches.RAW, "--stdin", feed=feed)
        found: set[bytes] = set()
        for landing in patches.landings_of(listed):
            for file in written(landing.files, question.generated):
                if landing.commit in whole:
                    found |= {file.path, file.source}
                elif file.path in paths:
                    found.add(file.source)
        return frozenset(found)

    async def _repeated(self, question: Question, change: Sequence[FileChange]) -> Landed | None:
        if any(file.old is None or file.new is None for file in change):
            return None
        wanted = "".join(f"{file.old.id}\n" for file in change if file.old is not None)
        batch = await self._run("cat-file", "--batch", feed=wanted.encode())
        if not ledger.adds_what_stands(change, dict(patches.contents_of(batch))):
            return None
        paths = {file.path for file in change}
        known = await self._ledger(patches.PATCH, question.span, paths)
        landing = known.repeated_by(change)
        return None if landing is None else Landed(landing, stands_twice=True)

    async def _change(self, before: Sha, after: Sha) -> tuple[FileChange, ...]:
        return patches.change_of(await self._run("diff-tree", *self._form, before, after))

    @property
    def _form(self) -> Sequence[str]:
        return patches.RAW if self.mirror.is_blobless else patches.PATCH

    async def _ledger(self, form: Sequence[str], span: str, paths: Iterable[bytes]) -> Ledger:
        """Return the ledger of the landings of a span that touch some paths."""
        # A path with a line end cannot be named on standard input.
        named = sorted(path for path in paths if not set(path) & set(b"\r\n"))[:PATHS_MAX]
        feed = b"%b--\n" % span.encode() + b"".join(b"%b\n" % path for path in named)
        arguments = (*LINE, *form, f"--max-count={LANDINGS_MAX}", "--stdin")
        # Half a second for the widest changes, beside which the service goes on.
        return await asyncio.to_thread(_ledger_of, await self._run(*arguments, feed=feed))

    async def _output(self, *arguments: str) -> bytes:
        return (await self.mirror.run(Command(arguments))).text

    async def _run(self, *arguments: str, feed: bytes = b"") -> bytes:
        command = Command(
            arguments,
            feed,
            within_s=WITHIN_S,
            environment=LITERAL,
            output_max=self.output_max,
        )
        return (await self.mirror.run(command)).text


def _ledger_of(output: bytes) -> Ledger:
    known = Ledger()
    for landing in reversed(list(patches.landings_of(output))):
        known.add(landing)
    return known


def _creates(landing: Landing, paths: frozenset[bytes]) -> bool:
    return any(file.old is None and file.path in paths for file in landing.files)
