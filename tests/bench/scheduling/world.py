"""What CI is like around the pull requests: each property is a switch of a `World`.

`PLAIN` is the world of the figures before there were others: a run takes as long if it fails, each
slot belongs to the queue, and a flake is as probable at any time. `BELIEVABLE` has what was
measured on public runs; where no data was found, the value is an assumption and says so.

Nothing here depends on what a strategy does: what a run finds, and the noise of its time, come from
the seed and from what it tests.

Sources. *Queues*: 767 test runs of public merge queues, read from git (`arrivals.py` names the
table). *Project*: 4,424 runs of the CI of one application from April to July 2026 with the results
of its browser tests (github.com/AOE-HQ/e2e-ci-metrics, read at bfd47445). *Chromium*: false
rejections of its commit queue by day, January 5 to 11, 2015 (the group hackability-cy, week of
January 12).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

import numpy as np

from tests.bench.scheduling import chance

HOUR_S, DAY_S = 3600.0, 86400.0
HOURS = 24
BUSIEST = 8
"""The hours of a day in which the rate of a cell is reached, on average."""

Quantiles = tuple[tuple[float, float], ...]
"""A distribution: (share of the values below, value), from 0 to 1."""


@dataclass(frozen=True, slots=True)
class World:
    """What is different from the plain world; a value that is not given changes nothing.

    `first_failure`: after what share of its time the first failure of a run is known; it ends
    there. Each broken pull request, each conflict and each flake has a share of its own, and the
    earliest counts; with `is_drawn_by_run` the run has one. `time`: by what the time of a run is
    multiplied, with a mean of 1. `own_runs`: runs of CI of each pull request beside those of the
    queue, on its own branch before it is submitted. All share the slots of the account, which are
    as many as the queue may use and the own ones need on average. `built_before`: what share of
    its time a run takes whose pull requests all were built by earlier runs, which run for the
    rest of the time first. `second_look`: what share of its time a run takes if its tree has
    failed before, and after which only the failed jobs run again. `flakes`: by what the chance of a
    flake is multiplied in a period of `flakes_last_s`, drawn from these. `slow_share` of the slots
    are started when they are needed, which takes `slow_start_s`. `hours`: rates of arrivals by
    hour of the day.
    """

    first_failure: Quantiles = ()
    is_drawn_by_run: bool = False
    time: Quantiles = ()
    own_runs: float = 0.0
    built_before: float = 1.0
    second_look: float = 1.0
    flakes: tuple[float, ...] = ()
    flakes_last_s: float = DAY_S
    slow_share: float = 0.0
    slow_start_s: float = 0.0
    hours: tuple[float, ...] = ()

    def time_factor(self, key: int) -> float:
        """What the time of a run is multiplied by."""
        if not self.time:
            return 1.0
        return value_at(self.time, chance.unit(key ^ TIME_SALT)) / mean(self.time)

    def known_after(self, key: int) -> float:
        """After what share of its time a failure is known."""
        return value_at(self.first_failure, chance.unit(key ^ SHARE_SALT))

    def flake_rate(self, rate: float, seed: int, now: float) -> float:
        """The chance that a run which starts now is flaky."""
        if not self.flakes:
            return rate
        period = chance.mix(chance.mix(seed ^ FLAKES_SALT) + int(now / self.flakes_last_s))
        return min(1.0, rate * self.flakes[period % len(self.flakes)] / fmean(self.flakes))

    def time_of_day(self, seconds: Sequence[float]) -> list[float]:
        """Arrivals at an even rate, moved so that they follow the hours of the day.

        The rate stays the same on average in the `BUSIEST` hours. The first one is `FIRST_HOUR`.
        """
        if not self.hours:
            return list(seconds)
        usual = fmean(sorted(self.hours)[-BUSIEST:])
        rates = np.asarray([*self.hours[FIRST_HOUR:], *self.hours[:FIRST_HOUR]]) / usual
        days = 1 + int(seconds[-1] / (rates.sum() * HOUR_S))
        even = np.concatenate([[0.0], np.cumsum(np.tile(rates, days)) * HOUR_S])
        clock = np.arange(len(even)) * HOUR_S
        moved: list[float] = np.interp(seconds, even, clock).tolist()
        return moved


TIME_SALT, SHARE_SALT, FLAKES_SALT = 0x71AE, 0x5A4E, 0xDA75
FIRST_HOUR = 9


def value_at(quantiles: Quantiles, share: float) -> float:
    """The value below which this share lies, between two known ones along a line."""
    for (low, below), (high, above) in pairwise(quantiles):
        if share <= high:
            return below + (above - below) * (share - low) / (high - low)
    return quantiles[-1][1]


def mean(quantiles: Quantiles) -> float:
    """The mean of the distribution."""
    return sum(
        (high - low) * (below + above) / 2 for (low, below), (high, above) in pairwise(quantiles)
    )


PLAIN = World()

UNIFORM: Quantiles = ((0.0, 0.15), (1.0, 1.0))
"""Assumption of the first experiment: between 15 % and all of the time."""

SETUP = 0.2
"""Assumption, 0.1 to 0.4: checkout, installation and build before the first test."""

IN_SUITE: Quantiles = (
    (0.0, 0.001),
    (0.1, 0.003),
    (0.2, 0.02),
    (0.3, 0.056),
    (0.4, 0.068),
    (0.5, 0.139),
    (0.6, 0.309),
    (0.7, 0.437),
    (0.8, 0.626),
    (0.9, 0.688),
    (1.0, 0.995),
)
"""Place of the first failed test by the time of the tests before it.

Project: 635 runs with a failed test, on the faster of two systems, in the order of the files.
"""


def after_setup(setup: float) -> Quantiles:
    """The same as a share of the whole run."""
    return tuple((share, setup + (1 - setup) * place) for share, place in IN_SUITE)


TAIL: Quantiles = (
    (0.0, 0.5),
    (0.05, 0.62),
    (0.1, 0.72),
    (0.25, 0.87),
    (0.5, 1.0),
    (0.75, 1.14),
    (0.9, 1.59),
    (0.95, 2.46),
    (0.98, 3.9),
    (1.0, 5.0),
)
"""Minutes from the start of a run to its landing, divided by the median of the month.

Queues: 429 runs that landed. They contain short waits for others. The last two percent took up to
days because somebody held them, so 5 is an assumption.
"""

OWN_RUNS = 2.98
"""Project: runs of CI for each branch of a pull request (1,082 branches, 3,224 runs)."""

BUILT_BEFORE = 0.8
"""Assumption, 0.6 to 1: no data was found."""

SECOND_LOOK = 0.56
"""Project: time of a later attempt, divided by that of the failed one (median of 57)."""

FALSE_REJECTIONS = (5.64, 1.15, 0.68, 6.81, 3.01, 4.62, 0.0)
"""Chromium: percent of each day."""

EPISODE_S = 4 * HOUR_S
"""Assumption, 1 to 24 hours: the source has days."""

SLOW_SHARE, SLOW_START_S = 0.5, 180.0
"""Assumptions, 0 to 2 / 3 of the slots and 1 to 5 minutes."""

BY_HOUR = (
    *(0.010, 0.011, 0.012, 0.009, 0.011, 0.009, 0.009, 0.020, 0.017, 0.011, 0.028, 0.023),
    *(0.029, 0.028, 0.055, 0.083, 0.126, 0.111, 0.093, 0.095, 0.085, 0.054, 0.047, 0.029),
)
"""Queues: mean of the two with more than 100 runs, by hour in UTC."""

EARLY = World(first_failure=UNIFORM, is_drawn_by_run=True)

BELIEVABLE = World(
    first_failure=after_setup(SETUP),
    time=TAIL,
    own_runs=OWN_RUNS,
    built_before=BUILT_BEFORE,
    second_look=SECOND_LOOK,
    flakes=FALSE_REJECTIONS,
    flakes_last_s=EPISODE_S,
    slow_share=SLOW_SHARE,
    slow_start_s=SLOW_START_S,
    hours=BY_HOUR,
)

NAMED: dict[str, World] = {
    "plain": PLAIN,
    "early failures": EARLY,
    "believable": BELIEVABLE,
    "believable, failures at the end": replace(BELIEVABLE, first_failure=()),
    "believable, failures after 15 to 100 %": replace(BELIEVABLE, first_failure=UNIFORM),
    "believable, setup 40 %": replace(BELIEVABLE, first_failure=after_setup(0.4)),
    "believable, even times": replace(BELIEVABLE, time=()),
    "believable, own slots": replace(BELIEVABLE, own_runs=0.0),
    "believable, at all hours": replace(BELIEVABLE, hours=()),
    "believable, even flakes": replace(BELIEVABLE, flakes=()),
}
"""Worlds of the published figures: the three columns, and how much single values matter."""

COLUMNS = ("plain", "early failures", "believable")
