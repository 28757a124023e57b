"""A revert of a landed commit, as asked of a provider and as it is opened there."""

from dataclasses import dataclass

from service.vocabulary import RepoRef, Sha


@dataclass(frozen=True, slots=True)
class RevertRequest:
    """A pull request that takes `commit` of the target back: what it changed since `parent`.

    `branch` is its head, `scratch` a branch that CI never sees; both are ours.
    """

    repo: RepoRef
    target: str
    commit: Sha
    parent: Sha
    branch: str
    scratch: str
    message: str
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class OpenedRevert:
    """The pull request of a revert, with the commit that takes the change back as its head."""

    number: int
    head: Sha
