"""Fold the events of a test, oldest first, into spans of flakiness (docs/design/detector.md 7).

The same events, results and noise always give the same spans; nothing is remembered between
two calls but what `Settled` says of evidence that is gone.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from math import ceil, log

from service.testhealth.detector import noise, score
from service.testhealth.detector.evidence import (
    LONG_DAYS,
    WINDOW_DAYS,
    Event,
    Passes,
    Stream,
    Window,
)
from service.testhealth.detector.repeats import Rounds, Verified
from service.testhealth.detector.score import NO_REPEATS, Noise, Tallies, Tally

QUIET_DAYS_MIN, QUIET_DAYS_MAX = 3, 14
LONG_QUIET_DAYS_MAX = 28
"""Of a test that is flaky by its long window alone."""

LONG_CODES_MIN = 3
"""Codes, and days, that events in the long window need: no single bad week makes a test flaky."""

SINGLE_CLEAN_MIN, SINGLE_WEIGHT = 14, 1.5
"""One observation alone is forgotten after so few clean results; less weight than two is one."""

RENEWING_WEIGHT = 0.5
"""Events below it came with many others, and do not renew the quiet time of a flaky test."""

EVENT_RATE_MIN, LIKELY_QUIET, SLOWER = 0.005, 0.05, 1.5
"""Quiet enough: a test whose rate were its estimate over SLOWER is so quiet in 1 of 20 cases."""

SOON_QUIET, SOON_SLOWER, SOON_WEIGHT = 0.001, 2.0, 4.0
"""The same when no result failed at all: then it may end sooner than after QUIET_DAYS_MIN.

Fewer observations than SOON_WEIGHT say too little of the rate.
"""


NO_ROUNDS = Rounds()


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

    The fold needs the evidence from 29 days before `at` on, the long window of an event at `at`.
    `since`: a span was open since; `epoch`: the end of the last one; `broken`: branch, job key,
    and since when the test was. `held`: what holds the open span.
    """

    at: datetime
    since: datetime | None = None
    epoch: datetime | None = None
    broken: tuple[tuple[str, str, datetime], ...] = ()
    held: "Held | None" = None

    @property
    def broken_since(self) -> Mapping[tuple[str, str], datetime]:
        """Branch and job key → since when the test was broken there."""
        return {(branch, job): since for branch, job, since in self.broken}


@dataclass(frozen=True, slots=True)
class Held:
    """The newest renewing event, which holds a span open, and what was seen then.

    `is_slow`: the long window alone says that the test is flaky. `repeated` is the weight of
    repeats, whose rounds are none of the `results`.
    """

    at: datetime
    weight: float
    results: int
    is_slow: bool = False
    repeated: float = 0.0


@dataclass(frozen=True, slots=True)
class Measure:
    """The score at one event, with everything it was computed from."""

    at: datetime
    tallies: Tallies
    noise: Noise
    log_score: float
    events: tuple[Event, ...]
    days: int = WINDOW_DAYS

    @property
    def bar(self) -> float:
        """The factor of K that the score needs."""
        return score.LONG_FROM if self.days == LONG_DAYS else 1.0

    def reaches(self, log_of_threshold: float) -> bool:
        """Return whether it makes a test flaky."""
        return self.log_score >= log_of_threshold + log(self.bar)


@dataclass(frozen=True, slots=True)
class FlakySpan:
    """A time in which a test was flaky; `until` is None while it is.

    `first` was measured at the event that began it, None if that is settled; `last` at the
    newest event, or again `first` if the score is below K by now. `clean` and `quiet_days`:
    passing results and complete days without a disagreement that ended it. `holds` has what held it
    open at each renewal, oldest first. `verified`: repeats ended it.
    """

    since: datetime
    first: Measure | None
    last: Measure | None
    until: datetime | None = None
    clean: int = 0
    quiet_days: int = 0
    holds: tuple[Held, ...] = ()
    verified: Verified | None = None


@dataclass(frozen=True, slots=True)
class Fold:
    """All spans, oldest first; `open_measure` is of the newest event that is in none of them."""

    spans: tuple[FlakySpan, ...]
    open_measure: Measure | None


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a test, as the fold counts it: passing ones, and times of verdicts, sorted.

    `failures`: the times of its failed results, sorted. `rounds`: its repeats.
    """

    passes: Passes
    verdicts: tuple[tuple[datetime, ...], ...]
    failures: tuple[datetime, ...] = ()
    rounds: Rounds = NO_ROUNDS

    def counts(self, at: datetime, epoch: datetime | None, days: int) -> tuple[int, int]:
        """N of both streams at an event: in its window, cut at the epoch."""
        first = self._first_day(at, epoch, days)
        start = midnight(first)
        verdicts = sum(bisect_right(each, at) - bisect_left(each, start) for each in self.verdicts)
        return self.passes.until(first, at), verdicts

    def start(self, at: datetime, epoch: datetime | None, days: int) -> datetime:
        """The beginning of an event's window, cut at the epoch."""
        first = midnight(self._first_day(at, epoch, days))
        return first if epoch is None else max(first, epoch)

    def _first_day(self, at: datetime, epoch: datetime | None, days: int) -> int:
        first = at.toordinal() - days + 1
        return first if epoch is None else max(first, epoch.toordinal())


@dataclass(frozen=True, slots=True)
class Quiet:
    """The end of a flaky span: midnight after the complete day that made it quiet enough.

    With `verified`, the moment of the repeats that showed it.
    """

    until: datetime
    clean: int
    days: int
    verified: Verified | None = None


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
        span for span in fold.spans if span.since < at and (span.until is None or span.until > at)
    ]
    return Settled(
        at=at,
        since=lasting[-1].since if lasting else None,
        epoch=ended[-1] if ended else before.epoch if before else None,
        broken=broken,
        held=_held_at(lasting[-1], at) if lasting else None,
    )


def end_of_quiet(held: Held, passes: Passes, today: int) -> Quiet | None:
    """Return when a flaky span ends that is held by this; None: not by `today`.

    `today` is a day that is not complete yet.
    """
    runs = score.RATE_A + score.RATE_B + held.results
    rate = max(EVENT_RATE_MIN, (score.RATE_A + held.weight) / runs)
    need = ceil(log(LIKELY_QUIET) / log(1 - rate / SLOWER))
    if held.weight + held.repeated < SINGLE_WEIGHT:
        need = min(need, SINGLE_CLEAN_MIN)
    most = LONG_QUIET_DAYS_MAX if held.is_slow else QUIET_DAYS_MAX
    day = held.at.toordinal()
    clean = passes.between(day + 1, day + QUIET_DAYS_MIN - 1)
    for days in range(QUIET_DAYS_MIN, min(most, today - 1 - day) + 1):
        clean += passes.between(day + days, day + days)
        if clean >= need or days == most:
            return Quiet(midnight(day + days + 1), clean, days)
    return None


def soon_quiet(last: datetime, held: Held, results: Results, today: int) -> Quiet | None:
    """Return when a flaky span ends because nothing failed though it would have; None: not yet.

    A test that fails often shows its mending within a day. So no failure may follow, with or
    without a disagreement, and all failures count for its rate. `last` is the newest event.
    """
    if held.weight < SOON_WEIGHT:
        return None
    failures = results.failures
    start = last - timedelta(days=WINDOW_DAYS)
    failed = bisect_right(failures, last) - bisect_left(failures, start)
    runs = score.RATE_A + score.RATE_B + held.results + failed
    rate = max(EVENT_RATE_MIN, (score.RATE_A + max(held.weight, failed)) / runs)
    need = ceil(log(SOON_QUIET) / log(1 - rate / SOON_SLOWER))
    first, passes = last.toordinal(), results.passes
    for day in range(first, min(today, first + QUIET_DAYS_MIN)):
        newest = bisect_left(failures, midnight(day + 1)) - 1
        failure = max(last, failures[newest]) if newest >= 0 else last
        clean = passes.between(failure.toordinal() + 1, day)
        if failure.toordinal() in passes.times:
            on_day = passes.by_day.get(failure.toordinal(), 0)
            clean += on_day - passes.until(failure.toordinal(), failure)
        if clean >= need:
            return Quiet(midnight(day + 1), clean, day - failure.toordinal() + 1)
    return None


def _held_at(span: FlakySpan, at: datetime) -> Held | None:
    """Return what held the span open at a time."""
    return next((each for each in reversed(span.holds) if each.at < at), None)


def midnight(day: int) -> datetime:
    """The beginning of a day, UTC."""
    return datetime.combine(datetime.fromordinal(day), time.min, UTC)


class _Walk:
    """The fold while it runs: what lies behind the newest event.

    `_holds` has what held the open span at each renewal, oldest first.
    """

    _epoch: datetime | None
    _since: datetime | None
    _first: Measure | None
    _newest: Event | None
    _holds: list[Held]
    _window: Window
    _long: Window

    def __init__(self, results: Results, scale: Scale, settled: Settled | None) -> None:
        self._results, self._scale = results, scale
        self._limit = log(scale.threshold)
        self._decides_from = settled.at if settled else None
        self._spans: list[FlakySpan] = []
        self._begin(settled.epoch if settled else None)
        if settled and settled.since:
            # The event that held the span open may be gone: what it saw is settled with it.
            self._since = settled.since
            self._holds.append(settled.held or Held(settled.at, 0.0, 0))

    def take(self, event: Event) -> None:
        """Fold in the next event."""
        if self._epoch is not None and event.at < self._epoch:
            return
        is_settled = self._decides_from is not None and event.at < self._decides_from
        if not is_settled:
            self._resolve(event.at)
        self._window.add(event)
        self._long.add(event)
        self._newest = event
        if is_settled:
            return
        if self._since is None:
            measure = self._measure(with_events=False)
            if measure is not None and measure.reaches(self._limit):
                self._since, self._first = event.at, self._measure()
                self._renew(event)
        elif event.weight >= RENEWING_WEIGHT or event.at <= self._since:
            self._renew(event)

    def finish(self) -> Fold:
        """Return the spans there are when the clock is reached."""
        self._resolve(self._scale.clock, is_end=True)
        if self._since is None:
            return Fold(tuple(self._spans), self._measure())
        open_span = FlakySpan(self._since, self._first, self._last(), holds=tuple(self._holds))
        return Fold((*self._spans, open_span), None)

    def _begin(self, epoch: datetime | None) -> None:
        """Forget everything before the epoch."""
        self._epoch, self._window, self._long = epoch, Window(), Window(LONG_DAYS)
        self._since = self._first = self._newest = None
        self._holds = []

    def _renew(self, event: Event) -> None:
        """Quiet time is counted from this event on.

        How much is needed hangs on what was seen then. A light event later, when older ones
        have left its window, would put the end before itself, and days that were flaky behind.
        """
        is_slow = not self._short(with_events=False).reaches(self._limit)
        window = self._long if is_slow else self._window
        runs, _ = self._results.counts(event.at, self._epoch, window.days)
        weight = sum(window.weight(stream) for stream in Stream if stream is not Stream.R)
        self._holds.append(Held(event.at, weight, runs, is_slow, window.weight(Stream.R)))

    def _resolve(self, at: datetime, *, is_end: bool = False) -> None:
        """End the open span if repeats or quiet before this time show that the test is mended.

        `is_end`: no event is left at this time itself.
        """
        if self._since is None:
            return
        held, day = self._holds[-1], at.toordinal()
        newest = held.at if self._newest is None else max(held.at, self._newest.at)
        quiet = self._verified(newest, at)
        if quiet is not None and quiet.until == at and not is_end:
            quiet = None
        # Most events follow the one before within hours: then nothing need be counted.
        if day > newest.toordinal():
            by_days = soon_quiet(newest, held, self._results, day)
            if by_days is None and day - held.at.toordinal() > QUIET_DAYS_MIN:
                by_days = end_of_quiet(held, self._results.passes, day)
            ends = [each for each in (by_days, quiet) if each is not None]
            quiet = min(ends, key=lambda each: each.until, default=None)
        if quiet is not None:
            ended = FlakySpan(self._since, self._first, self._last(), quiet.until, quiet.clean)
            holds, verified = tuple(self._holds), quiet.verified
            days = quiet.days
            self._spans.append(replace(ended, quiet_days=days, holds=holds, verified=verified))
            self._begin(quiet.until)

    def _verified(self, newest: datetime, at: datetime) -> Quiet | None:
        """Return the end that repeats have shown by then."""
        found = self._results.rounds.verified(newest, self._results.failures, at)
        if found is None:
            return None
        days = found.until.toordinal() - newest.toordinal()
        return Quiet(found.until, found.rounds, days, found)

    def _tallies(self, at: datetime, window: Window) -> Tallies:
        passing, verdicts = self._results.counts(at, self._epoch, window.days)
        repeated = NO_REPEATS
        if weight := window.weight(Stream.R):
            start = self._results.start(at, self._epoch, window.days)
            repeated = self._results.rounds.tally(window.events(), weight, start, at)
        return Tallies(
            Tally(window.weight(Stream.A), passing),
            Tally(window.weight(Stream.B), verdicts),
            Tally(window.weight(Stream.C), passing),
            repeated,
        )

    def _measure(self, *, with_events: bool = True) -> Measure | None:
        """The score at the newest event, if there is one after the epoch.

        Of the long window if that alone is enough for a flaky test.
        """
        if self._newest is None:
            return None
        short = self._short(with_events=with_events)
        if short.reaches(self._limit) or not self._is_spread():
            return short
        long = self._measured(self._newest.at, self._long, with_events=with_events)
        return long if long.reaches(self._limit) else short

    def _short(self, *, with_events: bool) -> Measure:
        at = self._newest.at if self._newest else self._holds[-1].at
        return self._measured(at, self._window, with_events=with_events)

    def _measured(self, at: datetime, window: Window, *, with_events: bool) -> Measure:
        tallies = self._tallies(at, window)
        level = self._scale.noise_on(at.toordinal())
        events = window.events() if with_events else ()
        prior = score.RATE_LONG if window is self._long else (score.RATE_A, score.RATE_B)
        log_score = score.log_score(tallies, level, prior)
        return Measure(at, tallies, level, log_score, events, window.days)

    def _is_spread(self) -> bool:
        """Return whether the long window has enough that is apart, and more than the short one."""
        events = self._long.events()
        if len(events) < LONG_CODES_MIN or len(events) == len(self._window.events()):
            return False
        strong = [event for event in events if event.weight >= RENEWING_WEIGHT]
        codes = {event.code for event in strong}
        days = {event.at.toordinal() for event in strong}
        return min(len(codes), len(days)) >= LONG_CODES_MIN

    def _last(self) -> Measure | None:
        """The newest measure that still reaches K, else the one that began the span."""
        newest = self._measure()
        if self._first is None or (newest and newest.reaches(self._limit)):
            return newest
        return self._first
