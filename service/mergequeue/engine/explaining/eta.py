"""Estimate when each entry merges: the queue's plan played forward twice, fast and slow.

No entry fails in it and no new one arrives; each run takes the 25th or the 90th percentile of the
last successful ones (docs/design/testing.md 12). Decides nothing.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.culprits import failing
from service.mergequeue.engine.explaining.estimates import percentile
from service.mergequeue.engine.model import DEFAULT_PRIORITY, Entry, MergeQueue, Run
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.state import shares
from service.mergequeue.engine.state.places import IndexedEntries, Places
from service.mergequeue.engine.states import (
    LANDS,
    MAIN_SLOTS,
    EntryState,
    QueueState,
    RunKind,
    RunStatus,
)
from service.vocabulary import SYSTEM, Mergeability, PullRequestState, Sha

SAMPLES_MIN = 5
"""Below this nothing is said."""

SAMPLES_MAX = 50
"""Newest successful runs that count."""

LOW, HIGH = 0.25, 0.90
"""Percentiles between which the duration of a run probably is."""

MINUTE_S = 60.0
_NO_HEAD = Sha("0" * 40)


@dataclass(frozen=True, slots=True)
class TimeLeftRange:
    """Seconds from now; both below zero: overdue by `-latest_s`."""

    earliest_s: float
    latest_s: float


def etas(
    queue: MergeQueue, durations_s: Sequence[float], now: datetime, last: int | None = None
) -> dict[int, TimeLeftRange]:
    """Seconds from now to the merge of each entry, by pull request, in order.

    `durations_s` are those of successful runs, newest first; the answer is empty below five of
    them, and for a queue that is held or paused. Entries that are not ready or have failed are
    left out, also those of which only a check has, and in a queue that starts nothing those
    without a run. With `last` the entries behind that pull request are left out too: the answer
    costs what is ahead of it.
    """
    sample = sorted(durations_s[:SAMPLES_MAX])
    if len(sample) < SAMPLES_MIN or queue.holds or queue.state not in LANDS:
        return {}
    fast = _Course(queue, now, percentile(sample, LOW), is_slow=False)
    slow = _Course(queue, now, percentile(sample, HIGH), is_slow=True)
    found: dict[int, TimeLeftRange] = {}
    for entry in _in_order(queue):
        earliest_s, latest_s = fast.merges_s(entry), slow.merges_s(entry)
        if earliest_s is not None and latest_s is not None:
            found[entry.pr] = TimeLeftRange(earliest_s, latest_s)
        if entry.pr == last:
            break
    return found


def of_new(queue: MergeQueue, durations_s: Sequence[float], now: datetime) -> TimeLeftRange | None:
    """Seconds from now to the merge of a pull request that is submitted now; None: unknown.

    It is ready at once, has the default priority, and impacts every target.
    """
    if queue.required is not None and queue.required.source is None:
        return None
    entry = _new_entry(queue, now)
    entry = replace(entry, turn=shares.reached(queue, entry))
    with_it = replace(queue, entries={**queue.entries, entry.pr: entry})
    return etas(with_it, durations_s, now, entry.pr).get(entry.pr)


def _new_entry(queue: MergeQueue, now: datetime) -> Entry:
    """Return an entry that waits behind the others of its priority."""
    facts = Facts(
        pr=0,
        head=_NO_HEAD,
        base=queue.branch,
        state=PullRequestState.OPEN,
        draft=False,
        mergeability=Mergeability.MERGEABLE,
        blockers=(),
        title="",
        author="",
        is_fork=False,
    )
    return Entry(
        id="",
        pr=facts.pr,
        facts=facts,
        head=facts.head,
        submitted_by=SYSTEM,
        submitted_at=now,
        priority=DEFAULT_PRIORITY,
        no_batch=False,
        state=EntryState.PENDING,
        state_since=now,
        reason=Reason.NOW_READY,
        seq=1 + max((each.seq or 0 for each in queue.entries.values()), default=0),
    )


def _in_order(queue: MergeQueue) -> Iterator[Entry]:
    """The line, then those that wait or are tried alone."""
    entries = queue.entries
    places = (
        entries.places if isinstance(entries, IndexedEntries) else Places(tuple(entries.values()))
    )
    yield from (entries[pr] for _, pr in places.line)
    in_run = (entries[pr] for numbers in places.in_run.values() for pr in numbers)
    tried = [entry for entry in in_run if entry.rank is None]
    apart = sorted(tried, key=lambda entry: entry.waiting_key, reverse=True)
    for pr in shares.in_order(queue, entries, places):
        while apart and apart[-1].waiting_key < entries[pr].waiting_key:
            yield apart.pop()
        yield entries[pr]
    yield from reversed(apart)


class _Course:
    """The plan played forward, entry by entry in order, each run taking `run_s`."""

    def __init__(self, queue: MergeQueue, now: datetime, run_s: float, *, is_slow: bool) -> None:
        self._queue = queue
        self._now = now
        self._run_s = run_s
        self._is_slow = is_slow
        self._is_single = queue.config.mode is Mode.SINGLE
        self._batch_size = queue.config.batching_min_size if queue.config.batch else 1
        self._merged_s: dict[int, float] = {}
        self._last_s: float | None = None
        running = [
            max(self._left_s(run), 0.0)
            for run in queue.runs.values()
            if run.kind in MAIN_SLOTS and run.status is RunStatus.IN_PROGRESS
        ]
        # One slot each, and those that nothing uses.
        self._slots = running + [0.0] * (queue.config.concurrency - len(running))
        heapq.heapify(self._slots)
        self._group_s = 0.0
        self._group_left = 0

    def merges_s(self, entry: Entry) -> float | None:
        """Return seconds until it merges, negative if overdue; None if there is no estimate."""
        tested_s = self._tested_s(entry)
        if tested_s is None:
            return None
        ahead_s = self._last_s if self._is_single else self._base_s(entry)
        found = tested_s if ahead_s is None or ahead_s < tested_s else ahead_s
        self._merged_s[entry.pr] = found
        if self._last_s is None or self._last_s < found:
            self._last_s = found
        return found

    def _tested_s(self, entry: Entry) -> float | None:
        """Seconds until its tests have passed."""
        if entry.state is EntryState.TESTS_PASSED:
            return 0.0
        if entry.state is EntryState.TESTING:
            run = self._queue.runs[entry.run or ""]
            if failing.failing_of(run) is not None:
                return None
            # After a screen comes the run by which it lands.
            return self._left_s(run) + (self._run_s if run.kind is RunKind.SCREEN else 0.0)
        if entry.state is EntryState.PENDING and self._queue.state is QueueState.RUNNING:
            return self._started_s(entry)
        return None

    def _left_s(self, run: Run) -> float:
        begun = run.created_at if run.repeats is None else run.built_at or run.created_at
        return self._run_s * run.share - (self._now - begun).total_seconds()

    def _started_s(self, entry: Entry) -> float:
        """Seconds to the end of the run that it starts, or joins as one of a batch."""
        if self._batch_size == 1 or entry.no_batch:
            return heapq.heapreplace(self._slots, self._slots[0] + self._run_s) + self._run_s
        if self._group_left:
            self._group_left -= 1
            return self._group_s
        begins_s = self._slots[0]
        if self._is_slow and entry.rank is None:
            begins_s = max(begins_s, self._waits_s(entry))
        self._group_left = self._batch_size - 1
        self._group_s = begins_s + self._run_s
        heapq.heapreplace(self._slots, self._group_s)
        return self._group_s

    def _waits_s(self, entry: Entry) -> float:
        """Seconds that a batch waits for others at most, from its oldest member on."""
        waited_s = (self._now - entry.state_since).total_seconds()
        return self._queue.config.batching_max_wait_time_minutes * MINUTE_S - waited_s

    def _base_s(self, entry: Entry) -> float | None:
        """Return seconds until all of its base has merged; None if its base is empty."""
        run = self._queue.runs.get(entry.run or entry.verified_by or "")
        if run is None:
            # Which entries it will overlap is only known when it starts.
            return self._last_s if self._is_slow else None
        base = [self._merged_s[one.pr] for one in run.base if one.pr in self._merged_s]
        return max(base, default=None)
