"""Fold the events of a test, oldest first, into spans of flakiness (docs/design/detector.md 7).

The same events, results and noise always give the same spans; nothing is remembered between
two calls but what `Settled` says of evidence that is gone.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from math import ceil, log

from service.testhealth.detector import noise, score
from service.testhealth.detector.evidence import WINDOW_DAYS, Event, Passes, Stream, Window
from service.testhealth.detector.score import Noise, Tally

QUIET_DAYS_MIN, QUIET_DAYS_MAX = 3, 14
SINGLE_CLEAN_MIN, SINGLE_WEIGHT = 14, 1.5
"""One observation alone is forgotten after so few clean results; less weight than two is one."""

RENEWING_WEIGHT = 0.5
"""Events below it came with many others, and do not renew the quiet time of a flaky test."""

EVENT_RATE_MIN, LIKELY_QUIET, SLOWER = 0.005, 0.05, 1.5
"""Quiet enough: a test whose rate were its estimate over SLOWER is so quiet in 1 of 20 cases."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The measures that tests of a repository are held against.

    `clock`: the evidence clock, the largest `ran_at` of its eligible uploads; `first_day`: the
    day of the smallest one ever; `noise`: by day, FLOOR where it has none; `threshold`: K.
    """

    clock: datetime
    first_day: int
    noise: Mapping[int, Noise]
    threshold: float = score.THRESHOLDS["normal"]

    def noise_on(self, day: int) -> Noise:
        """Return the noise that an event of that day is held against."""
        return noise.in_force(day, self.first_day, self.clock.toordinal(), self.noise)


@dataclass(frozen=True, slots=True)
class Settled:
    """The conclusions that stood when evidence was dropped, as of `at`, a midnight.

    The fold needs the evidence from 29 days before `at` on: an event that holds a span open at
    `at` is at most 15 days older, and its own window 13 more. `since`: a span was open since;
    `epoch`: the end of the last one; `broken`: branch, job key, and since when the test was.
    """

    at: datetime
    since: datetime | None = None
    epoch: datetime | None = None
    broken: tuple[tuple[str, str, datetime], ...] = ()

    @property
    def broken_since(self) -> Mapping[tuple[str, str], datetime]:
        """Branch and job key → since when the test was broken there."""
        return {(branch, job): since for branch, job, since in self.broken}


@dataclass(frozen=True, slots=True)
class Measure:
    """The score at one event, with everything it was computed from."""

    at: datetime
    a: Tally
    b: Tally
    noise: Noise
    log_score: float
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class FlakySpan:
    """A time in which a test was flaky; `until` is None while it is.

    `first` was measured at the event that began it, None if that is settled; `last` at the
    newest event, or again `first` if the score is below K by now. `clean` and `quiet_days`:
    passing results and complete days without a disagreement that ended it.
    """

    since: datetime
    first: Measure | None
    last: Measure | None
    until: datetime | None = None
    clean: int = 0
    quiet_days: int = 0


@dataclass(frozen=True, slots=True)
class Fold:
    """All spans, oldest first; `open_measure` is of the newest event that is in none of them."""

    spans: tuple[FlakySpan, ...]
    open_measure: Measure | None


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a test, as the fold counts it: passing ones, and times of verdicts, sorted."""

    passes: Passes
    verdicts: tuple[tuple[datetime, ...], ...]

    def counts(self, at: datetime, epoch: datetime | None) -> tuple[int, int]:
        """N of both streams at an event: in its window, cut at the epoch."""
        first = at.toordinal() - WINDOW_DAYS + 1
        if epoch is not None:
            first = max(first, epoch.toordinal())
        start = midnight(first)
        verdicts = sum(bisect_right(each, at) - bisect_left(each, start) for each in self.verdicts)
        return self.passes.until(first, at), verdicts


@dataclass(frozen=True, slots=True)
class Quiet:
    """The end of a flaky span: midnight after the complete day that made it quiet enough."""

    until: datetime
    clean: int
    days: int


def fold(
    events: tuple[Event, ...], results: Results, scale: Scale, settled: Settled | None = None
) -> Fold:
    """The spans of a test's events, which may come in any order."""
    walk = _Walk(results, scale, settled)
    for event in sorted(events):
        walk.take(event)
    return walk.finish()


def settled_at(
    fold: Fold,
    at: datetime,
    broken: tuple[tuple[str, str, datetime], ...],
    before: Settled | None = None,
) -> Settled:
    """Return what a fold of less evidence must know of this one; `before`: what this one knew."""
    ended = [span.until for span in fold.spans if span.until is not None and span.until <= at]
    lasting = [
        span.since
        for span in fold.spans
        if span.since < at and (span.until is None or span.until > at)
    ]
    return Settled(
        at=at,
        since=lasting[-1] if lasting else None,
        epoch=ended[-1] if ended else before.epoch if before else None,
        broken=broken,
    )


def end_of_quiet(last: datetime, seen: Tally, passes: Passes, today: int) -> Quiet | None:
    """Return when a flaky span ends whose last renewing event was at `last`; None: not by `today`.

    `seen`: the weight of both streams, and passing results, at that event; `today`: a day that
    is not complete yet.
    """
    runs = score.RATE_A + score.RATE_B + seen.results
    rate = max(EVENT_RATE_MIN, (score.RATE_A + seen.weight) / runs)
    need = ceil(log(LIKELY_QUIET) / log(1 - rate / SLOWER))
    if seen.weight < SINGLE_WEIGHT:
        need = min(need, SINGLE_CLEAN_MIN)
    day = last.toordinal()
    clean = passes.between(day + 1, day + QUIET_DAYS_MIN - 1)
    for days in range(QUIET_DAYS_MIN, min(QUIET_DAYS_MAX, today - 1 - day) + 1):
        clean += passes.between(day + days, day + days)
        if clean >= need or days == QUIET_DAYS_MAX:
            return Quiet(midnight(day + days + 1), clean, days)
    return None


def midnight(day: int) -> datetime:
    """The beginning of a day, UTC."""
    return datetime.combine(datetime.fromordinal(day), time.min, UTC)


class _Walk:
    """The fold while it runs: what lies behind the newest event."""

    _epoch: datetime | None
    _since: datetime | None
    _first: Measure | None
    _newest: Event | None
    _renewed: datetime | None
    _weight: float
    _window: Window

    def __init__(self, results: Results, scale: Scale, settled: Settled | None) -> None:
        self._results, self._scale = results, scale
        self._limit = log(scale.threshold)
        self._decides_from = settled.at if settled else None
        self._spans: list[FlakySpan] = []
        self._begin(settled.epoch if settled else None)
        if settled and settled.since:
            # After a long pause no event that held the span open may be left: then it was
            # held open until `at`, and ends as after one observation. Those left say more.
            self._since, self._renewed = settled.since, settled.at

    def take(self, event: Event) -> None:
        """Fold in the next event."""
        if self._epoch is not None and event.at < self._epoch:
            return
        is_settled = self._decides_from is not None and event.at < self._decides_from
        if not is_settled:
            self._resolve(event.at.toordinal())
        self._window.add(event)
        self._newest = event
        if self._since is None:
            if not is_settled and self._log_score() >= self._limit:
                self._since, self._first = event.at, self._measure()
                self._renew(event)
        elif event.weight >= RENEWING_WEIGHT or event.at <= self._since:
            self._renew(event)

    def finish(self) -> Fold:
        """Return the spans there are when the clock is reached."""
        self._resolve(self._scale.clock.toordinal())
        if self._since is None:
            return Fold(tuple(self._spans), self._measure())
        open_span = FlakySpan(self._since, self._first, self._last())
        return Fold((*self._spans, open_span), None)

    def _begin(self, epoch: datetime | None) -> None:
        """Forget everything before the epoch."""
        self._epoch, self._window = epoch, Window()
        self._since = self._first = self._newest = self._renewed = None
        self._weight = 0.0

    def _renew(self, event: Event) -> None:
        """Quiet time is counted from this event on.

        How much is needed hangs on what was seen then. A light event later, when older ones
        have left its window, would put the end before itself, and days that were flaky behind.
        """
        self._renewed = event.at
        self._weight = self._window.weight(Stream.A) + self._window.weight(Stream.B)

    def _resolve(self, day: int) -> None:
        """End the open span if it had been quiet for long enough before this day."""
        if self._since is None or self._renewed is None:
            return
        # Most events follow the one before within days: then nothing need be counted.
        if day - self._renewed.toordinal() <= QUIET_DAYS_MIN:
            return
        runs, _ = self._results.counts(self._renewed, self._epoch)
        seen = Tally(self._weight, runs)
        quiet = end_of_quiet(self._renewed, seen, self._results.passes, day)
        if quiet is not None:
            ended = (quiet.until, quiet.clean, quiet.days)
            self._spans.append(FlakySpan(self._since, self._first, self._last(), *ended))
            self._begin(quiet.until)

    def _tallies(self, at: datetime) -> tuple[Tally, Tally]:
        passing, verdicts = self._results.counts(at, self._epoch)
        return (
            Tally(self._window.weight(Stream.A), passing),
            Tally(self._window.weight(Stream.B), verdicts),
        )

    def _log_score(self) -> float:
        measure = self._measure(with_events=False)
        return measure.log_score if measure else 0.0

    def _measure(self, *, with_events: bool = True) -> Measure | None:
        """The score at the newest event, if there is one after the epoch."""
        if self._newest is None:
            return None
        at = self._newest.at
        a, b = self._tallies(at)
        level = self._scale.noise_on(at.toordinal())
        events = self._window.events() if with_events else ()
        return Measure(at, a, b, level, score.log_score(a, b, level), events)

    def _last(self) -> Measure | None:
        """The newest measure that still reaches K, else the one that began the span."""
        newest = self._measure()
        if self._first is None or (newest and newest.log_score >= self._limit):
            return newest
        return self._first
