"""Labels of pull requests: who changed one last, those that we write, how names compare."""

from dataclasses import dataclass

from service.provenance import ProviderTime
from service.vocabulary import Actor


@dataclass(frozen=True, slots=True)
class LabelChange:
    """An account other than our own App added a label to a pull request or removed it.

    No other change has this `id`. Times of providers may have whole seconds: two changes can have
    the same one, so only the provider's own order says which is newer. `undone`: our own App
    removed the label after that.
    """

    id: str
    added: bool
    actor: Actor
    at: ProviderTime
    undone: bool = False


@dataclass(frozen=True, slots=True)
class StateLabel:
    """The label for the state of a submission, None for none, in place of the one of `known_id`.

    `others` are taken away too, because one of them may be there: an answer was lost.
    """

    number: int
    label: str | None
    known_id: str | None = None
    first: bool = False
    is_final: bool = False
    is_refresh: bool = False
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelRemoval:
    """Remove a label that a person added; a label that is absent is removed already.

    `change` is the id of the change that added it: that of a later one stays. Effects that an
    older version has stored have none.
    """

    number: int
    label: str
    change: str = ""


@dataclass(frozen=True, slots=True)
class LabelReturn:
    """Add a label of a person that we have removed by mistake."""

    number: int
    label: str


def is_same(one: str, other: str) -> bool:
    """Return whether two names mean one label: providers ignore upper and lower case."""
    return one.casefold() == other.casefold()


def contains(labels: tuple[str, ...], label: str) -> bool:
    """Return whether a label is among those of a pull request."""
    return any(is_same(each, label) for each in labels)
