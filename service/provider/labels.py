"""Labels of pull requests: who changed one last, those that we write, how names compare."""

from dataclasses import dataclass

from service.provenance import ProviderTime
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
    at: ProviderTime


@dataclass(frozen=True, slots=True)
class StateLabel:
    """The label for the state of a submission, None for none, in place of the one of `known_id`."""

    number: int
    label: str | None
    known_id: str | None = None
    first: bool = False
    is_final: bool = False
    is_refresh: bool = False


@dataclass(frozen=True, slots=True)
class LabelRemoval:
    """Remove a label that a person added; a label that is absent is removed already."""

    number: int
    label: str


def is_same(one: str, other: str) -> bool:
    """Return whether two names mean one label: providers ignore upper and lower case."""
    return one.casefold() == other.casefold()


def contains(labels: tuple[str, ...], label: str) -> bool:
    """Return whether a label is among those of a pull request."""
    return any(is_same(each, label) for each in labels)
