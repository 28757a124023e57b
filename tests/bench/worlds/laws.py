"""Why tests fail: one small class for each reason.

A law is a value; `drawn` makes of it what it hits in one repository. Rates are those of one
attempt of a job.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from tests.bench.worlds.shapes import Drawn, Life, Moment, Shape

Spell = tuple[float, float]
"""First and last day of something."""

CLUSTER_MAX, SAME_ORDER = 8, 0.7
DAY_MINUTES = 24 * 60


@dataclass
class Rates:
    """Flaky tests with a rate each; `now` says by how much it is multiplied at a moment."""

    found: Sequence[Life]
    now: Callable[[Moment], float] = field(default=lambda moment: 1.0)

    def lives(self) -> Iterable[Life]:
        """The flaky tests."""
        return self.found

    def failing(self, moment: Moment, chance: Generator) -> Iterable[int]:
        """Each test for itself, while it lives in the code that is tested."""
        factor = self.now(moment)
        draws = chance.random(len(self.found))
        return [
            life.test
            for life, part in zip(self.found, draws, strict=True)
            if part < life.rate * factor
            and life.begin <= moment.base < life.end
            and moment.job in life.jobs
        ]


@dataclass
class Innocent:
    """Something that fails tests that are not flaky."""

    hits: Callable[[Moment, Generator], Iterable[int]]

    def lives(self) -> Iterable[Life]:
        """None."""
        return ()

    def failing(self, moment: Moment, chance: Generator) -> Iterable[int]:
        """What it fails now."""
        return self.hits(moment, chance)


def _rates(count: int, low: float, high: float, chance: Generator) -> list[float]:
    return [float(each) for each in np.exp(chance.uniform(np.log(low), np.log(high), count))]


def _some(shape: Shape, most: int, chance: Generator) -> list[int]:
    """Tests of one job, few more often than many."""
    count = int(np.exp(chance.uniform(0, np.log(most + 1))))
    first = int(chance.integers(shape.tests))
    return [(first + shape.jobs * place) % shape.tests for place in range(count)]


@dataclass(frozen=True)
class Flaky:
    """Tests that fail at random; `changing` of them begin or end within the time.

    `share` of all tests, at rates between `low` and `high`; `in_one_job` of a matrix; `short`: all
    live for 4 to 12 days.
    """

    share: float = 0.04
    low: float = 0.002
    high: float = 0.4
    changing: float = 0.3
    in_one_job: bool = False
    short: bool = False

    def drawn(self, shape: Shape, chance: Generator) -> Drawn:
        """Draw the tests."""
        return Rates(list(self.lives(shape, chance)))

    def lives(self, shape: Shape, chance: Generator) -> Iterable[Life]:
        """Draw each test's rate and life."""
        tests = chance.permutation(shape.tests)[: max(3, round(shape.tests * self.share))]
        for test, rate in zip(tests, _rates(len(tests), self.low, self.high, chance), strict=True):
            jobs = shape.home_of(int(test))
            if self.in_one_job:
                jobs = (jobs[int(chance.integers(len(jobs)))],)
            yield Life(int(test), *self._spell(shape, chance), rate, jobs)

    def _spell(self, shape: Shape, chance: Generator) -> Spell:
        days = float(shape.days)
        if self.short:
            begin = float(chance.uniform(0, days - 4))
            return begin, min(days, begin + float(chance.uniform(4, 12)))
        if chance.random() >= self.changing:
            return 0.0, days
        moment = float(chance.uniform(5, days - 5))
        return (moment, days) if chance.random() < 0.5 else (0.0, moment)


@dataclass(frozen=True)
class AtHours:
    """Flaky tests that fail between 22 and 24 o'clock alone; the rate is the mean of a day."""

    flaky: Flaky = field(default_factory=lambda: Flaky(high=0.05))

    def drawn(self, shape: Shape, chance: Generator) -> Drawn:
        """Draw the tests."""
        return Rates(
            list(self.flaky.lives(shape, chance)), lambda at: 12.0 * (at.day % 1 >= 22 / 24)
        )


@dataclass
class _Ordered:
    rates: Rates
    known: dict[tuple[int, int, int], bool] = field(default_factory=dict)

    def lives(self) -> Iterable[Life]:
        return self.rates.lives()

    def failing(self, moment: Moment, chance: Generator) -> Iterable[int]:
        struck = set(self.rates.failing(moment, chance))
        for life in self.rates.found:
            key = (moment.run, moment.job, life.test)
            if key in self.known and chance.random() < SAME_ORDER:
                (struck.add if self.known[key] else struck.discard)(life.test)
            self.known.setdefault(key, life.test in struck)
        return struck


@dataclass(frozen=True)
class ByOrder:
    """Flaky tests that hang on the order of tests, which a re-run mostly repeats."""

    flaky: Flaky = field(default_factory=Flaky)

    def drawn(self, shape: Shape, chance: Generator) -> Drawn:
        """Draw the tests."""
        return _Ordered(Rates(list(self.flaky.lives(shape, chance))))


@dataclass(frozen=True)
class HalfFixed:
    """Flaky tests that a fix made rarer: a tenth of the rate from the middle on."""

    flaky: Flaky = field(default_factory=lambda: Flaky(low=0.05, changing=0.0))
    rarer: float = 0.1

    def drawn(self, shape: Shape, chance: Generator) -> Drawn:
        """Draw the tests; each has two lives."""
        found = []
        for life in self.flaky.lives(shape, chance):
            fix = float(chance.uniform(15, 30))
            found.append(Life(life.test, 0.0, fix, life.rate, life.jobs))
            rare = life.rate * self.rarer
            found.append(Life(life.test, fix, float(shape.days), rare, life.jobs))
        return Rates(found)


@dataclass(frozen=True)
class Clusters:
    """Flaky tests that share causes: a cause strikes, and fails each of its tests or not."""

    causes: int = 4
    low: float = 0.005
    high: float = 0.2

    def drawn(self, shape: Shape, chance: Generator) -> Drawn:
        """Draw the causes."""
        found = []
        for rate in _rates(self.causes, self.low, self.high, chance):
            tests = _some(shape, CLUSTER_MAX, chance)
            hits = [float(each) for each in chance.uniform(0.4, 1, len(tests))]
            found.append((rate, list(zip(tests, hits, strict=True))))
        return _Shared(shape, found)


@dataclass
class _Shared:
    shape: Shape
    causes: list[tuple[float, list[tuple[int, float]]]]

    def lives(self) -> Iterable[Life]:
        days = float(self.shape.days)
        for rate, tests in self.causes:
            for test, hit in tests:
                yield Life(test, 0.0, days, rate * hit, self.shape.home_of(test))

    def failing(self, moment: Moment, chance: Generator) -> Iterable[int]:
        for rate, tests in self.causes:
            if chance.random() < rate:
                for test, hit in tests:
                    if moment.job in self.shape.home_of(test) and chance.random() < hit:
                        yield test


@dataclass(frozen=True)
class Losses:
    """Machines that now and then fail a few tests of a job, and rarely many."""

    few: float = 0.02
    many: float = 0.004

    def drawn(self, shape: Shape, chance: Generator) -> Drawn:
        """Nothing is drawn before."""

        def hits(moment: Moment, chance: Generator) -> Iterable[int]:
            part = chance.random()
            if part >= self.few + self.many:
                return ()
            count = int(chance.integers(1, 4))
            if part < self.many:
                count = round(shape.tests * float(chance.uniform(0.05, 0.8)))
            return [int(test) for test in chance.choice(shape.tests, count, False)]

        return Innocent(hits)


@dataclass(frozen=True)
class Outages:
    """Times of 20 to 90 minutes in which a part of the tests fails."""

    count: int = 12
    least: float = 0.03
    most: float = 0.6

    def drawn(self, shape: Shape, chance: Generator) -> Drawn:
        """Draw the times."""
        spells = []
        for _ in range(self.count):
            begin = float(chance.uniform(0, shape.days))
            end = begin + float(chance.uniform(20, 90)) / DAY_MINUTES
            share = float(chance.uniform(self.least, self.most))
            tests = chance.choice(shape.tests, max(1, round(share * shape.tests)), False)
            spells.append((begin, end, [int(test) for test in tests]))

        def hits(moment: Moment, chance: Generator) -> Iterable[int]:
            return [
                test
                for begin, end, tests in spells
                if begin <= moment.day < end
                for test in tests
                if chance.random() < 0.8
            ]

        return Innocent(hits)


@dataclass(frozen=True)
class BadService:
    """Tests that use one service, which is away for a few minutes now and then."""

    users: float = 0.1
    strikes: float = 0.4
    minutes: float = 60

    def drawn(self, shape: Shape, chance: Generator) -> Drawn:
        """Draw who uses it, and when it is away."""
        users = chance.choice(shape.tests, round(self.users * shape.tests), False)
        begins = chance.uniform(0, shape.days, round(self.strikes * shape.days))

        def hits(moment: Moment, chance: Generator) -> Iterable[int]:
            away = (begins <= moment.day) & (moment.day < begins + self.minutes / DAY_MINUTES)
            if not away.any():
                return ()
            return [int(test) for test in users if chance.random() < 0.5]

        return Innocent(hits)


@dataclass(frozen=True)
class BadMachine:
    """From `begin` to `end` one machine fails `share` of the tests, others each time.

    `fixed`: always the same tests, each at a chance of its own.
    """

    begin: float = 8
    end: float = 30
    share: float = 0.02
    fixed: int = 0

    def drawn(self, shape: Shape, chance: Generator) -> Drawn:
        """Draw the tests that it fails, if they are fixed."""
        fixed = [int(test) for test in chance.choice(shape.tests, self.fixed, False)]
        often = chance.uniform(0.3, 0.9, self.fixed)

        def hits(moment: Moment, chance: Generator) -> Iterable[int]:
            if moment.machine or not self.begin <= moment.day < self.end:
                return ()
            if fixed:
                pairs = zip(fixed, often, strict=True)
                return [test for test, part in pairs if chance.random() < part]
            return [int(t) for t in np.flatnonzero(chance.random(shape.tests) < self.share)]

        return Innocent(hits)


@dataclass(frozen=True)
class BrokenPulls:
    """Pull requests that break tests until their last push."""

    share: float = 0.25
    most: int = 15

    def drawn(self, shape: Shape, chance: Generator) -> Drawn:
        """What a pull request breaks is drawn when it is met first."""
        broken: dict[int, list[int]] = {}

        def hits(moment: Moment, chance: Generator) -> Iterable[int]:
            if moment.pr is None:
                return ()
            if moment.pr not in broken:
                is_bad = chance.random() < self.share
                broken[moment.pr] = _some(shape, self.most, chance) if is_bad else []
            return () if moment.is_last_push else broken[moment.pr]

        return Innocent(hits)


@dataclass(frozen=True)
class BrokenMain:
    """Commits that break tests on main, for everybody who has them, until they are mended."""

    every_days: float = 4
    hours: Spell = (1, 30)
    most: int = 10

    def drawn(self, shape: Shape, chance: Generator) -> Drawn:
        """Draw the times and the tests."""
        spells = []
        for _ in range(round(shape.days / self.every_days)):
            begin = float(chance.uniform(1, shape.days))
            hours = float(np.exp(chance.uniform(*np.log(self.hours))))
            spells.append((begin, begin + hours / 24, _some(shape, self.most, chance)))

        def hits(moment: Moment, chance: Generator) -> Iterable[int]:
            on = (tests for begin, end, tests in spells if begin <= moment.base < end)
            return [test for tests in on for test in tests]

        return Innocent(hits)


@dataclass(frozen=True)
class Fragile:
    """Sound tests that many pull requests break by themselves, such as pictures of pages."""

    tests: int = 4
    share: float = 0.06

    def drawn(self, shape: Shape, chance: Generator) -> Drawn:
        """Draw the tests; what a pull request breaks is drawn when it is met first."""
        chosen = [int(test) for test in chance.choice(shape.tests, self.tests, False)]
        broken: dict[int, list[int]] = {}

        def hits(moment: Moment, chance: Generator) -> Iterable[int]:
            if moment.pr is None:
                return ()
            if moment.pr not in broken:
                some = [test for test in chosen if chance.random() < self.share]
                broken[moment.pr] = some
            return () if moment.is_last_push else broken[moment.pr]

        return Innocent(hits)
