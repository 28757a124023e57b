"""How good a detector's flags are, held against the truth of a world.

See docs/design/detector.md 13.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf

from service.testhealth.detector.series import BrokenSpan, End
from tests.bench.flaky.worlds import DAY, START, Cause, World

Spans = Mapping[int, Sequence[tuple[float, float]]]
"""By test, when it was flagged flaky, in days since START; to the last day if it still is."""

NOTICEABLE_RATE = 0.01
LONG_BREAKAGE = 5
"""Failing runs of main from which on a breakage of main has to be found."""


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
    """Of one detector in one world.

    `right` and `wrong`: flagged days of flaky and of other tests; `caught` of `expected`
    failures fell on flagged tests; `flags` of `flagged` flaky tests. Delays in days, `inf` where
    nothing was found.
    """

    right: float
    wrong: float
    caught: float
    expected: float
    false_tests: int
    flags: int
    flagged: int
    detection: tuple[float, ...]
    clearing: tuple[float, ...]

    @property
    def precision(self) -> float:
        """Share of flagged days on which the test was flaky."""
        days = self.right + self.wrong
        return self.right / days if days else 1.0

    @property
    def recall(self) -> float:
        """Share of the expected failures that fell on flagged tests."""
        return self.caught / self.expected if self.expected else 1.0


@dataclass(frozen=True)
class BrokenFigures:
    """How a red main was noticed.

    `after`: failing runs of main until broken; `cleared`: whether a pass ended it; `wrong` of
    `flaky` tests were called broken when main was not.
    """

    after: tuple[float, ...]
    cleared: tuple[bool, ...]
    wrong: int
    flaky: int


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
    caught = expected = 0.0
    for truth in truths.values():
        expected += truth.failures_within(0, world.shape.days)
        caught += sum(truth.failures_within(*span) for span in spans.get(truth.number, ()))
    found = [truth for truth in truths.values() if spans.get(truth.number)]
    return Figures(
        right=right,
        wrong=wrong,
        caught=caught,
        expected=expected,
        false_tests=sum(1 for no, flagged in spans.items() if flagged and no not in truths),
        flags=sum(len(spans[truth.number]) for truth in found),
        flagged=len(found),
        detection=tuple(_detection(truths.values(), spans)),
        clearing=tuple(_clearing(world, found, spans)),
    )


def _detection(truths: Iterable[Truth], spans: Spans) -> Iterator[float]:
    """Time from the beginning to the first flag, of tests that fail often enough."""
    for truth in truths:
        if truth.rate >= NOTICEABLE_RATE:
            flags = [since for since, _ in spans.get(truth.number, ())]
            yield max(0.0, min(flags, default=inf) - truth.begin)


def _clearing(world: World, found: list[Truth], spans: Spans) -> Iterator[float]:
    """Time from a fix to the end of the flag that was up then."""
    renamed = {old for _, old, _ in world.renames}
    for truth in found:
        if truth.end < world.shape.days and truth.number not in renamed:
            for since, until in spans[truth.number]:
                if since <= truth.end < until:
                    yield until - truth.end


Verdicts = Mapping[int, Sequence[tuple[float, str, str]]]
"""By test, day, CI run and letter of each verdict on main, in order of each job."""


def broken_measured(
    world: World, verdicts: Verdicts, spans: Mapping[int, Sequence[BrokenSpan]]
) -> BrokenFigures:
    """How soon a red main was noticed, and how often a green one was called red.

    A run that fails a test in several jobs, as in a matrix, is one.
    """
    after: list[float] = []
    cleared: list[bool] = []
    for breakage in world.breakages:
        for test in breakage.tests:
            red = sorted(
                (day, run)
                for day, run, letter in verdicts.get(test, ())
                if letter == "F" and breakage.begin <= day <= breakage.end
            )
            if len({run for _, run in red}) < LONG_BREAKAGE:
                continue
            first, last = red[0][0], red[-1][0]
            found = [span for span in spans.get(test, ()) if first <= day_of(span.since) <= last]
            since = min((day_of(span.since) for span in found), default=inf)
            after.append(len({run for day, run in red if day <= since}) if found else inf)
            cleared += [span.end is End.PASSED for span in found if span.until is not None]
    flaky = {truth.number for truth in truths_of(world)}
    wrong = sum(1 for no in flaky if any(_is_wrong(world, no, span) for span in spans.get(no, ())))
    return BrokenFigures(tuple(after), tuple(cleared), wrong, len(flaky))


def _is_wrong(world: World, test: int, span: BrokenSpan) -> bool:
    """Whether main was never broken for the test around that time."""
    day = day_of(span.since)
    return not any(
        test in each.tests and each.begin <= day <= each.end + 1 for each in world.breakages
    )


def day_of(at: datetime) -> float:
    """Days since START."""
    return (at - START) / DAY
