"""A target branch made of nothing but names: a tree is the set of changes in it.

Merging adds a pull request's head to the set, whatever the order, so equal content has an equal
id, as in git. Commits are named after what made them and never repeat.
"""

import hashlib
from dataclasses import dataclass, field

from service.mergequeue.engine.model import Tip
from service.vocabulary import Sha

Change = tuple[str, str]
"""What is in a tree: ("pr 3", head) or ("foreign", name)."""

Tree = frozenset[Change]


def sha(*words: object) -> Sha:
    """A commit or tree id made of words."""
    return Sha(hashlib.sha1(" ".join(map(str, words)).encode()).hexdigest())


def head_of(pr: int, version: int = 1) -> Sha:
    """The head of a pull request after so many pushes."""
    return sha("head", pr, version)


def change_of(pr: int, head: Sha) -> Change:
    return f"pr {pr}", head


def tree_id(tree: Tree) -> Sha:
    return sha("tree", *sorted(f"{what}={head}" for what, head in tree))


@dataclass
class Target:
    """The target branch: its commits in order with their trees."""

    commits: list[tuple[Sha, Tree]] = field(
        default_factory=lambda: [(sha("commit", 0), frozenset({("foreign", "start")}))]
    )
    made: int = 0

    @property
    def tree(self) -> Tree:
        return self.commits[-1][1]

    @property
    def tip(self) -> Tip:
        commit, tree = self.commits[-1]
        return Tip(commit, tree_id(tree))

    def move(self, tree: Tree, commit: Sha | None = None) -> Sha:
        """A new commit on top; named by us unless it exists already."""
        self.made += 1
        new = commit or sha("commit", self.made)
        self.commits.append((new, tree))
        return new

    def tree_of(self, commit: Sha) -> Tree:
        """The content at a commit that is or was on the branch."""
        return next(tree for known, tree in reversed(self.commits) if known == commit)
