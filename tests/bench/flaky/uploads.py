"""What the CI of a world reports: one upload for each attempt of a job."""

from collections.abc import Iterator
from datetime import timedelta

import numpy as np
from numpy.random import Generator

from tests.bench.flaky.ledger import PR, STABLE, Upload, bits
from tests.bench.flaky.worlds import DAY, START, Cause, Run, World

LOSING_JOBS, LOSING_MANY = 0.02, 0.004
RERUN_SHARE, RERUNS_MAX = 0.5, 3
FAULT_LASTS = 0.5
"""Chance that a fault of the machine is still there for a retry inside the job."""

SAME_ORDER = 0.7
"""Chance that a re-run shuffles the tests as the first run did."""

SKEW_MINUTES = 3
PEOPLE = 20
JOB_NAMES = ("unit / linux", "e2e / linux", "unit / mac", "e2e / mac")
MATRIX_NAMES = ("unit / linux", "unit / mac", "e2e / linux", "e2e / mac")


def accounts_of(people: int, pulls: int, chance: Generator) -> list[str]:
    """Who opens each pull request; the busiest twice as many as the next, and so on."""
    share = 1 / np.arange(1, people + 1)
    return [str(each) for each in chance.choice(people, pulls, p=share / share.sum())]


def reported(world: World) -> list[Upload]:
    """Every upload of a world; the same world reports the same."""
    return list(Ci(world).uploads())


class Ci:
    """The machines of a world; each question draws anew."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = np.random.default_rng([world.seed, 2])
        shape = world.shape
        self._names = MATRIX_NAMES if shape.is_odd else JOB_NAMES
        self._tests = {
            job: [test for test in range(shape.tests) if job in world.jobs_of(test)]
            for job in range(shape.jobs)
        }
        self._bits = {job: bits(tests) for job, tests in self._tests.items()}
        self._causes: dict[int, list[Cause]] = {
            job: [cause for cause in world.causes if job in cause.jobs] for job in range(shape.jobs)
        }
        pulls = max((run.pr or 0 for run in world.runs), default=0) + 1
        self._accounts = accounts_of(PEOPLE, pulls, np.random.default_rng([world.seed, 3]))
        self._orders: dict[tuple[int, int, str], frozenset[int]] = {}

    def uploads(self) -> Iterator[Upload]:
        """What is reported, run by run."""
        for run in self._world.runs:
            for job in range(self._world.shape.jobs):
                yield from self._attempts(run, job)

    def _attempts(self, run: Run, job: int) -> Iterator[Upload]:
        """The job, and again by people who do not believe it."""
        day = run.day + float(self._chance.uniform(0, 5)) / (24 * 60)
        for attempt in range(1, RERUNS_MAX + 2):
            letters = self.letters(run, job, day)
            yield self._upload(run, job, (day, attempt), letters)
            is_red = any(each[-1] == "F" for each in letters.values())
            believes = self._chance.random() >= RERUN_SHARE
            if not is_red or self._world.shape.rerun != "people" or believes:
                return
            day += float(self._chance.uniform(10, 120)) / (24 * 60)
            if day >= self._world.shape.days:
                return

    def tests_in(self, job: int) -> int:
        """How many tests a job runs."""
        return len(self._tests[job])

    def letters(self, run: Run, job: int, day: float) -> dict[int, str]:
        """The attempts of every test that failed in one attempt of a job."""
        broken = run.broken & frozenset(self._tests[job]) if run.broken else run.broken
        lost = self._lost(job, day)
        flaky = self._flaky(run, job, day)
        letters = dict.fromkeys(broken | lost | flaky, "F")
        if self._world.shape.rerun == "inside":
            again = self._flaky(run, job, day)
            lasts = {test for test in lost if self._chance.random() < FAULT_LASTS}
            for test in letters:
                letters[test] = "FF" if test in broken | lasts | again else "FP"
        return letters

    def _flaky(self, run: Run, job: int, day: float) -> frozenset[int]:
        found: set[int] = set()
        for place, cause in enumerate(self._causes[job]):
            rate = cause.rate_at(day)
            if not rate:
                continue
            key = (run.number, place, str(job))
            known = self._orders.get(key) if cause.pattern == "order" else None
            if known is not None and self._chance.random() < SAME_ORDER:
                found |= known
                continue
            struck = frozenset[int]()
            if self._chance.random() < rate:
                drawn = self._chance.random(len(cause.tests))
                struck = frozenset(
                    test
                    for test, hit, part in zip(cause.tests, cause.hits, drawn, strict=True)
                    if part < hit
                )
            if cause.pattern == "order":
                self._orders[key] = struck
            found |= struck
        return frozenset(found)

    def _lost(self, job: int, day: float) -> frozenset[int]:
        """Tests that the machine fails."""
        noise, tests = self._world.shape.noise, self._tests[job]
        for begin, end, share in self._world.outages:
            if begin <= day < end:
                return _sample(tests, max(1, round(share * len(tests))), self._chance)
        part = self._chance.random()
        if part < LOSING_MANY * noise:
            share = float(self._chance.uniform(0.05, 1))
            return _sample(tests, max(1, round(share * len(tests))), self._chance)
        if part < (LOSING_MANY + LOSING_JOBS) * noise:
            return _sample(tests, int(self._chance.integers(1, 4)), self._chance)
        return frozenset()

    def _upload(
        self, run: Run, job: int, when: tuple[float, int], letters: dict[int, str]
    ) -> Upload:
        day, attempt = when
        skew = timedelta()
        if self._world.shape.is_odd:
            skew = timedelta(minutes=float(self._chance.uniform(-SKEW_MINUTES, SKEW_MINUTES)))
        renamed = {old: new for since, old, new in self._world.renames if since <= run.day}
        passed = self._bits[job] & ~bits(letters)
        for old, new in renamed.items():
            if passed >> old & 1:
                passed = passed & ~(1 << old) | 1 << new
            if old in letters:
                letters[new] = letters.pop(old)
        return Upload(
            digest=f"{run.number:06}.{job}.{attempt}",
            at=START + DAY * day + skew,
            kind=STABLE if run.pr is None else PR,
            job=self._names[job],
            code=f"sha:{run.number:07}",
            run=str(run.number),
            passed=passed,
            attempts=letters,
            run_attempt=attempt,
            branch="main" if run.pr is None else f"topic-{run.pr}",
            pr=run.pr,
            position=run.number,
            begun_by="" if run.pr is None else self._accounts[run.pr],
        )


def _sample(tests: list[int], count: int, chance: Generator) -> frozenset[int]:
    return frozenset(int(test) for test in chance.choice(tests, min(count, len(tests)), False))
