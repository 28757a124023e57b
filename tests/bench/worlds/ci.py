"""Playing a repository: one upload for each attempt of a job, in the ledger's words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tests.bench.flaky.figures import Truth
from tests.bench.flaky.ledger import PR, QUEUE, STABLE, Upload, bits
from tests.bench.flaky.uploads import accounts_of
from tests.bench.flaky.worlds import DAY, START
from tests.bench.worlds.shapes import Drawn, Life, Moment, Shape

RERUNS_MAX, PUSHES_MAX = 3, 5
HOURS_BEHIND = 12.0
"""A push has main's code of so many hours ago, at most."""


@dataclass(frozen=True)
class Run:
    """One CI run before it is played."""

    kind: str
    day: float
    base: float
    pr: int | None = None
    is_last_push: bool = False
    is_nightly: bool = False
    code: str = ""


@dataclass(frozen=True)
class Played:
    """What CI reported, and the truth about each flaky test."""

    shape: Shape
    uploads: Sequence[Upload]
    lives: Sequence[Life]
    truths: Sequence[Truth]


def played(shape: Shape, seed: int, name: str) -> Played:
    """Play the world of a seed; the same seed reports the same."""
    return played_by(ci_of(shape, seed, name))


def ci_of(shape: Shape, seed: int, name: str) -> "Ci":
    """Return the machines of the world of a seed."""
    people = np.random.default_rng([seed, *b"people", *name.encode()])
    return Ci(shape, np.random.default_rng([seed, *name.encode()]), people)


def played_by(ci: "Ci") -> Played:
    """Play a world to its end."""
    shape = ci.shape
    uploads = list(ci.uploads())
    lives = ci.lives()
    return Played(shape, uploads, lives, list(_truths(lives, uploads)))


class Ci:
    """The machines of a world; each question draws anew."""

    def __init__(
        self, shape: Shape, chance: np.random.Generator, people: np.random.Generator
    ) -> None:
        self.shape, self.chance = shape, chance
        pulls = round(shape.pushes * shape.days) + 1
        self.accounts = accounts_of(shape.people, pulls, people)
        self.laws: list[Drawn] = [law.drawn(shape, chance) for law in shape.laws]
        self.renames = self._renames()
        self.moments: dict[str, Moment] = {}
        self.whole = {
            job: bits(test for test in range(shape.tests) if job in shape.home_of(test))
            for job in range(shape.jobs)
        }

    def _renames(self) -> dict[int, tuple[float, int]]:
        """Old number → when it changes, and the new one."""
        found: dict[int, tuple[float, int]] = {}
        for test in sorted({life.test for law in self.laws for life in law.lives()}):
            if self.chance.random() < self.shape.renamed:
                day = float(self.chance.uniform(10, 35))
                found[test] = day, self.shape.tests + len(found)
        return found

    def lives(self) -> list[Life]:
        """Every flaky test under each of its numbers."""
        found = []
        for life in (life for law in self.laws for life in law.lives()):
            day, new = self.renames.get(life.test, (float(self.shape.days), life.test))
            if life.begin < day:
                found.append(replace(life, end=min(life.end, day)))
            if life.end > day:
                found.append(replace(life, test=new, begin=max(life.begin, day)))
        return found

    def uploads(self) -> Iterator[Upload]:
        """Run by run, in order of time."""
        for number, run in enumerate(self._runs()):
            homes = self._homes()
            for job in range(self.shape.jobs):
                if not self.shape.nightly or run.is_nightly == (job > 0):
                    yield from self._attempts(number, run, job, homes[job])

    def _homes(self) -> dict[int, int]:
        """By job, a bit for each test that it runs this time."""
        if not self.shape.shuffles:
            return self.whole
        of = self.chance.integers(self.shape.jobs, size=self.shape.tests)
        return {job: bits(map(int, np.flatnonzero(of == job))) for job in range(self.shape.jobs)}

    def _runs(self) -> list[Run]:
        shape, chance, found = self.shape, self.chance, list[Run]()
        moments = np.sort(chance.uniform(0, shape.days, round(shape.pushes * shape.days)))
        place, pr = 0, 0
        while place < len(moments):
            pr += 1
            pushes = int(chance.integers(1, PUSHES_MAX + 1))
            # Pushes of one pull request lie some hours apart, those of others between them.
            mine = np.sort(moments[place] + chance.exponential(0.15, pushes))
            for number, day in enumerate(map(float, mine[mine < shape.days])):
                base = day - float(chance.uniform(0, HOURS_BEHIND)) / 24
                is_last = number == pushes - 1
                found.append(Run(PR, day, base, pr, is_last))
                if is_last and shape.by_queue:
                    at, code = day + 0.01, f"sha:q{pr:06}"
                    found.append(Run(QUEUE, at, at, code=code))
                    if shape.tests_main:
                        found.append(Run(STABLE, at + 0.01, at + 0.01, code=code))
            place += pushes
        if shape.tests_main and not shape.by_queue:
            days = map(float, chance.uniform(0, shape.days, round(shape.main * shape.days)))
            found += [Run(STABLE, day, day) for day in days]
        if shape.nightly:
            nights = (night + 0.1 for night in range(shape.days))
            found += [Run(STABLE, day, day, is_nightly=True) for day in nights]
        return sorted(found, key=lambda run: run.day)

    def _attempts(self, number: int, run: Run, job: int, home: int) -> Iterator[Upload]:
        """The job, and again by people who do not believe it."""
        shape, chance = self.shape, self.chance
        day = run.day + float(chance.uniform(0, 5)) / (24 * 60)
        wanted = home
        for attempt in range(1, RERUNS_MAX + 2):
            machine = int(chance.integers(shape.machines))
            moment = Moment(
                *(number, job, attempt, day, run.base, machine, run.pr, run.is_last_push)
            )
            failed = self._failing(moment) & wanted
            letters = dict.fromkeys(_places(failed), "F")
            passed = wanted & ~failed
            if shape.rerun == "inside" and letters:
                again = self._failing(replace(moment, attempt=attempt + 1))
                letters = {no: "FF" if again >> no & 1 else "FP" for no in letters}
            yield self._upload(number, run, moment, passed, letters)
            is_red = any(each[-1] == "F" for each in letters.values())
            believes = chance.random() >= shape.rerun_share
            if not is_red or believes or shape.rerun in {"nobody", "inside"}:
                return
            if shape.rerun == "failed tests":
                wanted = failed
            day += float(chance.uniform(10, 120)) / (24 * 60)
            if day >= shape.days:
                return

    def _failing(self, moment: Moment) -> int:
        return bits(test for law in self.laws for test in law.failing(moment, self.chance))

    def _upload(
        self, number: int, run: Run, moment: Moment, passed: int, letters: dict[int, str]
    ) -> Upload:
        for old, (since, new) in self.renames.items():
            if since <= run.base:
                if passed >> old & 1:
                    passed = passed & ~(1 << old) | 1 << new
                if old in letters:
                    letters[new] = letters.pop(old)
        shape, digest = self.shape, f"{number:06}.{moment.job}.{moment.attempt}"
        self.moments[digest] = moment
        return Upload(
            digest=digest,
            at=START + DAY * moment.day,
            kind=run.kind,
            job=f"job {moment.job + 1}",
            code=run.code or f"sha:{number:07}",
            run=str(number) if shape.has_runs else "",
            passed=passed,
            attempts=letters,
            run_attempt=moment.attempt,
            machine=f"runner {moment.machine + 1}" if shape.has_machine_names else "",
            branch="main" if run.pr is None else f"topic-{run.pr}",
            pr=run.pr,
            position=number if shape.has_positions else None,
            begun_by="" if run.pr is None else self.accounts[run.pr],
        )


def _places(marks: int) -> Iterator[int]:
    while marks:
        low = marks & -marks
        yield low.bit_length() - 1
        marks ^= low


def _truths(lives: Sequence[Life], uploads: Sequence[Upload]) -> Iterator[Truth]:
    """What each flaky test is expected to do in a day, by how often its jobs run."""
    first = [each for each in uploads if each.run_attempt == 1]
    days = max((each.at - START) / DAY for each in first)
    ran: dict[int, float] = {}
    by_test: dict[int, list[tuple[float, float, float]]] = {}
    rates: dict[int, float] = {}
    for life in lives:
        if life.test not in ran:
            span = [each for each in first if each.letters(life.test)]
            begun = {each.job for each in span}
            length = max(1.0, (span[-1].at - span[0].at) / DAY) if span else days
            ran[life.test] = len(span) / length * len(life.jobs) / max(len(begun), len(life.jobs))
        expected = life.rate * ran[life.test]
        by_test.setdefault(life.test, []).append((life.begin, life.end, expected))
        rates[life.test] = max(rates.get(life.test, 0.0), life.rate)
    for test, of in by_test.items():
        yield Truth(test, tuple(of), rates[test])
