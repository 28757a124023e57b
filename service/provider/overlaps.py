"""Pairs of open pull requests that conflict with each other (docs/design/conflicts.md 2)."""

from dataclasses import dataclass

from service.provider.values import ListedPullRequest
from service.vocabulary import ConflictRule, RepoRef, Sha

HeadPair = tuple[Sha, Sha]
"""Heads of two pull requests, that with the lower number first."""


@dataclass(frozen=True, slots=True)
class OverlapRequest:
    """Open pull requests to compare with each other, those that count most first.

    `compared`: pairs that need no look. At most `pairs_max` are merged, while CPU time is left.
    """

    repo: RepoRef
    target: str
    tip: Sha
    heads: tuple[ListedPullRequest, ...]
    compared: frozenset[HeadPair]
    rules: tuple[ConflictRule, ...]
    pairs_max: int
    cpu_s_max: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Two pull requests that were merged one after the other; without `paths` they fit."""

    low: ListedPullRequest
    high: ListedPullRequest
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Overlaps:
    """The pairs that were compared, how many that touch the same files were not, and the cost."""

    pairs: tuple[Pair, ...]
    left: int
    cpu_s: float
