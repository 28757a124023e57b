"""Estimate how well past flags of tests hold (docs/design/quality-on-history.md).

The detector never looks ahead: a span of `spans.fold` begins at the event with which it was known,
and ends at the midnight at which it was known. So all evidence of today shows what was said then,
and what came later confirms it or does not.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import ceil, log
from typing import NamedTuple

from service.testhealth.detector import repeats, score
from service.testhealth.detector.evidence import Event, Passes
from service.testhealth.detector.health import Evidence, Health
from service.testhealth.detector.spans import (
    EVENT_RATE_MIN,
    LIKELY_QUIET,
    RENEWING_WEIGHT,
    SLOWER,
    FlakySpan,
)

FLAGS_MIN, FAILURES_MIN = 10, 30
"""Below so many no share is told: one flag more or less would move it by more than a tenth."""

OPEN_PART = 4
"""Nor where more than one in so many flags is open: then it would tell of these alone."""


class Proof(StrEnum):
    """The evidence that came after a flag. OPEN: too few runs since to tell the other two apart."""

    CONFIRMED = "confirmed"
    UNCONFIRMED = "unconfirmed"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class PastFlag:
    """A time in which a test was flagged flaky, and what came after it began.

    `until` None: it still is. `confirmed_at`: when it first disagreed again, flagged or not, on
    code that had no part in the flag, and not on the machine that most of the flag came from; None:
    not yet. `runs` are passing results since, of the `needed` ones among which it would have
    disagreed again with a chance of 95 %.
    """

    since: datetime
    until: datetime | None
    confirmed_at: datetime | None
    runs: int
    needed: int

    @property
    def proof(self) -> Proof:
        """Return whether it was confirmed."""
        if self.confirmed_at is not None:
            return Proof.CONFIRMED
        return Proof.UNCONFIRMED if self.runs >= self.needed else Proof.OPEN

    @property
    def missing(self) -> int:
        """Return how many runs are missing to tell; 0 unless it is open."""
        return max(0, self.needed - self.runs) if self.confirmed_at is None else 0

    def is_on(self, at: datetime) -> bool:
        """Return whether it was known before `at` and had not ended."""
        return self.since < at and (self.until is None or self.until > at)


class Share(NamedTuple):
    """A share of which only bounds are known; both are None where there is too little evidence.

    `missing` is how many more of what is counted are needed then.
    """

    low: float | None
    high: float | None
    missing: int = 0


@dataclass(frozen=True, slots=True)
class Quality:
    """Counts of past flags, and of failures that the same code or its neighbors contradict.

    `caught` happened while their test was flagged, `missed` at other times to tests that were
    flagged at some time; `unclear` to tests that never were: rare flakes, or machines.
    """

    confirmed: int = 0
    unconfirmed: int = 0
    open: int = 0
    caught: int = 0
    missed: int = 0
    unclear: int = 0

    def __add__(self, other: object) -> "Quality":
        """Return the sums."""
        if not isinstance(other, Quality):
            return NotImplemented
        return Quality(
            self.confirmed + other.confirmed,
            self.unconfirmed + other.unconfirmed,
            self.open + other.open,
            self.caught + other.caught,
            self.missed + other.missed,
            self.unclear + other.unclear,
        )

    @property
    def flags(self) -> int:
        """All flags that began."""
        return self.confirmed + self.unconfirmed + self.open

    @property
    def precision(self) -> Share:
        """The share of flags that were right: at least the confirmed ones.

        The others may be right too: their test may have been mended, or has not run enough.
        """
        told = self.confirmed + self.unconfirmed
        missing = max(FLAGS_MIN - told, self.open - self.flags // OPEN_PART)
        if missing > 0:
            return Share(None, None, missing)
        return Share(self.confirmed / self.flags, 1.0)

    @property
    def recall(self) -> Share:
        """The share of flaky failures that flags caught: the unclear ones all flaky, or none."""
        known = self.caught + self.missed
        if known < FAILURES_MIN:
            return Share(None, None, FAILURES_MIN - known)
        return Share(self.caught / (known + self.unclear), self.caught / known)


def flags_of(evidence: Evidence, health: Health, since: datetime) -> tuple[PastFlag, ...]:
    """Return the flags of a test that began then or later, or had not ended, oldest first."""
    spans = [span for span in health.fold.spans if span.until is None or span.until > since]
    return tuple(_flag_of(span, evidence) for span in spans)


def _flag_of(span: FlakySpan, evidence: Evidence) -> PastFlag:
    before = span.first.events if span.first else ()
    codes, machine = {event.code for event in before}, _machine_of(before)
    standing = repeats.standing(evidence.repeats, evidence.passes, evidence.failures)
    later = (
        event.at
        for event in sorted((*evidence.events, *repeats.events_of(standing)))
        if event.at > span.since
        and event.weight >= RENEWING_WEIGHT
        and event.code not in codes
        and (not machine or event.machine != machine)
    )
    return PastFlag(
        since=span.since,
        until=span.until,
        confirmed_at=next(later, None),
        runs=_runs(evidence.passes, span),
        needed=_needed(span),
    )


def _machine_of(events: Iterable[Event]) -> str:
    """Return the machine that most of the weight comes from, empty if nobody knows."""
    weights: defaultdict[str, float] = defaultdict(float)
    for event in events:
        weights[event.machine] += event.weight
    return max(weights, key=lambda machine: weights[machine], default="")


def _runs(passes: Passes, span: FlakySpan) -> int:
    """Return the passing results on the days after a flag began."""
    last = max(passes.by_day, default=0)
    return passes.between(span.since.toordinal() + 1, last)


def _needed(span: FlakySpan) -> int:
    """Return among how many passes a test of the rate seen at its flag disagrees again."""
    held = span.holds[0]
    runs = score.RATE_A + score.RATE_B + held.results
    rate = max(EVENT_RATE_MIN, (score.RATE_A + held.weight) / runs)
    return ceil(log(LIKELY_QUIET) / log(1 - rate / SLOWER))


def failures_of(events: Iterable[Event], since: datetime) -> Iterator[Event]:
    """Return the events that are failures contradicted by other results, oldest first."""
    for event in sorted(events):
        if event.at >= since and event.weight >= RENEWING_WEIGHT and not event.passed:
            yield event


def quality_of(flags: Sequence[PastFlag], failures: Iterable[Event], since: datetime) -> Quality:
    """Return the counts of one test."""
    begun = [flag.proof for flag in flags if flag.since >= since]
    on = [any(flag.is_on(each.at) for flag in flags) for each in failures]
    return Quality(
        confirmed=begun.count(Proof.CONFIRMED),
        unconfirmed=begun.count(Proof.UNCONFIRMED),
        open=begun.count(Proof.OPEN),
        caught=on.count(True),
        missed=on.count(False) if flags else 0,
        unclear=0 if flags else len(on),
    )
