"""Trees of a repository: two changes side by side, the files of one commit.

See docs/design/provider.md 12.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from service.vocabulary import Sha


@dataclass(frozen=True, slots=True)
class TreeChange:
    """The difference between two trees."""

    before: Sha
    after: Sha


@dataclass(frozen=True, slots=True)
class Same:
    """Two changes leave the same files behind: equal sets of (path, mode, content)."""


@dataclass(frozen=True, slots=True)
class Different:
    """Paths that two changes leave behind differently, at most 200, sorted."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Disjoint:
    """No path is changed by both, and none lies below a file of the other."""


@dataclass(frozen=True, slots=True)
class Overlapping:
    """Paths that both changes touch, at most 200, sorted."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unproven:
    """The trees could not be compared to the end; counts as overlapping and as different."""

    reason: str


@dataclass(frozen=True, slots=True)
class TreePaths:
    """Path of each file → the id of what it holds; without `complete` there are more."""

    ids: Mapping[str, Sha]
    complete: bool
