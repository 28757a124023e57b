"""Drawing a world: its tests, what makes them flaky, what breaks, when CI runs.

Everything is drawn from the seed. The truth stays here; uploads.py shows only what CI reports.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np
from numpy.random import Generator

START = datetime(2026, 3, 2, tzinfo=UTC)
DAY = timedelta(days=1)

Law = Literal["log-uniform", "heavy-tailed"]
Rerun = Literal["people", "inside", "nobody"]
Pattern = Literal["steady", "order", "hours", "drift"]

CLUSTER_MAX, CLUSTERED_SHARE = 30, 0.6
CHANGING_SHARE = 0.3
BROKEN_PRS, PR_RUNS_MAX, PR_BREAKS_MAX = 0.25, 5, 20
DAYS_PER_BREAKAGE, BREAKAGE_COMMITS_MAX, BREAKAGE_TESTS_MAX = 4, 30, 10
BAD_HOURS = (22, 24)


@dataclass(frozen=True)
class Shape:
    """What a scenario is made of; `noise` multiplies the infrastructure's faults.

    `is_odd`: matrix jobs of one name, order dependence, hours, drift, renames, skewed clocks.
    """

    name: str
    rerun: Rerun = "people"
    tests: int = 2000
    jobs: int = 4
    days: int = 45
    pr_runs: int = 40
    main_runs: int = 12
    flaky_share: float = 0.03
    noise: float = 1.0
    is_odd: bool = False


@dataclass(frozen=True)
class Cause:
    """Why tests fail now and then: it strikes a job run at `rate`, then each test at its hit.

    So each test has a rate of its own, and those that share a cause fail together as often as
    their rates allow. Days since START; in `jobs` alone, while `begin` <= day < `end`.
    """

    tests: tuple[int, ...]
    jobs: tuple[int, ...]
    rate: float
    hits: tuple[float, ...]
    begin: float
    end: float
    pattern: Pattern = "steady"

    def rate_at(self, day: float) -> float:
        """The rate at a time; its mean over a whole life is `rate`."""
        if not self.begin <= day < self.end:
            return 0.0
        match self.pattern:
            case "hours":
                hour = day % 1 * 24
                share = (BAD_HOURS[1] - BAD_HOURS[0]) / 24
                is_bad = BAD_HOURS[0] <= hour < BAD_HOURS[1]
                return min(1.0, self.rate / share) if is_bad else 0.0
            case "drift":
                return min(1.0, 2 * self.rate * (day - self.begin) / (self.end - self.begin))
            case "order" | "steady":
                return self.rate


@dataclass(frozen=True)
class Breakage:
    """Tests that fail for certain on main from one commit to another, in days since START."""

    tests: frozenset[int]
    begin: float
    end: float


@dataclass(frozen=True)
class Run:
    """One CI run: when, of what, and which tests its code breaks."""

    number: int
    day: float
    pr: int | None
    broken: frozenset[int]
    is_last: bool = False


@dataclass(frozen=True)
class World:
    """A repository's truth, and its CI runs in order of time.

    `renames`: (day, old number, new number), the new one is not among the shape's tests;
    `outages`: (begin, end, share of tests that fail).
    """

    shape: Shape
    seed: int
    causes: tuple[Cause, ...]
    breakages: tuple[Breakage, ...]
    runs: tuple[Run, ...]
    outages: tuple[tuple[float, float, float], ...]
    renames: tuple[tuple[float, int, int], ...]

    def jobs_of(self, test: int) -> tuple[int, ...]:
        """The jobs that run a test."""
        return _jobs_of(self.shape, test)


def hidden(seed: int) -> Shape:
    """A repository of which nothing is known: all that a shape says, but its days, is drawn.

    Each number lies anywhere between the least and the most that the other scenarios have, or
    beyond them; somebody re-runs what failed.
    """
    chance = np.random.default_rng([seed, *b"hidden"])

    def between(least: float, most: float) -> float:
        return float(np.exp(chance.uniform(np.log(least), np.log(most))))

    return Shape(
        "H",
        rerun="people" if chance.random() < 0.5 else "inside",
        tests=round(between(500, 4000)),
        jobs=int(chance.integers(1, 5)),
        pr_runs=round(between(20, 80)),
        main_runs=round(between(6, 24)),
        flaky_share=between(0.01, 0.1),
        noise=between(0.05, 4),
    )


def drawn(shape: Shape, law: Law, seed: int) -> World:
    """The world of a seed."""
    chance = np.random.default_rng([seed, *shape.name.encode(), len(law)])
    breakages = _breakages(shape, chance)
    causes = _causes(shape, law, chance)
    flaky = sorted({test for cause in causes for test in cause.tests})
    renames: list[tuple[float, int, int]] = []
    if shape.is_odd:
        for place, old in enumerate(flaky[:: max(1, len(flaky) // 5)]):
            renames.append((float(chance.uniform(10, 35)), old, shape.tests + place))
    outages = []
    for _ in range(chance.poisson(4 * shape.noise)):
        begin = float(chance.uniform(0, shape.days))
        length = float(chance.uniform(20, 60)) / (24 * 60)
        outages.append((begin, begin + length, float(chance.uniform(0.05, 1))))
    return World(
        shape=shape,
        seed=seed,
        causes=tuple(causes),
        breakages=tuple(breakages),
        runs=tuple(_runs(shape, breakages, chance)),
        outages=tuple(outages),
        renames=tuple(renames),
    )


def rate_of(law: Law, chance: Generator) -> float:
    """The failure rate of one flaky test."""
    low, high = 0.0005, 0.5
    if law == "heavy-tailed":
        part = chance.random()
        low, high = (low, 0.005) if part < 0.5 else (0.005, 0.1) if part < 0.75 else (0.1, high)
    return float(np.exp(chance.uniform(np.log(low), np.log(high))))


def _jobs_of(shape: Shape, test: int) -> tuple[int, ...]:
    if shape.is_odd:
        pair = test % (shape.jobs // 2)
        return (2 * pair, 2 * pair + 1)
    return (test % shape.jobs,)


def _causes(shape: Shape, law: Law, chance: Generator) -> list[Cause]:
    wanted = round(shape.tests * shape.flaky_share)
    free = [int(test) for test in chance.permutation(shape.tests)]
    causes, found = [], 0
    while found < wanted:
        left = wanted - found
        size = 1
        if found < CLUSTERED_SHARE * wanted and left > 1:
            size = min(left, int(chance.integers(2, CLUSTER_MAX + 1)))
        first = free.pop()
        jobs = _jobs_of(shape, first)
        mates = [test for test in free if _jobs_of(shape, test) == jobs][: size - 1]
        free = [test for test in free if test not in set(mates)]
        rates = [rate_of(law, chance) for _ in (first, *mates)]
        begin, end = _life(shape, chance)
        if shape.is_odd and chance.random() < 0.5:
            jobs = (jobs[int(chance.integers(len(jobs)))],)
        causes.append(
            Cause(
                tests=(first, *mates),
                jobs=jobs,
                rate=max(rates),
                hits=tuple(rate / max(rates) for rate in rates),
                begin=begin,
                end=end,
                pattern=_pattern(shape, chance),
            )
        )
        found += 1 + len(mates)
    return causes


def _life(shape: Shape, chance: Generator) -> tuple[float, float]:
    if chance.random() >= CHANGING_SHARE:
        return 0.0, float(shape.days)
    moment = float(chance.uniform(5, shape.days - 5))
    return (moment, float(shape.days)) if chance.random() < 0.5 else (0.0, moment)


def _pattern(shape: Shape, chance: Generator) -> Pattern:
    patterns: tuple[Pattern, ...] = ("steady", "steady", "order", "hours", "drift")
    return patterns[int(chance.integers(len(patterns)))] if shape.is_odd else "steady"


def _some_tests(shape: Shape, most: int, chance: Generator) -> frozenset[int]:
    """Tests of one job that break together, few more often than many."""
    count = int(np.exp(chance.uniform(0, np.log(most + 1))))
    first = int(chance.integers(shape.tests))
    return frozenset((first + shape.jobs * place) % shape.tests for place in range(count))


def _breakages(shape: Shape, chance: Generator) -> list[Breakage]:
    found = []
    for _ in range(max(1, shape.days // DAYS_PER_BREAKAGE)):
        commits = np.exp(chance.uniform(0, np.log(BREAKAGE_COMMITS_MAX)))
        begin = float(chance.uniform(1, shape.days))
        tests = _some_tests(shape, BREAKAGE_TESTS_MAX, chance)
        found.append(Breakage(tests, begin, begin + float(commits) / shape.main_runs))
    return found


def _runs(shape: Shape, breakages: list[Breakage], chance: Generator) -> list[Run]:
    """Pull requests with a few pushes each, and main, evenly over the days."""
    moments = np.sort(chance.uniform(0, shape.days, shape.pr_runs * shape.days))
    planned: list[tuple[float, int | None, frozenset[int], bool]] = []
    place, pr = 0, 0
    while place < len(moments):
        pr += 1
        pushes = int(chance.integers(1, PR_RUNS_MAX + 1))
        is_broken = chance.random() < BROKEN_PRS
        broken = _some_tests(shape, PR_BREAKS_MAX, chance) if is_broken else frozenset()
        mine = moments[place : place + pushes]
        for number, moment in enumerate(mine):
            is_last = number == len(mine) - 1
            planned.append((float(moment), pr, frozenset() if is_last else broken, is_last))
        place += pushes
    on_main = chance.uniform(0, shape.days, shape.main_runs * shape.days)
    planned += [(float(moment), None, frozenset(), False) for moment in on_main]
    planned.sort(key=lambda each: each[0])
    runs = []
    for number, (day, of_pr, own, is_last) in enumerate(planned):
        on_red = [each.tests for each in breakages if each.begin <= day < each.end]
        if of_pr is not None:
            on_red = [tests for tests in on_red if chance.random() < 0.7]
        runs.append(Run(number, day, of_pr, own.union(*on_red), is_last))
    return runs
