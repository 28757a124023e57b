"""Stacks of pull requests: native ones, and chains that the provider does not know as a stack."""

from dataclasses import dataclass

from service.vocabulary import PullRequestState, Sha


@dataclass(frozen=True, slots=True)
class StackMember:
    """One pull request of a stack."""

    number: int
    head_sha: Sha
    state: PullRequestState


@dataclass(frozen=True, slots=True)
class Stack:
    """Pull requests each based on the branch of the one below, the lowest on `target`.

    `members` from the bottom up; empty if the provider did not list them, so of a native stack.
    """

    target: str
    members: tuple[StackMember, ...]
    is_native: bool = True

    def below(self, number: int) -> tuple[StackMember, ...]:
        """Return the members below one that have not merged, from the bottom up."""
        numbers = [one.number for one in self.members]
        under = self.members[: numbers.index(number)]
        return tuple(one for one in under if one.state is not PullRequestState.MERGED)


@dataclass(frozen=True, slots=True)
class MergedFrom:
    """A merged pull request, with the branch that has its commits; its own branch is left over."""

    number: int
    base: str
