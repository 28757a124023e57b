"""Contents of our own branches: whether a build may go on from one, or adopt it.

A branch that contains anything else is refused with NAME_TAKEN.
"""

from dataclasses import replace

from bot.github import refs
from bot.github.client import RepositoryClient
from service.provider.errors import Gone, GoneKind, Refused, RefusedCode
from service.provider.values import BuildRequest, Commit, Prefix
from service.vocabulary import MergeMethod, Sha

Prefixes = tuple[Prefix, ...]


def is_line(request: BuildRequest) -> bool:
    """Return whether each step is a line of commits with one parent, and no merge commit."""
    return request.method is not MergeMethod.MERGE_COMMIT


class OwnBranches:
    """The test branch and the scratch branch of one request."""

    def __init__(self, client: RepositoryClient, request: BuildRequest) -> None:
        self._client = client
        self._request = request
        self._is_line = is_line(request)

    async def recognized(self, tip: Sha) -> Prefixes:
        """Return the leading steps, or all, that a branch of ours already merges.

        Raises Refused(NAME_TAKEN) when it contains anything else.
        """
        chain = await self._chain(tip)
        before = await self.commit(self._request.base_sha)
        made: list[Prefix] = []
        place = 0
        for step in self._request.steps:
            if place == len(chain):
                break
            if chain[place].parents == (before.sha, step.head_sha):
                before = chain[place]
                place += 1
                made.append(Prefix(step.number, before.sha, before.tree, contained=False))
            elif await refs.is_ancestor(self._client, step.head_sha, before.sha):
                made.append(Prefix(step.number, before.sha, before.tree, contained=True))
            else:
                raise self.foreign()
        if place < len(chain):
            raise self.foreign()
        return tuple(made)

    async def completed(self, tip: Sha) -> Prefixes:
        """Like `recognized`, for a branch that must contain every step."""
        made = list(await self.recognized(tip))
        for step in self._request.steps[len(made) :]:
            if not await refs.is_ancestor(self._client, step.head_sha, tip):
                raise self.foreign()
            before = await self.commit(tip)
            made.append(Prefix(step.number, before.sha, before.tree, contained=True))
        return tuple(made)

    async def _chain(self, tip: Sha) -> list[Commit]:
        """Return the first parents from the base, oldest first; a longer chain is not ours."""
        is_replayed = self._request.method is MergeMethod.REBASE
        longest = refs.CHAIN_MAX if is_replayed else len(self._request.steps)
        chain: list[Commit] = []
        at = tip
        while at != self._request.base_sha:
            commit = await self.commit(at)
            if not self._may_be_in_chain(commit, tip) or len(chain) == longest:
                raise self.foreign()
            chain.append(commit)
            at = commit.parents[0]
        return chain[::-1]

    def _may_be_in_chain(self, commit: Commit, tip: Sha) -> bool:
        """Return whether a commit has as many parents as those of ours."""
        if not self._is_line:
            return len(commit.parents) == 2
        is_last = commit.sha == tip and not self._request.lands
        last_head = self._request.steps[-1].head_sha
        return len(commit.parents) == 1 or (is_last and commit.parents[1:] == (last_head,))

    async def matched(self, tip: Sha, made: Prefixes) -> Prefixes:
        """Return the steps as a published line has them, if it has the trees just made.

        Git replays a head to several commits, the REST API to one: the last has its tree. Raises
        Refused(NAME_TAKEN).
        """
        line = await self._chain(tip)
        matched: list[Prefix] = []
        for prefix in reversed(made):
            if prefix.contained:
                matched.append(prefix)
                continue
            while self._may_skip(line, tip) and line[-1].tree != prefix.tree:
                line.pop()
            if not line or line[-1].tree != prefix.tree:
                raise self.foreign()
            matched.append(replace(prefix, commit=line.pop().sha))
        if line and self._request.method is MergeMethod.SQUASH:
            raise self.foreign()
        return self._with_contained(matched[::-1])

    def _may_skip(self, line: list[Commit], tip: Sha) -> bool:
        """Return whether the last commit may be one in the middle of a replayed head."""
        is_replayed = self._request.method is MergeMethod.REBASE
        return is_replayed and bool(line) and line[-1].sha != tip

    def _with_contained(self, matched: list[Prefix]) -> Prefixes:
        made: list[Prefix] = []
        before = self._request.base_sha
        for prefix in matched:
            before = before if prefix.contained else prefix.commit
            made.append(replace(prefix, commit=before))
        return tuple(made)

    async def commit(self, sha: Sha) -> Commit:
        """Return a commit. Raises Gone(BRANCH)."""
        commit = await refs.read_commit(self._client, sha)
        if commit is None:
            raise Gone(f"Commit {sha} is gone.", GoneKind.BRANCH)
        return commit

    def foreign(self) -> Refused:
        """Return the refusal of a branch with other content."""
        words = f"{self._request.branch} or its scratch branch holds something else."
        return Refused(words, RefusedCode.NAME_TAKEN)
