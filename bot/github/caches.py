"""Caches of the adapter: facts that cannot change, and answers of the last seconds."""

from dataclasses import dataclass

from cachetools import LRUCache

from service.provider.values import Commit
from service.vocabulary import RepoRef, Sha

COMMITS_MAX = 20_000
NAMES_MAX = 2_000
PULLS_MAX = 5_000
PATHS_MAX = 50_000
FRESH_S = 10.0
CROWDED_S = 3600.0


@dataclass(frozen=True, slots=True)
class Files:
    """Paths of a pull request as of one read of its facts."""

    head: Sha
    paths: tuple[str, ...]
    read_s: float
    deleted: tuple[str, ...] = ()
    base: str | None = None


class Caches:
    """Bounded caches; the least recently used entry is dropped first."""

    def __init__(self) -> None:
        self._commits: LRUCache[tuple[str, Sha], Commit] = LRUCache(COMMITS_MAX)
        self._nodes: LRUCache[str, str] = LRUCache(NAMES_MAX)
        self._files: LRUCache[tuple[str, int], Files] = LRUCache(PATHS_MAX, _size_of)
        self._unstacked: LRUCache[tuple[str, int], Sha] = LRUCache(PULLS_MAX)
        self._merges: LRUCache[tuple[str, int], str] = LRUCache(PULLS_MAX)
        self._advanced: LRUCache[tuple[str, Sha], bool] = LRUCache(PULLS_MAX)
        self._crowded: LRUCache[str, float] = LRUCache(NAMES_MAX)
        self._workflows: LRUCache[tuple[str, int, Sha], bool] = LRUCache(PULLS_MAX)

    def keep_commit(self, repo: RepoRef, commit: Commit) -> Commit:
        """Store a commit, which never changes, and return it."""
        self._commits[repo.slug, commit.sha] = commit
        return commit

    def commit(self, repo: RepoRef, sha: Sha) -> Commit | None:
        """Return a commit read before, None otherwise."""
        return self._commits.get((repo.slug, sha))

    def keep_node(self, repo: RepoRef, node: str) -> None:
        """Store the node id of a repository."""
        self._nodes[repo.slug] = node

    def node(self, repo: RepoRef) -> str | None:
        """Return the node id, None before an answer contained it."""
        return self._nodes.get(repo.slug)

    def keep_files(self, repo: RepoRef, number: int, files: Files) -> None:
        """Store all paths of a pull request."""
        if _size_of(files) <= PATHS_MAX:
            self._files[repo.slug, number] = files

    def files(self, repo: RepoRef, number: int, now_s: float) -> Files | None:
        """Return those paths if they were read in the last ten seconds."""
        found = self._files.get((repo.slug, number))
        return found if found is not None and now_s - found.read_s <= FRESH_S else None

    def keep_unstacked(self, repo: RepoRef, number: int, head: Sha | None) -> None:
        """Remember that a head was seen outside of any stack; None forgets it."""
        if head is None:
            self._unstacked.pop((repo.slug, number), None)
        else:
            self._unstacked[repo.slug, number] = head

    def is_unstacked(self, repo: RepoRef, number: int, head: Sha) -> bool:
        """Return whether this head was seen outside of any stack."""
        return self._unstacked.get((repo.slug, number)) == head

    def keep_merge(self, repo: RepoRef, number: int, pending: str | None) -> None:
        """Remember the id of a pending merge request; None forgets it."""
        if pending is None:
            self._merges.pop((repo.slug, number), None)
        else:
            self._merges[repo.slug, number] = pending

    def merge(self, repo: RepoRef, number: int) -> str | None:
        """Return the id of the pending merge request, None if none is known."""
        return self._merges.get((repo.slug, number))

    def keep_advanced(self, repo: RepoRef, to: Sha) -> None:
        """Remember that GitHub has answered that an atomic update to this commit was done."""
        self._advanced[repo.slug, to] = True

    def is_advanced(self, repo: RepoRef, to: Sha) -> bool:
        """Return whether GitHub has answered so."""
        return (repo.slug, to) in self._advanced

    def keep_crowded(self, repo: RepoRef, now_s: float) -> None:
        """Remember that a repository has more artifacts than one page lists."""
        self._crowded[repo.slug] = now_s

    def is_crowded(self, repo: RepoRef, now_s: float) -> bool:
        """Return whether that was so in the last hour."""
        seen_s = self._crowded.get(repo.slug)
        return seen_s is not None and now_s - seen_s <= CROWDED_S

    def keep_workflows(self, repo: RepoRef, number: int, head: Sha, touched: bool) -> None:
        """Store whether a head changes workflow files."""
        self._workflows[repo.slug, number, head] = touched

    def workflows(self, repo: RepoRef, number: int, head: Sha) -> bool | None:
        """Return whether a head changes workflow files, None if it was never read."""
        return self._workflows.get((repo.slug, number, head))


def _size_of(files: Files) -> int:
    """Return how many paths are kept, with a few for the rest."""
    return len(files.paths) + len(files.deleted) + 5
