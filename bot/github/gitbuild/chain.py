"""One build by git: merges and commits in the mirror, without a working tree, then one push.

See docs/design/git-builds.md 3.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from bot.github import testbranches
from bot.github.client import RepositoryClient
from bot.github.gitbuild import mirror as mirrors
from bot.github.gitbuild.command import Command, GitFailed, Output
from bot.github.gitbuild.mirror import Mirror, Reason, Unusable
from bot.github.gitbuild.push import Creation, Pushes
from bot.github.gitbuild.resolutions import Resolver
from bot.github.own_branches import Prefixes
from bot.github.pull_requests import PullRequests
from bot.github.testbranches import CONFLICT_PATHS_MAX, Stopped
from service.provider.errors import Refused, RefusedCode
from service.provider.values import (
    BuildRequest,
    BuildResult,
    BuildStep,
    Commit,
    Conflicted,
    NothingToMerge,
)
from service.vocabulary import ConflictRule, MergeMethod, Resolved, Sha

ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
AUTHOR_CHARS_MAX = 200
REPLAYED_MAX = 100
"""GitHub rebases no pull request with more commits."""
UNKNOWN = "unknown"
UNRELATED = "refusing to merge unrelated histories"
MERGE = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages")
AUTHOR = "%an%x00%ae"
DATE = re.compile(r"[0-9]{1,12} [+-][0-9]{4}")
# Newest last, and none that merges: git rebase leaves those out as well.
LISTED = (
    "log",
    "-z",
    "--reverse",
    "--topo-order",
    "--min-parents=1",
    "--max-parents=1",
    f"--max-count={REPLAYED_MAX + 1}",
    "--date=raw",
    f"--format=%H%x00%P%x00%T%x00{AUTHOR}%x00%ad%x00%B",
)
FIELDS = 7


@dataclass(frozen=True, slots=True)
class Clash:
    """Exact paths of a conflict, at most 100; none for unrelated histories.

    `is_final`: GitHub has no call that makes this merge, so it cannot confirm the conflict.
    """

    paths: tuple[str, ...]
    is_final: bool = False


class TooManyCommits(Exception):
    """A head has more commits to replay than GitHub replays."""


class Words(NamedTuple):
    """The message of a commit, and who made it when, as variables of git's environment."""

    message: bytes
    who: Mapping[str, str]


class Pick(NamedTuple):
    """One commit to replay."""

    sha: Sha
    parent: Sha
    tree: Sha
    words: Words


@dataclass(slots=True)
class Workbench:
    """Merges in one mirror, which is held, for one repository."""

    mirror: Mirror
    client: RepositoryClient
    rules: tuple[ConflictRule, ...] = ()
    resolved: list[Resolved] = field(default_factory=list)
    """Conflicts that the rules have resolved."""
    united_s: float = 0.0
    """CPU time of this process that the rules have taken."""

    async def contains(self, commit: Sha, head: Sha) -> bool:
        """Return whether a head is this commit or reachable from it."""
        found = await self._run("merge-base", "--is-ancestor", head, commit)
        return found.code == 0

    async def merge(self, ours: Sha, theirs: Sha) -> Sha | Clash:
        """Return the tree of a merge of two commits."""
        try:
            merged = await self._run(*MERGE, ours, theirs)
        except GitFailed as failed:
            if UNRELATED not in failed.words:
                raise
            return Clash(())
        parts = merged.text.split(b"\0")
        if merged.code == 1:
            resolver = self._resolver
            made = await resolver.tree_of(ours, theirs) if self.rules else None
            self.united_s += resolver.took_s
            if made is not None:
                self.resolved.extend(made[1])
                return made[0]
            paths = dict.fromkeys(displayed(part) for part in parts[1:] if part)
            return Clash(tuple(paths)[:CONFLICT_PATHS_MAX])
        return _id_of(parts[0])

    async def commit(self, tree: Sha, parents: tuple[Sha, ...], words: Words) -> Commit:
        """Make a commit."""
        named = (part for parent in parents for part in ("-p", parent))
        command = Command(
            ("commit-tree", tree, *named, "-F", "-"), words.message, environment=words.who
        )
        made = await self.mirror.run(command)
        return Commit(_id_of(made.text), tree, parents)

    async def author_of(self, head: Sha) -> dict[str, str]:
        """Return who wrote a commit, without what git takes in no name."""
        shown = await self._run("log", "-1", f"--format={AUTHOR}", head)
        name, _, email = shown.text.removesuffix(b"\n").partition(b"\0")
        return _author(name, email)

    async def replayed(
        self, head: Sha, onto: Commit, without: tuple[Sha, ...], who: Mapping[str, str]
    ) -> Commit | Clash:
        """Replay on `onto` the commits of a head that neither it nor `without` has.

        Authors and messages stay, `who` commits. A commit that changes nothing is left out, unless
        it did before. Raises TooManyCommits.
        """
        picks = await self._picks(head, (onto.sha, *without), who)
        trees = {pick.sha: pick.tree for pick in picks}
        tip = onto
        for pick in picks:
            if pick.parent not in trees:
                trees[pick.parent] = await self._tree_of(pick.parent)
            before = trees[pick.parent]
            tree = pick.tree if tip.tree == before else await self._picked(pick, tip)
            if isinstance(tree, Clash):
                return tree
            if tree != tip.tree or pick.tree == before:
                tip = await self.commit(tree, (tip.sha,), pick.words)
        return tip

    async def _picked(self, pick: Pick, tip: Commit) -> Sha | Clash:
        # The parent of what is picked is the base of the merge: git before 2.40 takes it only
        # from the history, so the tip's tree gets that parent.
        words = Words(b"base\n", pick.words.who)
        ours = await self.commit(tip.tree, (pick.parent,), words)
        return await self.merge(ours.sha, pick.sha)

    async def _picks(
        self, head: Sha, without: tuple[Sha, ...], who: Mapping[str, str]
    ) -> list[Pick]:
        listed = await self._run(*LISTED, head, *(f"^{sha}" for sha in without))
        parts = listed.text.split(b"\0")
        each = [parts[at : at + FIELDS] for at in range(0, len(parts) - 1, FIELDS)]
        if len(each) > REPLAYED_MAX:
            raise TooManyCommits(head)
        return [
            Pick(
                _id_of(sha),
                _id_of(parent),
                _id_of(tree),
                Words(message, {**who, **_author(name, email), **_author_date(date)}),
            )
            for sha, parent, tree, name, email, date, message in each
        ]

    async def _tree_of(self, commit: Sha) -> Sha:
        return _id_of((await self._run("rev-parse", f"{commit}^{{tree}}")).text)

    @property
    def _resolver(self) -> Resolver:
        return Resolver(self._sent, self.mirror.folder / "headgate-index", self.rules)

    async def _run(self, *arguments: str) -> Output:
        """Run a command that answers 0 or 1."""
        return await self._sent(Command(arguments, expects=(1,)))

    async def _sent(self, command: Command) -> Output:
        """Run a command; it may fetch contents into a blobless mirror."""
        return await self.mirror.run(command, self.client if self.mirror.is_blobless else None)


def displayed(path: bytes) -> str:
    """Return a path as text: bytes that are not UTF-8 and control characters are escaped."""
    text = path.decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _author(name: bytes, email: bytes) -> dict[str, str]:
    return {"GIT_AUTHOR_NAME": _clean(name), "GIT_AUTHOR_EMAIL": _clean(email)}


def _clean(name: bytes) -> str:
    """Return a name that git takes as it is: it refuses one of punctuation alone."""
    text = name.decode("utf-8", "replace")
    text = "".join(each for each in text if each.isprintable() and each not in "<>")
    return text.strip(" .,:;\"\\'")[:AUTHOR_CHARS_MAX].rstrip(" .,:;\"\\'") or UNKNOWN


def _author_date(date: bytes) -> dict[str, str]:
    """Return the date of an author; without one that git can read, that of the committer."""
    text = date.decode("ascii", "replace")
    return {"GIT_AUTHOR_DATE": f"@{text}"} if DATE.fullmatch(text) else {}


def _id_of(output: bytes) -> Sha:
    sha = output.decode("ascii", "replace").strip()
    if not ID.fullmatch(sha):
        raise GitFailed("merge", "an object id was expected")
    return Sha(sha)


ROLES = ("AUTHOR", "COMMITTER")


class Conflicting(Exception):
    """Git found a conflict of the head of this step.

    `verdict` is what git makes of it, for where GitHub cannot be asked (`is_final`).
    """

    def __init__(self, step: BuildStep, verdict: Conflicted, *, is_final: bool) -> None:
        super().__init__(f"pr-{step.number}")
        self.step = step
        self.verdict = verdict
        self.is_final = is_final


class Place(NamedTuple):
    """The place where a build is made, and the way its branch is sent."""

    mirror: Mirror
    pushes: Pushes


class GitBuild(testbranches.Build):
    """Builds the test branch of one request in a mirror.

    A commit depends on what it merges and on its step alone, so that building again, or as a part
    of a run behind, gives the same commits.
    """

    def __init__(
        self, client: RepositoryClient, pulls: PullRequests, request: BuildRequest, place: Place
    ) -> None:
        super().__init__(client, pulls, request)
        self._mirror, self._pushes = place
        self._bench = Workbench(place.mirror, client, request.rules)
        self._identity: dict[str, str] = {}
        self._clash = Clash(())
        self._commits: list[Commit] = []

    async def start(self) -> BuildResult:
        """Merge every step, push the branch and show it. Raises Conflicting, Unusable."""
        made = await self._made()
        if self.is_contained(made):
            return NothingToMerge()
        is_known = made[-1].tree in self.request.known_trees
        branch = self.request.scratch if is_known else self.request.branch
        await self._pushes.create(Creation(branch, made[-1].commit, self.client))
        for commit in self._commits:
            self.client.caches.keep_commit(self.client.repo, commit)
        return self.built(branch, made) if is_known else await self.show(made)

    async def rehearse(self) -> Prefixes:
        """Merge every step in the mirror alone. Raises Conflicting, Unusable."""
        return await self._made()

    async def _made(self) -> Prefixes:
        self._check_ids()
        self._identity = await self._identity_of_app()
        start = await self.reused()
        async with self._mirror.held():
            return await self._chained(start)

    async def _chained(self, start: Prefixes) -> Prefixes:
        sha = start[-1].commit if start else self.request.base_sha
        base = {mirrors.base_ref(self.request.target): sha}
        await self._fetch(base | _heads_of(self.request.steps[len(start) :]))
        try:
            made = await self.with_own_tip(start, len(start))
            if isinstance(made, Stopped):
                verdict = await self._verdict(made)
                raise Conflicting(made.step, verdict, is_final=self._clash.is_final)
        except GitFailed as failed:
            if not mirrors.is_harmless(failed):
                await self._mirror.delete()
            raise Unusable(Reason.MERGE, str(failed)) from failed
        return made

    async def _fetch(self, commits: dict[str, Sha]) -> None:
        try:
            await self._mirror.fetch(self.client, commits)
        except GitFailed as failed:
            if mirrors.is_corrupt(failed):
                await self._mirror.delete()
            raise Unusable(Reason.FETCH, str(failed)) from failed

    async def reset(self, sha: Sha) -> None:
        """See `Build.reset`; in a mirror no branch has moved, but heads may be missing."""
        if self.is_line:
            base = {mirrors.base_ref(self.request.target): sha}
            await self._fetch(base | _heads_of(self.request.steps))

    async def merge(self, step: BuildStep, before: Commit) -> Commit | None:
        """Return the commit after this step; None for a conflict. Raises GitFailed, Refused."""
        # Runs of one moment merge the same heads ahead of their own.
        words, method = self.words_of(step), self.request.method
        form = (method, self.request.lands, self.request.rules)
        key = (before.sha, step.head_sha, words, step.date, *form, step.fork)
        known = self._mirror.made.get(key)
        if known is None:
            self._bench.resolved.clear()
            made = await self._step(step, before)
            if isinstance(made, Clash):
                self._clash = made
                return None
            resolved = tuple(dict.fromkeys(self._bench.resolved))
            known = self._mirror.made[key] = (made, resolved)
        commit, self.resolved[step.number] = known
        self._commits.append(commit)
        return commit

    async def _step(self, step: BuildStep, before: Commit) -> Commit | Clash:
        if await self._bench.contains(before.sha, step.head_sha):
            return before
        if self.request.method is MergeMethod.REBASE:
            return await self._replayed(step, before)
        tree = await self._merged_tree(step, before)
        if isinstance(tree, Clash):
            return tree
        words = self._words(step)
        if self.request.method is MergeMethod.MERGE_COMMIT:
            return await self._bench.commit(tree, (before.sha, step.head_sha), words)
        author = await self._bench.author_of(step.head_sha)
        words = words._replace(who={**words.who, **author})
        return await self._bench.commit(tree, (before.sha,), words)

    async def _merged_tree(self, step: BuildStep, before: Commit) -> Sha | Clash:
        """Return the tree of a merge, as if the commits of the member below were there."""
        if not self.is_line or step.fork is None:
            return await self._bench.merge(before.sha, step.head_sha)
        parents = (before.sha, step.fork)
        ours = await self._bench.commit(before.tree, parents, self._words(step))
        tree = await self._bench.merge(ours.sha, step.head_sha)
        return Clash(tree.paths, is_final=True) if isinstance(tree, Clash) else tree

    async def _replayed(self, step: BuildStep, before: Commit) -> Commit | Clash:
        if not self.request.lands:
            # GitHub rebases no pull request that does not merge.
            tree = await self._merged_tree(step, before)
            if isinstance(tree, Clash):
                return tree
        words = self._words(step)
        without = () if step.fork is None else (step.fork,)
        try:
            made = await self._bench.replayed(step.head_sha, before, without, words.who)
        except TooManyCommits:
            sentence = f"A rebase replays at most {REPLAYED_MAX} commits of a pull request."
            raise Refused(sentence, RefusedCode.OTHER, step.number) from None
        if isinstance(made, Clash):
            return Clash(made.paths, is_final=True)
        if made.sha == before.sha:
            return await self._bench.commit(before.tree, (before.sha,), words)
        return made

    async def _verdict(self, stopped: Stopped) -> Conflicted:
        """Return what a conflict is with, as far as git can tell."""
        step, paths = stopped.step, self._clash.paths
        ahead = [each.number for each in stopped.before if not each.contained]
        base = await self.own.commit(self.request.base_sha)
        alone = await self._step(replace(step, fork=None), base) if ahead else self._clash
        if isinstance(alone, Clash):
            return Conflicted(step.number, with_base=True, culprit=None, paths=paths)
        below = [each.number for each in self.request.steps if each.head_sha == step.fork]
        culprit = below[0] if below else ahead[0] if len(ahead) == 1 else None
        return Conflicted(step.number, with_base=False, culprit=culprit, paths=paths)

    def _words(self, step: BuildStep) -> Words:
        """Return the message of a step; author and committer are the App's bot."""
        date = f"@{int(step.date.timestamp())} +0000"
        dates = {f"GIT_{role}_DATE": date for role in ROLES}
        message = self.words_of(step).encode("utf-8", "replace") + b"\n"
        return Words(message, self._identity | dates)

    def _check_ids(self) -> None:
        """Raise Unusable for a commit id that could be anything else in a command."""
        ids = [self.request.base_sha]
        for step in self.request.steps:
            ids += [sha for sha in (step.head_sha, step.commit, step.fork) if sha is not None]
        if not all(ID.fullmatch(sha) for sha in ids):
            raise Unusable(Reason.FETCH, "a commit id is malformed")

    async def _identity_of_app(self) -> dict[str, str]:
        name = f"{await self.client.github.slug()}[bot]"
        return {
            f"GIT_{role}_{part}": value
            for role in ROLES
            for part, value in (("NAME", name), ("EMAIL", f"{name}@users.noreply.github.com"))
        }


def _heads_of(steps: Sequence[BuildStep]) -> dict[str, Sha]:
    """Return the commits that these steps need, by the refs that keep them."""
    heads = {f"pull/{step.number}": step.head_sha for step in steps}
    return heads | {f"fork/{step.number}": step.fork for step in steps if step.fork is not None}
