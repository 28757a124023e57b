"""One build by git: merges in the mirror, then one push (docs/design/git-builds.md 3)."""

import re
from typing import NamedTuple

from bot.github import testbranches
from bot.github.client import RepositoryClient
from bot.github.gitbuild import mirror as mirrors
from bot.github.gitbuild.command import Command, GitFailed, Output
from bot.github.gitbuild.mirror import Mirror, Reason, Unusable
from bot.github.gitbuild.push import Creation, Pushes
from bot.github.pull_requests import PullRequests
from bot.github.testbranches import CONFLICT_PATHS_MAX, Prefixes, Stopped
from service.provider.values import BuildRequest, BuildResult, BuildStep, Commit, NothingToMerge
from service.vocabulary import Sha

ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
UNRELATED = "refusing to merge unrelated histories"
ROLES = ("AUTHOR", "COMMITTER")
MERGE = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages")


class Conflicting(Exception):
    """Git found a conflict of the head of this step; exact paths, at most 100."""

    def __init__(self, step: BuildStep, paths: tuple[str, ...]) -> None:
        super().__init__(f"pr-{step.number}")
        self.step = step
        self.paths = paths


class Place(NamedTuple):
    """Where a build is made, and how its branch is sent."""

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
        self._identity: dict[str, str] = {}
        self._paths: tuple[str, ...] = ()
        self._commits: list[Commit] = []

    async def start(self) -> BuildResult:
        """Merge every step, push the branch and show it. Raises Conflicting, Unusable."""
        self._check_ids()
        self._identity = await self._identity_of_app()
        reused = self.reusable
        start = await self.reused(reused)
        async with self._mirror.held():
            made = await self._chained(start, reused)
        if isinstance(made, Stopped):
            raise Conflicting(made.step, self._paths)
        if self.is_contained(made):
            return NothingToMerge()
        is_known = made[-1].tree in self.request.known_trees
        branch = self.request.scratch if is_known else self.request.branch
        await self._pushes.create(Creation(branch, made[-1].commit, self.client))
        for commit in self._commits:
            self.client.caches.keep_commit(self.client.repo, commit)
        return self.built(branch, made) if is_known else await self.show(made)

    async def _chained(self, start: Prefixes, reused: int) -> Prefixes | Stopped:
        sha = start[-1].commit if start else self.request.base_sha
        heads = {f"pull/{step.number}": step.head_sha for step in self.request.steps[reused:]}
        base = {mirrors.base_ref(self.request.target): sha}
        try:
            await self._mirror.fetch(self.client, base | heads)
        except GitFailed as failed:
            if mirrors.is_corrupt(failed):
                await self._mirror.delete()
            raise Unusable(Reason.FETCH, str(failed)) from failed
        try:
            return await self.with_own_tip(start, reused)
        except GitFailed as failed:
            if not mirrors.is_harmless(failed):
                await self._mirror.delete()
            raise Unusable(Reason.MERGE, str(failed)) from failed

    async def reset(self, sha: Sha) -> None:
        """See `Build.reset`; in a mirror no branch has moved."""

    async def merge(self, step: BuildStep, before: Commit) -> Commit | None:
        """Return the commit after this step; None for a conflict. Raises GitFailed."""
        # Runs of one moment merge the same heads ahead of their own.
        words = step.message or f"Headgate test: merge pr-{step.number}\n\n{self._trailer}"
        made, what = self._mirror.made, (before.sha, step.head_sha, words, step.date)
        commit = made.get(what)
        if commit is None:
            commit = await self._merge(step, before, words)
            if commit is not None:
                made[what] = commit
        if commit is not None:
            self._commits.append(commit)
        return commit

    async def _merge(self, step: BuildStep, before: Commit, words: str) -> Commit | None:
        contained = await self._run("merge-base", "--is-ancestor", step.head_sha, before.sha)
        if contained.code == 0:
            return before
        try:
            merged = await self._run(*MERGE, before.sha, step.head_sha)
        except GitFailed as failed:
            if UNRELATED not in failed.words:
                raise
            return None
        parts = merged.text.split(b"\0")
        if merged.code == 1:
            paths = dict.fromkeys(displayed(part) for part in parts[1:] if part)
            self._paths = tuple(paths)[:CONFLICT_PATHS_MAX]
            return None
        tree = _id_of(parts[0])
        parents = (before.sha, step.head_sha)
        command = Command(
            ("commit-tree", tree, "-p", parents[0], "-p", parents[1], "-F", "-"),
            words.encode("utf-8", "replace") + b"\n",
            environment=self._identity | _dates(step),
        )
        made = await self._mirror.run(command)
        return Commit(_id_of(made.text), tree, parents)

    async def _run(self, *arguments: str) -> Output:
        """Run a command that answers 0 or 1; it may fetch contents into a blobless mirror."""
        client = self.client if self._mirror.is_blobless else None
        return await self._mirror.run(Command(arguments, expects=(1,)), client)

    @property
    def _trailer(self) -> str:
        return f"Headgate-Run: {self.request.run_id}"

    def _check_ids(self) -> None:
        """Raise Unusable for a commit id that could be anything else in a command."""
        ids = [self.request.base_sha]
        for step in self.request.steps:
            ids += [step.head_sha] if step.commit is None else [step.head_sha, step.commit]
        if not all(ID.fullmatch(sha) for sha in ids):
            raise Unusable(Reason.FETCH, "a commit id is malformed")

    async def _identity_of_app(self) -> dict[str, str]:
        name = f"{await self.client.github.slug()}[bot]"
        return {
            f"GIT_{role}_{part}": value
            for role in ROLES
            for part, value in (("NAME", name), ("EMAIL", f"{name}@users.noreply.github.com"))
        }


def _dates(step: BuildStep) -> dict[str, str]:
    return {f"GIT_{role}_DATE": f"@{int(step.date.timestamp())} +0000" for role in ROLES}


def displayed(path: bytes) -> str:
    """Return a path as text: bytes that are not UTF-8 and control characters are escaped."""
    text = path.decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _id_of(output: bytes) -> Sha:
    sha = output.decode("ascii", "replace").strip()
    if not ID.fullmatch(sha):
        raise GitFailed("merge", "an object id was expected")
    return Sha(sha)
