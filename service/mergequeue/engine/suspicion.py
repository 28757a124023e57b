"""What is believed of a pull request whose tests failed, with the evidence for it.

docs/explanation/belief.md. Values and what makes them; the sentences for people are in `wording`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from service.mergequeue.engine.belief import Charge
from service.mergequeue.engine.records import Suspect

RUNS_MAX = 3
"""Failed runs with others that are kept, the newest."""

OTHERS_MAX = 20
"""Other pull requests of one run that are kept, the first in the order of the run."""

UNDECIDED_PERCENT_MAX = 99
"""Only a verdict makes it certain."""


class Fate(StrEnum):
    """What became of a pull request after a failed run with it."""

    UNDECIDED = "undecided"
    PASSED = "passed"
    MERGED = "merged"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class Other:
    """Another pull request that could have caused the same failure."""

    pr: int
    fate: Fate


@dataclass(frozen=True, slots=True)
class FailedTogether:
    """A failed run that others could have caused as well; `more` of them are not listed."""

    run: str
    others: tuple[Other, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The chance that a pull request is broken, and the failed runs that say so.

    `percent` is a whole number, 100 only after a verdict. `alone` counts the failed runs that it
    alone could have caused, `together` those that others could have caused as well; the newest of
    these are listed, the oldest first.
    """

    percent: int
    alone: int
    together: int
    newest_together: tuple[FailedTogether, ...] = ()


def made_of(
    charges: Sequence[Charge],
    chance: float,
    fate_of: Callable[[Suspect], Fate],
    *,
    is_convicted: bool,
) -> Suspicion:
    """Return what these charges say of the entry that they are against."""
    together = [charge for charge in charges if not charge.is_alone]
    percent = max(1, round(100 * chance))
    return Suspicion(
        percent=percent if is_convicted else min(percent, UNDECIDED_PERCENT_MAX),
        alone=len(charges) - len(together),
        together=len(together),
        newest_together=tuple(_others(one, fate_of) for one in together[-RUNS_MAX:]),
    )


def _others(charge: Charge, fate_of: Callable[[Suspect], Fate]) -> FailedTogether:
    shown = tuple(Other(one.pr, fate_of(one)) for one in charge.others[:OTHERS_MAX])
    return FailedTogether(charge.record.run, shown, len(charge.others) - len(shown))
