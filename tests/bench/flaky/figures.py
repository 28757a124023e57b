"""How good a detector's flags are, held against the truth of a world (FLAKY.md 12.1)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from statistics import mean, median

from service.flaky.series import BrokenSpan, End
from tests.bench.flaky.worlds import DAY, START, Cause, World

Spans = Mapping[int, Sequence[tuple[float, float]]]
"""By test, when it was flagged flaky, in days since START; to the last day if it still is."""

NOTICEABLE_RATE = 0.01
LONG_BREAKAGE = 5
"""Failing verdicts from which on a breakage of main has to be found."""


@dataclass(frozen=True)
class Truth:
    """What one flaky test really did: (begin, end, expected failures a day) of each cause."""

    number: int
    lives: tuple[tuple[float, float, float], ...]
    rate: float

    @property
    def begin(self) -> float:
        """Its first day."""
        return min(begin for begin, _, _ in self.lives)

    @property
    def end(self) -> float:
        """The day it was fixed, or the last."""
        return max(end for _, end, _ in self.lives)

    def failures_within(self, since: float, until: float) -> float:
        """Expected failures in a time."""
        return sum(
            rate * max(0.0, min(until, end) - max(since, begin)) for begin, end, rate in self.lives
        )


@dataclass(frozen=True)
class Figures:
    """Of one detector in one world; None where the world had no such case.

    Delays in days, `inf` where nothing was found; `broken_after` in failing verdicts on main.
    """

    precision: float
    recall: float
    false_tests: int
    flags_per_test: float
    detection: float | None
    clearing: float | None
    broken_after: float | None = None
    broken_cleared: float | None = None
    broken_false: float | None = None


def truths_of(world: World) -> list[Truth]:
    """Every flaky test, under each of its numbers."""
    found: dict[int, list[tuple[Cause, float, float, float]]] = {}
    renamed = {old: (day, new) for day, old, new in world.renames}
    for cause in world.causes:
        for test, hit in zip(cause.tests, cause.hits, strict=True):
            day, new = renamed.get(test, (inf, test))
            rate = cause.rate * hit
            if cause.begin < day:
                found.setdefault(test, []).append((cause, rate, cause.begin, min(cause.end, day)))
            if cause.end > day:
                found.setdefault(new, []).append((cause, rate, max(cause.begin, day), cause.end))
    runs = world.shape.pr_runs + world.shape.main_runs
    return [
        Truth(
            number=number,
            lives=tuple(
                (begin, end, rate * runs * len(cause.jobs)) for cause, rate, begin, end in lives
            ),
            rate=max(rate for _, rate, _, _ in lives),
        )
        for number, lives in found.items()
    ]


def measured(world: World, spans: Spans) -> Figures:
    """The figures of a detector's flags."""
    truths = {truth.number: truth for truth in truths_of(world)}
    right = wrong = 0.0
    for number, flagged in spans.items():
        truth = truths.get(number)
        for since, until in flagged:
            overlap = 0.0
            if truth is not None:
                overlap = max(0.0, min(until, truth.end) - max(since, truth.begin))
            right, wrong = right + overlap, wrong + until - since - overlap
    caught = whole = 0.0
    for truth in truths.values():
        whole += truth.failures_within(0, world.shape.days)
        caught += sum(truth.failures_within(*span) for span in spans.get(truth.number, ()))
    found = [truth for truth in truths.values() if spans.get(truth.number)]
    return Figures(
        precision=right / (right + wrong) if right + wrong else 1.0,
        recall=caught / whole if whole else 1.0,
        false_tests=sum(1 for no, flagged in spans.items() if flagged and no not in truths),
        flags_per_test=mean(len(spans[truth.number]) for truth in found) if found else 0.0,
        detection=_detection(truths.values(), spans),
        clearing=_clearing(world, found, spans),
    )


def _detection(truths: Iterable[Truth], spans: Spans) -> float | None:
    """Median time from the beginning to the first flag, of tests that fail often enough."""
    delays = [
        min((max(0.0, since - truth.begin) for since, _ in spans.get(truth.number, ())), default=inf)
        for truth in truths
        if truth.rate >= NOTICEABLE_RATE
    ]
    return median(delays) if delays else None


def _clearing(world: World, found: list[Truth], spans: Spans) -> float | None:
    """Median time from a fix to the end of the flag that was up then."""
    gone = {old: day for day, old, _ in world.renames}
    delays = [
        until - truth.end
        for truth in found
        if truth.end < world.shape.days and truth.number not in gone
        for since, until in spans[truth.number]
        if since <= truth.end < until
    ]
    return median(delays) if delays else None


def broken_figures(
    world: World, verdicts: Mapping[int, list[tuple[float, str]]], spans: Mapping[int, list[BrokenSpan]]
) -> tuple[float | None, float | None, float | None]:
    """Failing verdicts until broken (median), share cleared by a pass, share falsely broken.

    `verdicts`: by test, day and letter of each verdict on main, in order.
    """
    after: list[float] = []
    cleared: list[bool] = []
    real: dict[int, list[tuple[float, float]]] = {}
    for breakage in world.breakages:
        for test in breakage.tests:
            real.setdefault(test, []).append((breakage.begin, breakage.end))
            days = [
                day
                for day, letter in verdicts.get(test, ())
                if letter == "F" and breakage.begin <= day <= breakage.end
            ]
            if len(days) < LONG_BREAKAGE:
                continue
            found = [
                span
                for span in spans.get(test, ())
                if days[0] <= day_of(span.since) <= days[-1]
            ]
            if not found:
                after.append(inf)
                continue
            after.append(sum(1 for day in days if day <= day_of(found[0].since)))
            if found[0].until is not None:
                cleared.append(found[0].end is End.PASSED)
    flaky = [truth for truth in truths_of(world) if truth.rate <= 0.5]
    wrong = [
        truth
        for truth in flaky
        if any(
            not any(begin <= day_of(span.since) <= end + 1 for begin, end in real.get(truth.number, ()))
            for span in spans.get(truth.number, ())
        )
    ]
    return (
        median(after) if after else None,
        mean(cleared) if cleared else None,
        len(wrong) / len(flaky) if flaky else None,
    )


def day_of(at: datetime) -> float:
    """Days since START."""
    return (at - START) / DAY
