"""The statistics of a queue: where time goes, what merges, what leaves and why."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from operator import itemgetter

from service.mergequeue.engine.explaining.estimates import percentile
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Rates
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations import turn
from service.mergequeue.store import statistics
from service.mergequeue.store.figures import Moved
from service.mergequeue.store.statistics import PastQueue, Stay
from service.runtime import Runtime
from service.vocabulary import QueueRef

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
_INSTANT = timedelta(microseconds=1)
"""What ends now belongs to the last bucket."""

MEDIAN, HIGH = 0.5, 0.95
SPANS = (1, 7, 30, 90)
"""Days that statistics may cover."""


class Part(StrEnum):
    """A part of the time from a submission to its merge.

    AGAIN is everything after the first return from testing. PAUSED is taken out of the parts in
    which nothing of the submission runs.
    """

    TO_ENTER = "to_enter"
    FOR_A_SLOT = "for_a_slot"
    TESTING = "testing"
    FOR_OTHERS_AHEAD = "for_others_ahead"
    AGAIN = "again"
    PAUSED = "paused"


_PARTS: Mapping[EntryState, Part] = {
    EntryState.NOT_READY: Part.TO_ENTER,
    EntryState.PENDING: Part.FOR_A_SLOT,
    EntryState.TESTING: Part.TESTING,
    EntryState.TESTS_PASSED: Part.FOR_OTHERS_AHEAD,
    EntryState.PENDING_FAILURE: Part.AGAIN,
}

_STANDS_STILL = (EntryState.NOT_READY, EntryState.PENDING, EntryState.TESTS_PASSED)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A UTC day, or an hour of the last 24: what ended in it, and the queue at its end.

    What ends at `end` belongs to the next one. Times are of what merged in it, None if nothing did;
    `parts_s` are means. `run_s` is the time of the test runs that finished.
    """

    start: datetime
    end: datetime
    merged: int
    failed: int
    removed: int
    runs: int
    run_s: float
    time_to_merge_p50_s: float | None
    time_to_merge_p95_s: float | None
    parts_s: Mapping[Part, float]
    depth: int
    runs_in_progress: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """The statistics of a span; `ejections` counts what failed or was removed by its reason.

    `rates` are those that the queue plans with now.
    """

    days: int
    since: datetime
    until: datetime
    merged: int
    failed: int
    removed: int
    runs: int
    run_s: float
    time_to_merge_p50_s: float | None
    time_to_merge_p95_s: float | None
    parts_s: Mapping[Part, float]
    ejections: Mapping[Reason, int]
    concurrency: int
    rates: Rates
    buckets: tuple[Bucket, ...]

    @property
    def success_rate(self) -> float | None:
        """The share of merges among what merged or failed, None without any."""
        ended = self.merged + self.failed
        return self.merged / ended if ended else None

    @property
    def runs_per_merge(self) -> float | None:
        """Finished test runs for each merge, None without a merge."""
        return self.runs / self.merged if self.merged else None


async def load_statistics(runtime: Runtime, queue: QueueRef, days: int) -> Statistics:
    """Return the statistics of the last days, today included; of 1: the last 24 hours."""
    now = runtime.clock.now()
    starts = _starts(now, days)
    past = await runtime.store.read(statistics.since, queue.id, starts[0])
    value = await turn.value(runtime, queue.id)
    until = now + _INSTANT
    buckets = tuple(
        _bucket(past, start, end) for start, end in zip(starts, [*starts[1:], until], strict=True)
    )
    whole = _bucket(past, starts[0], until)
    ejections = Counter(
        stay.reason
        for stay in _ended(past.stays, starts[0], until)
        if stay.state is not EntryState.MERGED
    )
    return Statistics(
        days=days,
        since=starts[0],
        until=now,
        merged=whole.merged,
        failed=whole.failed,
        removed=whole.removed,
        runs=whole.runs,
        run_s=whole.run_s,
        time_to_merge_p50_s=whole.time_to_merge_p50_s,
        time_to_merge_p95_s=whole.time_to_merge_p95_s,
        parts_s=whole.parts_s,
        ejections=dict(ejections.most_common()),
        concurrency=value.config.concurrency,
        rates=value.rates,
        buckets=buckets,
    )


def _starts(now: datetime, days: int) -> list[datetime]:
    if days == 1:
        hour = now.replace(minute=0, second=0, microsecond=0)
        return [hour - nth * HOUR for nth in range(23, -1, -1)]
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return [today - nth * DAY for nth in range(days - 1, -1, -1)]


def _ended(stays: Sequence[Stay], start: datetime, end: datetime) -> list[Stay]:
    return [stay for stay in stays if stay.ended_at is not None and start <= stay.ended_at < end]


def _bucket(past: PastQueue, start: datetime, end: datetime) -> Bucket:
    ended = _ended(past.stays, start, end)
    counts = Counter(stay.state for stay in ended)
    merged = [stay for stay in ended if stay.state is EntryState.MERGED]
    times = sorted((stay.ended_at or end) - stay.submitted_at for stay in merged)
    seconds = [each.total_seconds() for each in times]
    finished = [run for run in past.runs if run.finished_at and start <= run.finished_at < end]
    lasted = ((run.finished_at or end) - run.created_at for run in finished)
    return Bucket(
        start=start,
        end=end,
        merged=counts[EntryState.MERGED],
        failed=counts[EntryState.FAILED],
        removed=counts[EntryState.CANCELLED],
        runs=sum(run.is_whole for run in finished),
        run_s=sum(lasted, timedelta()).total_seconds(),
        time_to_merge_p50_s=percentile(seconds, MEDIAN) if seconds else None,
        time_to_merge_p95_s=percentile(seconds, HIGH) if seconds else None,
        parts_s=_means(
            [parts_of(stay, past.moves.get(stay.entry, ()), past.pauses) for stay in merged]
        ),
        depth=sum(
            stay.submitted_at <= end and (stay.ended_at is None or stay.ended_at > end)
            for stay in past.stays
        ),
        runs_in_progress=sum(
            run.created_at <= end and (run.finished_at is None or run.finished_at > end)
            for run in past.runs
        ),
    )


def _means(of_each: Sequence[Mapping[Part, timedelta]]) -> Mapping[Part, float]:
    if not of_each:
        return {}
    return {
        part: sum((each.get(part, timedelta()) for each in of_each), timedelta()).total_seconds()
        / len(of_each)
        for part in Part
    }


def parts_of(
    stay: Stay, moves: Sequence[Moved], pauses: Sequence[tuple[datetime, datetime]]
) -> Mapping[Part, timedelta]:
    """Return how a merged submission's time divides.

    `moves` are its changes of state, and `pauses` those of its queue, both in order.
    """
    parts: defaultdict[Part, timedelta] = defaultdict(timedelta)
    at, is_again = stay.submitted_at, False
    for move in moves:
        if move.origin in _PARTS:
            is_still = move.origin in _STANDS_STILL
            still = _paused(pauses, at, move.at) if is_still else timedelta()
            parts[Part.PAUSED] += still
            parts[Part.AGAIN if is_again else _PARTS[move.origin]] += move.at - at - still
        is_again = is_again or (
            move.state in (EntryState.PENDING, EntryState.PENDING_FAILURE)
            and move.origin in (EntryState.TESTING, EntryState.TESTS_PASSED)
        )
        at = move.at
    return parts


def _paused(
    pauses: Sequence[tuple[datetime, datetime]], start: datetime, end: datetime
) -> timedelta:
    """Return how much of a time the queue was paused; `pauses` follow one another."""
    first = bisect_right(pauses, start, key=itemgetter(1))
    beyond = bisect_left(pauses, end, lo=first, key=itemgetter(0))
    shared = (min(till, end) - max(since, start) for since, till in pauses[first:beyond])
    return sum(shared, timedelta())
