"""Answer with the conflicts between open pull requests."""

from service.http.models.answers.common import Answer, Count, Number, Sha, Time


class ConflictOf(Answer):
    """A conflict that a pull request has with another open one."""

    pr_number: Number
    """The other pull request."""
    paths: list[str]
    """The files in which they conflict. For example `["src/cart.py"]`."""
    text: str
    """What to do. For example `Land #4 first, then rebase #7: 1 rebase.`"""


class ConflictPairShown(Answer):
    """Two open pull requests of which one conflicts once the other has landed."""

    pr_numbers: list[Number]
    """Both pull requests, the lower number first."""
    heads: list[Sha]
    """Their heads."""
    paths: list[str]
    """The files in which they conflict. For example `["src/cart.py"]`."""
    found_at: Time
    """When this was found."""


class LandingOrderShown(Answer):
    """The order with the fewest rebases for pull requests that conflict with each other."""

    first: list[Number]
    """Those that land as they are."""
    rebased: list[Number]
    """Those that are rebased once, after these."""
    rebases_otherwise: Count
    """Rebases if they land in the order of the queue and of their numbers."""
    text: str
    """The same as a sentence. For example `Land #4 first, then rebase #7: 1 rebase.`"""


class ConflictsShown(Answer):
    """The conflicts between open pull requests of a queue, or those of one pull request."""

    pairs: list[ConflictPairShown]
    """The conflicts, at most 1,000."""
    orders: list[LandingOrderShown]
    """An order for each group of pull requests that conflicts connect."""
    not_compared: Count
    """Pairs that touch the same files, and were not compared yet."""
    looked_at: Time | None
    """When this process has looked last; null before."""
    is_on: bool
    """Whether the setting `conflictRadar` is on."""
    is_blind: bool
    """Whether git cannot compare now, because it does not build test branches here."""
