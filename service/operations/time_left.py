"""When a queued pull request probably ends, from how long runs took before (UX.md 1.8)."""

from datetime import datetime, timedelta

from service.mergequeue import estimates
from service.mergequeue.model import Entry, MergeQueue, Run
from service.mergequeue.states import EntryState, RunStatus
from service.wording.times import TimeLeft

_TOLD = frozenset({EntryState.PENDING, EntryState.TESTING, EntryState.TESTS_PASSED})


def of(
    queue: MergeQueue,
    entry: Entry,
    position: int | None,
    durations_s: tuple[float, ...],
    now: datetime,
) -> TimeLeft | None:
    """A range of instants; None when held, not ready, failing, or with too few samples."""
    if queue.holds or position is None or entry.state not in _TOLD:
        return None
    if entry.state is EntryState.PENDING:
        rounds = (position - 1) // queue.config.concurrency
        return _range(now, now, durations_s, rounds)
    run = _awaited(queue, entry)
    return None if run is None else _range(run.created_at, now, durations_s, 0)


def _awaited(queue: MergeQueue, entry: Entry) -> Run | None:
    """The run whose end decides: its own, or the last one running among those ahead of it."""
    own = queue.runs.get(entry.run or entry.verified_by or "")
    if own is None or own.status is RunStatus.IN_PROGRESS:
        return own
    ahead = [queue.entries[member.pr] for member in own.base if member.pr in queue.entries]
    running = [
        run
        for other in ahead
        if (run := queue.runs.get(other.run or "")) is not None
        and run.status is RunStatus.IN_PROGRESS
    ]
    return max(running, key=lambda run: run.created_at, default=None)


def _range(
    since: datetime, now: datetime, durations_s: tuple[float, ...], rounds: int
) -> TimeLeft | None:
    whole = estimates.time_left(durations_s, 0.0, rounds)
    if whole is None:
        return None
    earliest = since + timedelta(seconds=round(whole.earliest_s))
    latest = since + timedelta(seconds=round(whole.latest_s))
    return TimeLeft(earliest, latest, overdue=latest < now)
