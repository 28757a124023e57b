"""Attempts of a test, and events with weights where they disagree (docs/design/detector.md 3).

Nothing here knows when a test is flaky.
"""

from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import groupby, pairwise
from typing import TypeVar

WINDOW_DAYS = 14
"""An event is scored with those of its UTC day and the 13 before."""

LONG_DAYS = 28
"""The same for a test that fails too seldom for WINDOW_DAYS."""

SOURCE_MAX = 2.0
"""The most that the events of one pull request or one other branch weigh within a window."""

MACHINE_MAX, MACHINES_MIN = 1.0, 3
"""The most that one machine adds to what all others show: a machine may be bad, not the test.

With fewer machines under a job, nobody can tell the two apart.
"""

PUSHES_MAX = 1.0
"""The same of stream C: the next push may have mended what failed, so other ones must agree.

And of stream R: no pull request alone makes a test flaky by having it repeated.
"""

AUTHOR_MAX = 2.0
"""The most that events of stream C weigh of one account, or of unknown ones; of stream R it is
PUSHES_MAX, since two of them make a test flaky."""

MASS_TESTS, MASS_SHARE = 20, 0.8
RUN_CROWD = 25.0
CROWD_MIN, CROWD_MAX, TESTS_PER_CROWD = 2.0, 5.0, 4
_UNITS = 1_000_000
Key = TypeVar("Key")


class Stream(StrEnum):
    """A: passed and failed on the same code. B: alone between its neighbors in a series.

    C: in one push of a pull request alone (pushes.py). R: when it was repeated (repeats.py).
    """

    A = "A"
    B = "B"
    C = "C"
    R = "R"


@dataclass(frozen=True, slots=True, order=True)
class GroupAttempt:
    """One comparable attempt: passed or failed, at the `ran_at` and `place` of its upload."""

    at: datetime
    upload: str
    place: int
    passed: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Comparable attempts of one test, one job key, one code id over all eligible uploads.

    In any order; `is_ambiguous` says that several machines report under the job key, so that
    attempts compare only inside one upload.
    """

    job: str
    code: str
    attempts: tuple[GroupAttempt, ...]
    is_ambiguous: bool = False


@dataclass(frozen=True, slots=True)
class Charged:
    """The figures that an upload adds to the events charged to it.

    `tests_run`: its tests that passed or failed; `disagreeing`: how many of those that failed
    in it have a group with a transition; `disagreeing_in_run`: the same over all uploads of its
    CI run and attempt, each test once (without a run: the same number). `source` names the pull
    request or the other branch whose events are capped together; empty for stable branches and
    the queue's runs. `machine` is empty if the upload names none.
    """

    tests_run: int
    disagreeing: int
    disagreeing_in_run: int
    source: str = ""
    machine: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """One disagreement of one test.

    `at` is known when the later neighbor is; `weight` is above 0, at most 1, to 6 digits.
    `branch` and `passed` are of stream B: the series' branch, and whether the lonely verdict
    was the passed one. `upload` is the one charged, of stream A. `machine` is where it failed,
    empty if unknown. `author` is of streams C and R: who began the CI run, empty if unknown.
    `rounds` is of stream R: how often its plan ran the test. Ordered as the fold reads them.
    """

    at: datetime
    stream: Stream
    job: str
    code: str
    weight: float
    upload: str = ""
    source: str = ""
    branch: str = ""
    passed: bool = False
    machine: str = ""
    author: str = ""
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class Passes:
    """Passing results of one test: uploads in which it has a passed comparable attempt.

    `by_day` counts them, for 14 days before the first event and all after it; `times` has the
    sorted times of those on the days on which an event falls, and may have more.
    """

    by_day: Mapping[int, int]
    times: Mapping[int, tuple[datetime, ...]]

    def between(self, first_day: int, last_day: int) -> int:
        """Return how many there were on these whole days."""
        return sum(self.by_day.get(day, 0) for day in range(first_day, last_day + 1))

    def until(self, first_day: int, at: datetime) -> int:
        """Return how many there were from the beginning of a day up to and including `at`."""
        day = at.toordinal()
        return self.between(first_day, day - 1) + bisect_right(self.times.get(day, ()), at)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A transition that counts: when it was known, and the upload of the failed neighbor."""

    at: datetime
    upload: str


def is_mass_failure(tests_run: int, failed: int) -> bool:
    """Return whether so much of an upload failed that it says nothing about single tests."""
    return tests_run >= MASS_TESTS and failed >= MASS_SHARE * tests_run


def disagreements(group: Group) -> tuple[Disagreement, ...]:
    """Each odd transition (1st, 3rd, ...) of the group, oldest first; empty: it agrees."""
    return tuple(each for attempts in _comparable(group) for each in _odd(attempts))


def on_shared(events: Iterable[Event], machines: Mapping[str, Sized]) -> Iterator[Event]:
    """The events, with their machines where enough of these share the job.

    `machines`: by job, all that are named in its uploads.
    """
    for event in events:
        is_shared = len(machines.get(event.job, ())) >= MACHINES_MIN
        yield event if is_shared or not event.machine else replace(event, machine="")


def _comparable(group: Group) -> Iterator[list[GroupAttempt]]:
    if group.is_ambiguous:
        by_upload = sorted(group.attempts, key=lambda attempt: (attempt.upload, attempt))
        for _, attempts in groupby(by_upload, key=lambda attempt: attempt.upload):
            yield list(attempts)
    else:
        yield sorted(group.attempts)


def _odd(attempts: Iterable[GroupAttempt]) -> Iterator[Disagreement]:
    is_odd = False
    for earlier, later in pairwise(attempts):
        if earlier.passed != later.passed:
            is_odd = not is_odd
            if is_odd:
                yield Disagreement(later.at, (later if earlier.passed else earlier).upload)


def events_of(group: Group, charged: Mapping[str, Charged]) -> tuple[Event, ...]:
    """The group's events of stream A; `charged` has every upload with a failed attempt in it."""
    return tuple(
        Event(
            at=each.at,
            stream=Stream.A,
            job=group.job,
            code=group.code,
            weight=_weight_of(charged[each.upload]),
            upload=each.upload,
            source=charged[each.upload].source,
            machine=charged[each.upload].machine,
        )
        for each in disagreements(group)
    )


def _weight_of(charged: Charged) -> float:
    """The weight of an event of stream A.

    Infrastructure hits many tests at once, a flaky test few.
    """
    in_job = crowd_of(charged.tests_run) / max(charged.disagreeing, 1)
    in_run = RUN_CROWD / max(charged.disagreeing_in_run, 1)
    return round(min(1.0, in_job, in_run), 6)


def crowd_of(tests_run: int) -> float:
    """c: how many tests may disagree at once before each weighs less."""
    return min(CROWD_MAX, max(CROWD_MIN, tests_run / TESTS_PER_CROWD))


class Window:
    """The capped sums of weights over the window that ends with the newest event added.

    Counted in millionths: sums of whole numbers do not depend on how one came to them.
    """

    def __init__(self, days: int = WINDOW_DAYS) -> None:
        self.days = days
        self._events: deque[Event] = deque()
        self._by_source: defaultdict[tuple[Stream, str, str], int] = defaultdict(int)
        self._by_author: defaultdict[tuple[Stream, str], int] = defaultdict(int)
        self._sums = dict.fromkeys(Stream, 0)
        self._by_machine = Counter[str]()

    def add(self, event: Event) -> None:
        """Take in the next event in order, and let go of those too old for it."""
        self._events.append(event)
        self._move(event, 1)
        oldest = event.at.toordinal() - self.days + 1
        while self._events[0].at.toordinal() < oldest:
            self._move(self._events.popleft(), -1)

    def weight(self, stream: Stream) -> float:
        """D of one stream; of all streams together one machine adds at most MACHINE_MAX."""
        return self._sums[stream] / _UNITS * self._share

    @property
    def _share(self) -> float:
        """The share of the events that counts, where most come from one machine.

        In a fleet of MACHINES_MIN that are alike, one has no more than this.
        """
        by_machine = self._by_machine
        most = max((units for machine, units in by_machine.items() if machine), default=0)
        others = by_machine.total() - most
        allowed = others // (MACHINES_MIN - 1) + int(MACHINE_MAX * _UNITS)
        return 1.0 if most <= allowed else (others + allowed) / (others + most)

    def events(self) -> tuple[Event, ...]:
        """Those inside, oldest first."""
        return tuple(self._events)

    def _move(self, event: Event, sign: int) -> None:
        units = sign * round(event.weight * _UNITS)
        self._by_machine[event.machine] += units
        if not event.source:
            self._sums[event.stream] += units
            return
        is_capped = event.stream in (Stream.C, Stream.R)
        key = (event.stream, event.source, event.author)
        counted = _put(self._by_source, key, units, PUSHES_MAX if is_capped else SOURCE_MAX)
        if is_capped:
            by_author = (event.stream, event.author)
            most = AUTHOR_MAX if event.stream is Stream.C else PUSHES_MAX
            counted = _put(self._by_author, by_author, counted, most)
        self._sums[event.stream] += counted


def _put(sums: defaultdict[Key, int], key: Key, units: int, most: float) -> int:
    """Add to a sum, which counts up to `most`; return by how much what counts has changed."""
    limit, before = int(most * _UNITS), sums[key]
    sums[key] = before + units
    return min(limit, before + units) - min(limit, before)
