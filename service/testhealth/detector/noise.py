"""The noise of a repository: how often its machines make a sound test disagree.

docs/design/detector.md 6: it only ever raises the bar above the defaults.
"""

from collections.abc import Iterable, Mapping
from math import fsum, log

from service.testhealth.detector import score
from service.testhealth.detector.score import Noise, Tally

DAYS = 28
"""Complete days before a day that its noise is measured on."""

FIRST_DAYS = 3
"""Of a repository: they borrow the noise of the day after them, as their own knows nothing."""

FLOOR = Noise(a=1e-4, b=1e-3)
CEILING = Noise(a=5e-3, b=2e-2)
_ROUNDS = 3
_FLAKY_FROM = log(score.THRESHOLDS["normal"])


def measure(passing: int, verdicts: int, tests: Iterable[tuple[Tally, Tally]]) -> Noise:
    """The noise that 28 days show; FLOOR without any.

    `passing`: passing results of all tests; `verdicts`: tests run, summed over the points of all
    series; `tests`: the uncapped tallies (stream A, stream B) of each test that has an event.
    Tests that score as flaky are left out, whatever the repository's own sensitivity is.
    """
    noise, pairs = FLOOR, tuple(tests)
    for _ in range(_ROUNDS):
        sound: list[tuple[Tally, Tally]] = []
        flaky: list[tuple[Tally, Tally]] = []
        for pair in pairs:
            (flaky if score.log_score(*pair, noise) >= _FLAKY_FROM else sound).append(pair)
        runs_a = 6000 + passing - sum(a.results for a, _ in flaky)
        runs_b = 4000 + verdicts - sum(b.results for _, b in flaky)
        a = 2 * (0.3 + fsum(a.weight for a, _ in sound)) / runs_a
        b = 2 * (2 + fsum(b.weight for _, b in sound)) / runs_b
        before, noise = (
            noise,
            Noise(
                a=min(CEILING.a, max(FLOOR.a, a)),
                b=min(CEILING.b, max(FLOOR.b, b)),
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
