"""The belief about a pull request whose tests failed, with the evidence for it.

docs/explanation/belief.md. `policy/suspecting.py` makes these values; the sentences for people are
in `wording`.
"""

from dataclasses import dataclass
from enum import StrEnum


class Fate(StrEnum):
    """The fates of a pull request after a failed run with it."""

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
