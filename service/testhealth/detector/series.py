"""Verdicts of a test along a stable branch: alone between neighbors, and broken.

The rules are in docs/design/detector.md 4 and 8. Runs of pull requests are no part of a series.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from service.testhealth.detector import evidence, score
from service.testhealth.detector.evidence import Event, Stream

POINTS_MAX = 600
"""The newest points of a series that are read."""

BEFORE_MAX = 200
"""Verdicts before a failing streak that say at which rate the test failed until then."""

PROBABILITY_MAX, STREAK_MIN = 5e-5, 3
NEVER_PASSED_STREAK = 5
UNKNOWN_STREAK, UNKNOWN_VERDICTS = 10, 10
ABSENT_POINTS = 5
RED_VERDICTS = 2
"""So many failures in a row on the target branch, and the target itself is to be asked."""

SILENT_FOR = timedelta(days=14)
USUAL_POINTS, USUAL_ABSENT = 10, 0.1
"""A test usually runs in a series if it was absent from no larger share of so many points."""

PASSED, FAILED, ABSENT = "P", "F", "."
_LONELY = (PASSED + FAILED + PASSED, FAILED + PASSED + FAILED)
_STREAK = re.compile(f"{FAILED}{{{STREAK_MIN},}}")


class Place(NamedTuple):
    """The place of a point in its series.

    `position` is how many commits the history of its commit has, which grows along a branch; None
    if unknown.
    """

    at: datetime
    code: str
    run: str
    position: int | None


def in_order(places: Iterable[Place]) -> list[Place]:
    """Return the places in the order of their commits: the first gets the first time, and so on.

    CI may test a later commit sooner, so the times alone do not tell the order. A commit of unknown
    position is where its own time puts it, and no verdict is alone beside it.
    """
    by_time = sorted(places, key=lambda each: each[:3])
    known = [each for each in by_time if each.position is not None]
    ranked = iter(sorted(known, key=lambda each: each.position or 0))
    return [
        each if each.position is None else next(ranked)._replace(at=each.at) for each in by_time
    ]


@dataclass(frozen=True, slots=True)
class Point:
    """One code id in one CI run of a series, at the time that `in_order` gives it.

    `sha` is the commit; `tests_run` counts the tests that have a verdict here, `alone` those
    of `lonely_points`, shared by all tests of the series. `machine` is the one that ran all of it,
    empty if unknown.
    """

    at: datetime
    code: str
    run: str
    sha: str
    tests_run: int
    alone: int = 0
    position: int | None = None
    machine: str = ""


@dataclass(frozen=True)
class Series:
    """One job key on one stable branch; at most POINTS_MAX points, `in_order`."""

    branch: str
    job: str
    points: tuple[Point, ...]

    @cached_property
    def times(self) -> tuple[datetime, ...]:
        """Return the times of its points; asked for by every test in it."""
        return tuple(point.at for point in self.points)


@dataclass(frozen=True, slots=True)
class Track:
    """One test in a series: a letter for each point, PASSED, FAILED or ABSENT.

    FAILED only if every comparable attempt failed; ABSENT if it has none there.
    """

    series: Series
    verdicts: str

    def ran(self) -> list[Point]:
        """The points at which it has a verdict, in order."""
        if ABSENT not in self.verdicts:
            return list(self.series.points)
        pairs = zip(self.series.points, self.verdicts, strict=True)
        return [point for point, verdict in pairs if verdict != ABSENT]

    def times(self) -> tuple[datetime, ...]:
        """Return the times at which it had a verdict, in order."""
        times = self.series.times
        if ABSENT not in self.verdicts:
            return times
        pairs = zip(times, self.verdicts, strict=True)
        return tuple([at for at, verdict in pairs if verdict != ABSENT])

    def letters(self) -> str:
        """Its verdicts without the absences, in step with `ran`."""
        return self.verdicts.replace(ABSENT, "")


def machine_of(machines: Iterable[str]) -> str:
    """The machine of all these uploads, empty if they have several."""
    names = set(machines)
    return names.pop() if len(names) == 1 else ""


def lonely(verdicts: str) -> list[int]:
    """Places at which a verdict differs from both neighbors while these agree."""
    # A search for text; a pattern that looks around takes as long as all the rest of judging.
    return sorted(place for three in _LONELY for place in _middles(verdicts, three))


def _middles(verdicts: str, three: str) -> Iterator[int]:
    start = verdicts.find(three)
    while start >= 0:
        yield start + 1
        start = verdicts.find(three, start + 1)


def lonely_points(track: Track) -> list[Point]:
    """The points at which the test counts in `Point.alone`."""
    ran, places = _surely_lonely(track)
    return [ran[place] for place in places]


def has_unplaced(track: Track) -> bool:
    """Return whether a failure between passes does not count for want of positions."""
    letters = track.letters()
    places = [place for place in lonely(letters) if letters[place] == FAILED]
    return len(places) > len([n for n in _surely_lonely(track)[1] if letters[n] == FAILED])


def _surely_lonely(track: Track) -> tuple[list[Point], list[int]]:
    """Return the points at which the test ran, and where among them it is alone for sure.

    That is where the position of the point and of its neighbors is known.
    """
    places = lonely(track.letters())
    ran = track.ran() if places else []
    sure = [
        place
        for place in places
        if all(point.position is not None for point in ran[place - 1 : place + 2])
    ]
    return ran, sure


def lone_events(tracks: Sequence[Track], disagreeing: Container[str]) -> Iterator[Event]:
    """A test's events of stream B in all its series.

    Where runs spread tests over jobs, one that is broken for some commits can fail but once in each
    job. So a failure is not alone if another job of the branch saw one on another commit that lies
    between the same neighbors.
    """
    failing = {
        (track.series.branch, point.position)
        for track in tracks
        for point, verdict in zip(track.ran(), track.letters(), strict=True)
        if verdict == FAILED and point.position is not None
    }
    for track in tracks:
        is_sparse = ABSENT in track.verdicts and len(tracks) > 1
        points = track.ran() if is_sparse else []
        for place, event in _events(track, disagreeing):
            if not is_sparse or event.passed:
                yield event
                continue
            low, here, high = (each.position or 0 for each in points[place - 1 : place + 2])
            branch = track.series.branch
            if not any(of == branch and low < at < high and at != here for of, at in failing):
                yield event


def events_of(track: Track, disagreeing: Container[str]) -> tuple[Event, ...]:
    """The track's events of stream B; `disagreeing`: the test's code ids with one of stream A."""
    return tuple(event for _, event in _events(track, disagreeing))


def _events(track: Track, disagreeing: Container[str]) -> Iterator[tuple[int, Event]]:
    """Each event with its place among the verdicts."""
    letters = track.letters()
    ran, places = _surely_lonely(track)
    for place in places:
        if ran[place].code in disagreeing:
            continue
        yield (
            place,
            Event(
                at=ran[place + 1].at,
                stream=Stream.B,
                job=track.series.job,
                code=ran[place].code,
                weight=round(
                    min(1.0, evidence.crowd_of(ran[place].tests_run) / ran[place].alone), 6
                ),
                branch=track.series.branch,
                passed=letters[place] == PASSED,
                machine=ran[place].machine,
            ),
        )


class End(StrEnum):
    """The ends of a broken span: the test passed, is run no more, or the series fell silent."""

    PASSED = "passed"
    REMOVED = "removed"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class BrokenSpan:
    """A time in which a test was broken in one series.

    `failed` of `before` verdicts failed before the streak, whose first failure was at `red`;
    `streak` is its length when it was enough, `length` until it ended or until now. `until` and
    `end` are None while it lasts; `green` is the point that ended it by passing.
    """

    series: Series
    since: datetime
    red: Point
    streak: int
    length: int
    failed: int
    before: int
    has_passed: bool
    until: datetime | None = None
    end: End | None = None
    green: Point | None = None

    def probability(self, streak: int) -> float:
        """The chance q of the first `streak` failures in a row."""
        return score.streak_probability(self.failed, self.before - self.failed, streak)


@dataclass(frozen=True, slots=True)
class Moment:
    """The data against which broken spans are read.

    `ran_on`: by branch, the code ids on which any job of it has a verdict for the test.
    `settled`: by branch and job key, since when the test was broken where the evidence for that
    is gone, all of it or only what made the streak too long for chance.
    """

    clock: datetime
    first_pass: datetime | None
    ran_on: Mapping[str, frozenset[str]]
    settled: Mapping[tuple[str, str], datetime]


def ran_on(tracks: Iterable[Track]) -> dict[str, frozenset[str]]:
    """By branch, the code ids on which any of a test's jobs has a verdict for it."""
    days: defaultdict[str, set[str]] = defaultdict(set)
    for track in tracks:
        days[track.series.branch].update(point.code for point in track.ran())
    return {branch: frozenset(codes) for branch, codes in days.items()}


def removed_at(tracks: Iterable[Track], last_run: datetime) -> tuple[datetime, str] | None:
    """Return when a stable branch showed that a test is run no more, and the branch; None: it is.

    That is after ABSENT_POINTS points without it after its last run anywhere, of a series in which
    it usually ran.
    """
    found = []
    for track in tracks:
        points, begin = track.series.points, last_run - SILENT_FOR
        later = [point.at for point in points if point.at > last_run]
        if len(later) < ABSENT_POINTS:
            continue
        pairs = zip(points, track.verdicts, strict=True)
        known = "".join(letter for point, letter in pairs if begin <= point.at <= last_run)
        known = known.lstrip(ABSENT)
        is_usual = known.count(ABSENT) <= USUAL_ABSENT * len(known)
        if len(known) >= USUAL_POINTS and is_usual:
            found.append((later[ABSENT_POINTS - 1], track.series.branch))
    return min(found, default=None)


def is_red(track: Track, moment: Moment) -> bool:
    """Return whether the newest verdicts up to the moment failed, and the series still speaks.

    It ends as a broken span does: the test is not run there any more, or nothing is.
    """
    count = len([point for point in track.series.points if point.at <= moment.clock])
    points = track.series.points[:count]
    track = Track(replace(track.series, points=points), track.verdicts[:count])
    letters = track.letters()
    if not letters.endswith(FAILED * RED_VERDICTS):
        return False
    until, _, _ = _end(track, len(letters) - 1, moment)
    return until is None


def may_be_broken(track: Track, settled: Mapping[tuple[str, str], datetime]) -> bool:
    """Return whether it failed often enough in a row, or was broken where the evidence is gone.

    Most tests never fail so often: their points need not be looked at.
    """
    return (track.series.branch, track.series.job) in settled or bool(
        _STREAK.search(track.letters())
    )


def broken_spans(track: Track, moment: Moment) -> tuple[BrokenSpan, ...]:
    """Every time the test was broken in this series, oldest first."""
    return tuple(_broken(track, moment))


def _broken(track: Track, moment: Moment) -> Iterator[BrokenSpan]:
    letters = track.letters()
    settled = moment.settled.get((track.series.branch, track.series.job))
    if not letters:
        return
    ran, counted_from = track.ran(), 0
    if settled is not None and (held := _held(track, settled)) is not None:
        span, counted_from = _span(track, held, moment)
        yield replace(span, since=settled)
    streak = _STREAK.search(letters, counted_from)
    while streak is not None:
        start, resume = streak.span()
        before = letters[max(counted_from, start - BEFORE_MAX) : start]
        length = _enough(before, ran[start:resume], moment.first_pass)
        if length:
            span, resume = _span(track, _Streak(start, length, before), moment)
            counted_from = resume
            yield span
        streak = _STREAK.search(letters, resume)


@dataclass(frozen=True, slots=True)
class _Streak:
    """A failing streak: its first verdict, how many were enough, the verdicts before it."""

    start: int
    enough: int
    before: str


def _held(track: Track, since: datetime) -> _Streak | None:
    """The streak of a settled span; None when the verdicts at its beginning say otherwise now.

    The verdicts before it do not count any more: they may not be all there.
    """
    ran, letters = track.ran(), track.letters()
    place = bisect_left(ran, since, key=lambda point: point.at)
    if place == len(ran) or (letters[place] == PASSED and ran[place].at == since):
        return None
    start = len(letters[:place].rstrip(FAILED))
    return _Streak(start, place - start + 1, "")


def _span(track: Track, streak: _Streak, moment: Moment) -> tuple[BrokenSpan, int]:
    """The span that the streak began, and the number of the first verdict after it."""
    ran, at = track.ran(), streak.start + streak.enough - 1
    until, end, resume = _end(track, at, moment)
    span = BrokenSpan(
        series=track.series,
        since=ran[at].at,
        red=ran[streak.start],
        streak=streak.enough,
        length=resume - streak.start,
        failed=streak.before.count(FAILED),
        before=len(streak.before),
        has_passed=_has_passed(moment.first_pass, ran[at].at),
        until=until,
        end=end,
        green=ran[resume] if end is End.PASSED else None,
    )
    return span, resume


def _enough(before: str, streak: list[Point], first_pass: datetime | None) -> int:
    """Return how many failures of the streak complete the rule; 0: all of them do not."""
    failed, passed = before.count(FAILED), before.count(PASSED)
    for length in range(STREAK_MIN, len(streak) + 1):
        if score.streak_probability(failed, passed, length) <= PROBABILITY_MAX:
            return length
        if length >= NEVER_PASSED_STREAK and not _has_passed(first_pass, streak[length - 1].at):
            return length
        if length >= UNKNOWN_STREAK and len(before) < UNKNOWN_VERDICTS:
            return length
    return 0


def _has_passed(first_pass: datetime | None, at: datetime) -> bool:
    return first_pass is not None and first_pass <= at


def _end(track: Track, at: int, moment: Moment) -> tuple[datetime | None, End | None, int]:
    """Return when and how a broken span ends that began at the `at`th verdict.

    The last number is that of the first verdict after it, or how many verdicts there are.
    """
    ran_on = moment.ran_on.get(track.series.branch, frozenset())
    number, absences, silent_from = -1, 0, None
    for point, verdict in zip(track.series.points, track.verdicts, strict=True):
        number += verdict != ABSENT
        if number < at:
            continue
        if silent_from is not None and point.at >= silent_from:
            return silent_from, End.SILENT, number + (verdict == ABSENT)
        if verdict == PASSED:
            return point.at, End.PASSED, number
        if verdict == FAILED:
            absences, silent_from = 0, point.at + SILENT_FOR
        else:
            absences = absences + 1 if point.code not in ran_on else 0
            if absences == ABSENT_POINTS:
                return point.at, End.REMOVED, number + 1
    if silent_from is not None and moment.clock >= silent_from:
        return silent_from, End.SILENT, number + 1
    return None, None, number + 1
