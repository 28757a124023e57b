"""The noise of a repository: how often its machines make a sound test disagree.

docs/design/detector.md 6: it only ever raises the bar above the defaults.
"""

from collections.abc import Iterable, Mapping
from math import fsum, log

from service.testhealth.detector import score
from service.testhealth.detector.score import Noise, Tallies

DAYS = 28
"""Complete days before a day that its noise is measured on."""

FIRST_DAYS = 3
"""Of a repository: they borrow the noise of the day after them, as their own knows nothing."""

FLOOR = Noise(a=1e-4, b=1e-3, c=5e-4)
CEILING = Noise(a=5e-3, b=2e-2, c=2e-2)
_ROUNDS = 3
_FLAKY_FROM = log(score.THRESHOLDS["normal"])
_SUSPECT_FROM, _SUSPECT_WEIGHT = log(10), 1.5
"""Tests of several observations with this score are no noise either.

Of sound tests 1 in 10 reach it, and few of these by more than one observation. Otherwise the flaky
tests that are not found yet would hide each other.
"""


def measure(passing: int, verdicts: int, tests: Iterable[Tallies]) -> Noise:
    """The noise that 28 days show; FLOOR without any.

    `passing`: passing results of all tests; `verdicts`: tests run, summed over the points of all
    series; `tests`: the uncapped tallies of each test that has an event.
    Tests that are rather flaky than sound are left out, whatever the repository's own sensitivity
    is.
    """
    noise, all_tests = FLOOR, tuple(tests)
    for _ in range(_ROUNDS):
        sound: list[Tallies] = []
        flaky: list[Tallies] = []
        for each in all_tests:
            limit = _SUSPECT_FROM if each.weight >= _SUSPECT_WEIGHT else _FLAKY_FROM
            (flaky if score.log_score(each, noise) >= limit else sound).append(each)
        runs_a = passing - sum(each.a.results for each in flaky)
        runs_b = 4000 + verdicts - sum(each.b.results for each in flaky)
        a = 2 * (0.3 + fsum(each.a.weight for each in sound)) / (6000 + runs_a)
        b = 2 * (2 + fsum(each.b.weight for each in sound)) / runs_b
        c = 2 * (2 + fsum(each.c.weight for each in sound)) / (8000 + runs_a)
        before, noise = (
            noise,
            Noise(
                a=min(CEILING.a, max(FLOOR.a, a)),
                b=min(CEILING.b, max(FLOOR.b, b)),
                c=min(CEILING.c, max(FLOOR.c, c)),
            ),
        )
        if noise == before:
            break
    return noise


def day_in_force(day: int, first_day: int, newest_day: int) -> int:
    """The day whose noise an event of `day` is held against; days as `date.toordinal`.

    `first_day` is that of the repository's first eligible upload, `newest_day` that of its
    evidence clock.
    """
    if day < first_day + FIRST_DAYS:
        return min(newest_day, first_day + FIRST_DAYS)
    return day


def in_force(day: int, first_day: int, newest_day: int, measured: Mapping[int, Noise]) -> Noise:
    """The noise an event of `day` is held against; FLOOR where `measured` has none for that day."""
    return measured.get(day_in_force(day, first_day, newest_day), FLOOR)
