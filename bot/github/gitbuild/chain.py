"""One build by git: merges in the mirror, then one push (docs/design/git-builds.md 3)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from bot.github import testbranches
from bot.github.client import RepositoryClient
from bot.github.gitbuild import mirror as mirrors
from bot.github.gitbuild.command import GitFailed
from bot.github.gitbuild.merging import ID, REPLAYED_MAX, Clash, TooManyCommits, Words, Workbench
from bot.github.gitbuild.mirror import Mirror, Reason, Unusable
from bot.github.gitbuild.push import Creation, Pushes
from bot.github.own_branches import Prefixes
from bot.github.pull_requests import PullRequests
from bot.github.testbranches import Stopped
from service.provider.errors import Refused, RefusedCode
from service.provider.values import (
    BuildRequest,
    BuildResult,
    BuildStep,
    Commit,
    Conflicted,
    NothingToMerge,
)
from service.vocabulary import MergeMethod, Sha

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
        self._bench = Workbench(place.mirror, client)
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

    async def rehearse(self) -> None:
        """Merge every step in the mirror alone. Raises Conflicting, Unusable."""
        await self._made()

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
        key = (before.sha, step.head_sha, words, step.date, method, self.request.lands, step.fork)
        commit = self._mirror.made.get(key)
        if commit is None:
            made = await self._step(step, before)
            if isinstance(made, Clash):
                self._clash = made
                return None
            commit = self._mirror.made[key] = made
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
