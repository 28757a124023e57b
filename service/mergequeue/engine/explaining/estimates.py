"""The chance that a pull request fails, from how others ended before.

See docs/design/testing.md 12.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

PRIOR = 0.05
"""The share of submissions that fail in a queue of which nothing is known yet."""

PRIOR_SAMPLES = 20
"""So many submissions weigh as much as what is assumed without them."""

P_FAIL_MIN, P_FAIL_MAX = 0.005, 0.95
"""Nothing is certain."""

DAY_S = 86_400.0
AGES_S = (DAY_S, 7 * DAY_S, 30 * DAY_S)
SIZES = (10, 100, 1000)
"""Bounds of the classes for the age of a head and the number of changed lines."""

FAILURES_TOLD_APART = 3
"""Earlier failed submissions from which on their number makes no difference."""


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which this share of a sorted sample is, linear between the two nearest.

    Raises IndexError for an empty sample.
    """
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


class OwnCi(StrEnum):
    """The states of the required checks of a head when it was submitted."""

    PASSED = "passed"
    PENDING = "pending"
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class Signs:
    """The facts known of a pull request when it was submitted; None: not known.

    `failed_before` counts its earlier submissions that FAILED, `size` changed lines, `age_s`
    how long its head had been there.
    """

    author: str
    failed_before: int = 0
    own_ci: OwnCi | None = None
    age_s: float | None = None
    size: int | None = None


class Track:
    """The ends of submissions, counted by what was known of each when it came.

    Each sign moves the odds by as much as submissions that showed it failed more or less often
    than all of them; a sign seen seldom moves them little, because its rate starts from the
    base rate with the weight of 20 submissions. Signs are taken as independent of each other.
    """

    def __init__(self) -> None:
        self._ended = 0
        self._failed = 0
        self._by_mark: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])

    def count(self, signs: Signs, *, failed: bool) -> None:
        """A submission ended by its own verdict: FAILED, or MERGED."""
        self._ended += 1
        self._failed += failed
        for mark in _marks_of(signs):
            counted = self._by_mark[mark]
            counted[0] += 1
            counted[1] += failed

    def p_fail(self, signs: Signs) -> float:
        """The chance that a submission with these signs fails: 0.005 to 0.95."""
        odds = _log_odds(_smoothed(self._failed, self._ended, PRIOR, PRIOR_SAMPLES))
        # Signs are compared with what was seen, not with what is assumed: else each of them
        # would tell once more how far the two are apart.
        seen = _smoothed(self._failed, self._ended, PRIOR, 1)
        usual = _log_odds(seen)
        for mark in _marks_of(signs):
            ended, failed = self._by_mark.get(mark, (0, 0))
            odds += _log_odds(_smoothed(failed, ended, seen, PRIOR_SAMPLES)) - usual
        return min(max(1 / (1 + math.exp(-odds)), P_FAIL_MIN), P_FAIL_MAX)


def _marks_of(signs: Signs) -> Iterator[str]:
    """The groups of submissions that one belongs to, by sign."""
    yield f"author={signs.author}"
    yield f"failed_before={min(signs.failed_before, FAILURES_TOLD_APART)}"
    if signs.own_ci is not None:
        yield f"own_ci={signs.own_ci}"
    if signs.age_s is not None:
        yield f"age={sum(signs.age_s > limit for limit in AGES_S)}"
    if signs.size is not None:
        yield f"size={sum(signs.size > limit for limit in SIZES)}"


def _smoothed(failed: int, ended: int, assumed: float, weight: int) -> float:
    """The share that failed, when `weight` more had failed at the assumed rate."""
    return (failed + weight * assumed) / (ended + weight)


def _log_odds(chance: float) -> float:
    return math.log(chance / (1 - chance))
