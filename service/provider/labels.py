"""Labels of pull requests: who changed one last, and how names compare."""

from dataclasses import dataclass
from datetime import datetime

from service.vocabulary import Actor


@dataclass(frozen=True, slots=True)
class LabelChange:
    """An account added a label to a pull request or removed it.

    No other change has this `id`. Times of providers may have whole seconds: two changes can have
    the same one, so only the provider's own order says which is newer.
    """

    id: str
    added: bool
    actor: Actor
    at: datetime


def is_same(one: str, other: str) -> bool:
    """Return whether two names mean one label: providers ignore upper and lower case."""
    return one.casefold() == other.casefold()


def contains(labels: tuple[str, ...], label: str) -> bool:
    """Return whether a label is among those of a pull request."""
    return any(is_same(each, label) for each in labels)
