"""Failures of one push of a pull request while everybody else passed: stream C.

Nobody runs a red job again here: the next push of the same pull request passed, and so did other
pull requests and branches around that time. One such failure proves little, for the next push may
have mended it. Several pull requests that have nothing else in common do. A test that fails on two
pushes in a row, in one job or in several, is broken by its pull request and not counted
(docs/design/detector.md 4).
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

from service.testhealth.detector.evidence import CROWD_MIN, Event, Stream

REACH = 16
"""Uploads of a job on each side among which verdicts beside a push are looked for."""

NEIGHBORS = 3
"""Verdicts of others on each side that are asked."""

CROWD_MAX = 10
"""Tests that failed alone in one push: more are no evidence, for the push broke them."""

LIGHTER = 3
"""So many failures of others around it, and a failure is no evidence."""


class Sent(Protocol):
    """Facts of an upload that the rules need."""

    @property
    def at(self) -> datetime:
        """The time when it ran."""
        ...

    @property
    def digest(self) -> str:
        """Its name, which orders equal times."""
        ...

    @property
    def source(self) -> str:
        """The pull request or branch, empty for stable branches and the queue."""
        ...

    @property
    def code(self) -> str:
        """Its code id."""
        ...

    @property
    def machine(self) -> str:
        """The machine that ran it, empty if unknown."""
        ...

    @property
    def author(self) -> str:
        """The account whose events are capped together, empty if unknown."""
        ...


class Run(Protocol):
    """An upload of the job that is no mass failure; `passing` and `failing` have a bit a test."""

    @property
    def upload(self) -> Sent:
        """The upload."""
        ...

    @property
    def passing(self) -> int:
        """Tests with a passed comparable attempt."""
        ...

    @property
    def failing(self) -> int:
        """Tests with comparable attempts, none of them passed."""
        ...


PushKey = tuple[str, str]
"""Source and code id."""

RunKey = tuple[datetime, str]


class Push(NamedTuple):
    """All runs of a job on one code of one source: when the first was, and the verdicts."""

    first: RunKey
    code: str
    green: int
    red: int


class Beside(NamedTuple):
    """A verdict in a run before or after a push."""

    run: RunKey
    code: str
    passed: bool


@dataclass(frozen=True, slots=True)
class Alone:
    """The tests that failed in one push alone, which `author` began on one machine at `first`.

    By bit: when that was known, and the weight of it (before the crowd).
    """

    tests: dict[int, tuple[datetime, float]]
    machine: str = ""
    author: str = ""
    first: RunKey | None = None

    @property
    def crowd(self) -> float:
        """The factor of each test's weight: a change breaks several tests at once."""
        return min(1.0, CROWD_MIN / len(self.tests))


NOBODY = Alone({})


@dataclass(slots=True)
class JobRuns:
    """The runs of one job, and who failed alone at each push."""

    job: str
    order: list[RunKey] = field(default_factory=list)
    runs: dict[RunKey, Run] = field(default_factory=dict)
    of_source: dict[str, list[RunKey]] = field(default_factory=dict)
    alone: dict[PushKey, Alone] = field(default_factory=dict)

    def change(self, added: Iterable[Run], removed: Iterable[Run]) -> dict[PushKey, Alone]:
        """Add and remove runs; return the pushes whose lone failures changed, as they were."""
        dirty: set[PushKey] = set()
        added, removed = list(added), list(removed)
        for run in removed:
            key = _key(run)
            dirty |= self._around(key)
            del self.order[bisect_left(self.order, key)]
            del self.runs[key]
            self.of_source[run.upload.source].remove(key)
        for run in added:
            key = _key(run)
            insort(self.order, key)
            self.runs[key] = run
            insort(self.of_source.setdefault(run.upload.source, []), key)
        for run in added:
            dirty |= self._around(_key(run))
        # The pushes of one source look at each other: once for all, as a branch may have thousands.
        for source in {run.upload.source for run in (*added, *removed)} - {""}:
            mine = self.of_source[source]
            dirty |= {(source, self.runs[each].upload.code) for each in mine}
        # Those that were around a run that is gone may be seen by others now.
        return dict(self._renewed(dirty))

    def _around(self, key: RunKey) -> set[PushKey]:
        """The pushes of all sources that look at this run."""
        place = bisect_left(self.order, key)
        near = self.order[max(0, place - REACH - 1) : place + REACH + 2]
        found = [self.runs[each].upload for each in near]
        return {(sent.source, sent.code) for sent in found if sent.source}

    def _renewed(self, dirty: Iterable[PushKey]) -> Iterator[tuple[PushKey, Alone]]:
        """Find the lone failures of pushes again; yield those that changed, as they were."""
        codes_of: defaultdict[str, set[str]] = defaultdict(set)
        for source, code in dirty:
            codes_of[source].add(code)
        for source, codes in codes_of.items():
            pushes = self._pushes(source)
            places = {push.code: place for place, push in enumerate(pushes)}
            for code in codes:
                key, place = (source, code), places.get(code)
                now = NOBODY if place is None else self._found(source, pushes, place)
                before = self.alone.pop(key, NOBODY)
                if now.tests:
                    self.alone[key] = now
                if before != now:
                    yield key, before

    def _found(self, source: str, pushes: Sequence[Push], place: int) -> Alone:
        """The tests that failed alone in one of the pushes of this source."""
        if place + 1 == len(pushes):
            return NOBODY
        here, after = pushes[place], pushes[place + 1]
        failed = here.red & after.green
        if place:
            failed &= ~pushes[place - 1].red
        tests: dict[int, tuple[datetime, float]] = {}
        for bit in _places(failed):
            others = list(self._others(bit, source, here.first))
            weight = max(0.0, 1 - sum(not passed for _, passed in others) / LIGHTER)
            if weight and any(passed for _, passed in others):
                last = max(at for at, _ in others)
                tests[bit] = max(after.first[0], last), weight
        if not 0 < len(tests) <= CROWD_MAX:
            return NOBODY
        sent = self.runs[here.first].upload
        return Alone(tests, sent.machine, sent.author, here.first)

    def nearest(self, push: PushKey, first: RunKey, bit: int) -> Iterator[tuple[bool, Beside]]:
        """The nearest verdicts of a source on other code, before and after a push; True: after.

        Among REACH runs on each side. The push need not be of this job.
        """
        source, code = push
        mine = self.of_source.get(source, [])
        place = bisect_left(mine, first)
        sides = (mine[max(0, place - REACH) : place][::-1], mine[place : place + REACH])
        for is_after, keys in enumerate(sides):
            for key in keys:
                run = self.runs[key]
                passed, failed = run.passing >> bit & 1, run.failing >> bit & 1
                if (passed or failed) and run.upload.code != code:
                    yield bool(is_after), Beside(key, run.upload.code, bool(passed))
                    break

    def _pushes(self, source: str) -> list[Push]:
        """The codes of a source, in the order in which they ran first."""
        found: dict[str, Push] = {}
        for key in self.of_source.get(source, ()):
            run = self.runs[key]
            code = run.upload.code
            push = found.get(code) or Push(key, code, 0, 0)
            green = push.green | run.passing
            found[code] = push._replace(green=green, red=(push.red | run.failing) & ~green)
        return list(found.values())

    def _others(self, bit: int, source: str, first: RunKey) -> Iterator[tuple[datetime, bool]]:
        """The nearest verdicts of others on both sides."""
        place = bisect_left(self.order, first)
        sides = (
            self.order[max(0, place - REACH) : place][::-1],
            self.order[place + 1 : place + 1 + REACH],
        )
        for side in sides:
            left = NEIGHBORS
            for key in side:
                run = self.runs[key]
                passed, failed = run.passing >> bit & 1, run.failing >> bit & 1
                if left and (passed or failed) and run.upload.source != source:
                    left -= 1
                    yield key[0], bool(passed)


def is_alone(jobs: Mapping[str, JobRuns], job: str, push: PushKey, bit: int) -> bool:
    """Return whether a test that failed alone in a push of a job is alone in all jobs together.

    Where runs spread the tests over jobs anew, a test that is broken for two pushes may fail but
    once in each of two jobs. So it counts only if some job saw it pass in the push before, if any
    job ran it there, and in the next one.
    """
    first = jobs[job].alone[push].first
    if first is None:
        return False
    found: dict[bool, list[Beside]] = {False: [], True: []}
    for each in jobs.values():
        for is_after, beside in each.nearest(push, first, bit):
            found[is_after].append(beside)
    before = max(found[False], key=lambda each: each.run, default=None)
    after = min(found[True], key=lambda each: each.run, default=None)
    return all(
        any(each.passed for each in found[is_after] if each.code == nearest.code)
        for is_after, nearest in ((False, before), (True, after))
        if nearest is not None
    )


def event_of(job: str, key: PushKey, alone: Alone, bit: int) -> Event:
    """The event of one of the tests that failed alone in a push."""
    at, weight = alone.tests[bit]
    source, code = key
    return Event(
        at=at,
        stream=Stream.C,
        job=job,
        code=code,
        weight=round(weight * alone.crowd, 6),
        source=source,
        machine=alone.machine,
        author=alone.author,
    )


def without(events: Iterable[Event], codes: Collection[str]) -> Iterator[Event]:
    """Those on codes where the test did not disagree: these are counted already."""
    return (event for event in events if event.code not in codes)


def _key(run: Run) -> RunKey:
    return run.upload.at, run.upload.digest


def _places(marks: int) -> Iterator[int]:
    while marks:
        low = marks & -marks
        yield low.bit_length() - 1
        marks ^= low
