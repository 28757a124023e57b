"""Views of queues and submissions, made from queue values and rows.

Views are cached per version of the queue: pages and clients read one version many times.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cachetools import LRUCache

from service.accounts.store import access
from service.database.database import Tx
from service.memory import QUEUES_MAX
from service.mergequeue.engine.checked import judging_run_of
from service.mergequeue.engine.explaining import acting, eta, explain
from service.mergequeue.engine.explaining.eta import TimeLeftRange
from service.mergequeue.engine.explaining.explain import Explained
from service.mergequeue.engine.model import Entry, MergeQueue, RequiredSet, Run
from service.mergequeue.engine.state import shares
from service.mergequeue.engine.state.places import indexed
from service.mergequeue.engine.states import FINAL, EntryState
from service.mergequeue.operations import checked_names, turn
from service.mergequeue.operations.views import (
    Conclusion,
    PullRequestView,
    QueueView,
    TimelineEvent,
)
from service.mergequeue.store import journal, pull_requests, runs
from service.mergequeue.wording import holds, situation
from service.runtime import Runtime
from service.text.times import TimeLeft
from service.vocabulary import CheckOutcome, QueueRef

ETA_STEP_S = 5
"""Estimates are refreshed this often; until then the cached view is returned."""


CacheKey = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class SharedRows:
    """The rows that all views of a queue need: the page of its repository, durations of runs."""

    web_url: str
    durations_s: Sequence[float]


@dataclass(slots=True)
class CachedViews:
    """Views of a queue under one key; `whole` is the queue itself, with all of its entries.

    `positions` is made for the first view of one submission: a turn may need a thousand of them.
    `shared` is read for it.
    """

    key: CacheKey
    by_number: dict[int, PullRequestView]
    whole: QueueView | None = None
    positions: Mapping[int, int] | None = None
    shared: SharedRows | None = None


class QueueViews:
    """Views of queues; `targets_revision` grows when impacted targets are uploaded."""

    def __init__(self) -> None:
        self.targets_revision = 0
        self._of_queue: LRUCache[int, CachedViews] = LRUCache(QUEUES_MAX)

    def views(self, queue_id: int, key: CacheKey) -> CachedViews:
        """Return the views of a queue under exactly this key; those under another are dropped."""
        kept = self._of_queue.get(queue_id)
        if kept is None or kept.key != key:
            kept = self._of_queue[queue_id] = CachedViews(key, {})
        return kept

    def forget(self) -> None:
        """Build every view anew."""
        self.targets_revision += 1


@dataclass(frozen=True, slots=True)
class ViewContext:
    """The shared inputs of all views of one queue, besides its value."""

    queue: QueueRef
    value: MergeQueue
    shared: SharedRows
    etas: Mapping[int, TimeLeftRange]
    now: datetime
    with_targets: frozenset[int]


def explain_entries(
    queue: MergeQueue, entries: Iterable[Entry], now: datetime
) -> dict[str, Explained]:
    """Explain open entries of a value, by id."""
    shown = {entry.pr: entry.id for entry in entries}
    found = explain.explain_each(queue, shown, now)
    return {shown[pr]: explained for pr, explained in found.items()}


def entries_in_order(value: MergeQueue) -> tuple[Entry, ...]:
    """Return all entries: the line first, then pending ones, then NOT_READY by submission."""
    entries = indexed(value.entries)
    found = sorted(entries.values(), key=_sort_key)
    in_turn = iter(shares.in_order(value, entries, entries.places))
    return tuple(entries[next(in_turn)] if _waits(one) else one for one in found)


def _sort_key(entry: Entry) -> tuple[int, int, int, int, datetime, int]:
    """Return the sort key of an open entry within its queue, by the turns of submitters."""
    if entry.state is EntryState.NOT_READY:
        return (2, 0, 0, 0, entry.submitted_at, entry.pr)
    if entry.rank is None:
        return (1, entry.priority, entry.turn, entry.seq or 0, entry.submitted_at, entry.pr)
    return (0, entry.rank, 0, 0, entry.submitted_at, entry.pr)


def _waits(entry: Entry) -> bool:
    return entry.rank is None and entry.state is EntryState.PENDING


def queue_length(value: MergeQueue) -> int:
    """Return the number of entries past NOT_READY."""
    return sum(1 for one in value.entries.values() if one.state is not EntryState.NOT_READY)


def position_of(value: MergeQueue, entry: Entry) -> int | None:
    """Return the 1-based position among entries past NOT_READY; None for other entries."""
    return _positions(value).get(entry.pr)


def _positions(value: MergeQueue) -> Mapping[int, int]:
    """Return the 1-based positions of all entries past NOT_READY, by number."""
    in_order = enumerate(entries_in_order(value), start=1)
    return {one.pr: place for place, one in in_order if one.state is not EntryState.NOT_READY}


def _cache_key(runtime: Runtime, current: MergeQueue, now: datetime) -> CacheKey:
    """Return the cache key of a queue's views."""
    revision = runtime.memory.of(QueueViews).targets_revision
    return (current.version, int(now.timestamp()) // ETA_STEP_S, revision)


def _shared_rows(session: Tx, ref: QueueRef) -> SharedRows:
    repository = access.repository(session, ref.repository_id)
    return SharedRows(repository.url, runs.succeeded_durations_s(session, ref.id))


def _with_targets(session: Tx, ref: QueueRef, shown: Iterable[Entry]) -> frozenset[int]:
    """Return the pull requests of whose heads the impacted targets are known."""
    pairs = [(one.pr, one.head) for one in shown]
    uploaded = pull_requests.targets_known(session, ref.repository_id, pairs)
    return frozenset(number for number, _ in uploaded)


def _live_view(
    context: ViewContext, entry: Entry, position: int | None, size: int
) -> PullRequestView:
    """Return the view of an open submission; `size` is the length of the queue."""
    value = context.value
    run = value.runs.get(entry.run or entry.verified_by or "")
    built = run is not None and run.sha is not None
    blocked = acting.acting(value, entry, run)
    return PullRequestView(
        queue=context.queue,
        entry=entry,
        config=value.config,
        position=position,
        length=size,
        eta=_time_left(context.etas.get(entry.pr), context.now),
        conclusion=None,
        run=run.id if run is not None and built else None,
        has_targets=entry.pr in context.with_targets,
        pull_request_url=f"{context.shared.web_url}/pull/{entry.pr}",
        acting=blocked,
        stop=holds.stop(blocked, context.queue.branch, context.now),
        failing=situation.failing_of(entry, run),
        judged_by=_verified_by(value, entry),
    )


def _verified_by(value: MergeQueue, entry: Entry) -> Run | None:
    is_verified = entry.state is EntryState.TESTS_PASSED
    return value.runs.get(entry.verified_by or "") if is_verified else None


async def pull_request_view(
    runtime: Runtime, ref: QueueRef, number: int, entry_id: str | None
) -> PullRequestView | None:
    """Return the view of one submission, None if it is unknown.

    `entry_id` None: the newest submission. Raises QueueGone.
    """
    current = await turn.value(runtime, ref.id)
    return await _pull_request_view(runtime, ref, current, number, entry_id)


async def last_pull_request_view(
    runtime: Runtime, ref: QueueRef, number: int, entry_id: str | None
) -> PullRequestView | None:
    """Return the same, also of a deleted queue, to show what a command has done."""
    current = await turn.last_value(runtime, ref.id)
    return await _pull_request_view(runtime, ref, current, number, entry_id)


async def _pull_request_view(
    runtime: Runtime, ref: QueueRef, current: MergeQueue, number: int, entry_id: str | None
) -> PullRequestView | None:
    """Build and cache the view by itself: a change of one entry costs no view of the queue."""
    now = runtime.clock.now()
    kept = runtime.memory.of(QueueViews).views(ref.id, _cache_key(runtime, current, now))
    known = kept.by_number.get(number)
    if known is not None and entry_id in {None, known.entry.id}:
        return known
    entry = current.entries.get(number)
    if entry is not None and entry_id in {None, entry.id}:
        shown = (entry,)
        shared, with_targets = await _rows_of(runtime, ref, kept, shown)
        etas = eta.etas(current, shared.durations_s, now, number)
        context = ViewContext(ref, current, shared, etas, now, with_targets)
        place = _place_of(kept, current, number)
        view = _live_view(context, entry, place, queue_length(current))
        kept.by_number[number] = view
        return view
    return await runtime.store.read(_ended_view, ref, current, number, entry_id)


async def _rows_of(
    runtime: Runtime, ref: QueueRef, kept: CachedViews, shown: Iterable[Entry]
) -> tuple[SharedRows, frozenset[int]]:
    """Read what views of these entries need; what all views share is read once under a key."""

    def read(session: Tx) -> tuple[SharedRows, frozenset[int]]:
        return kept.shared or _shared_rows(session, ref), _with_targets(session, ref, shown)

    shared, with_targets = await runtime.store.read(read)
    kept.shared = shared
    return shared, with_targets


def _place_of(kept: CachedViews, current: MergeQueue, number: int) -> int | None:
    if kept.positions is None:
        kept.positions = _positions(current)
    return kept.positions.get(number)


@dataclass(frozen=True, slots=True)
class Standing:
    """A submission and its place in the queue, as texts tell of it."""

    entry: Entry
    web_url: str
    position: int | None
    length: int
    left: TimeLeft | None


async def standing_of(
    runtime: Runtime, ref: QueueRef, current: MergeQueue, number: int, entry_id: str | None
) -> Standing | None:
    """Return how a submission stands, None if it is unknown; the newest one without `entry_id`."""
    now, size = runtime.clock.now(), queue_length(current)
    kept = runtime.memory.of(QueueViews).views(ref.id, _cache_key(runtime, current, now))
    if kept.shared is None:
        kept.shared = await runtime.store.read(_shared_rows, ref)
    shared = kept.shared
    entry = current.entries.get(number)
    if entry is None or entry_id not in {None, entry.id}:
        ended = await runtime.store.read(_ended, ref, number, entry_id)
        return None if ended is None else Standing(ended, shared.web_url, None, size, None)
    left = eta.etas(current, shared.durations_s, now, number).get(number)
    place = _place_of(kept, current, number)
    return Standing(entry, shared.web_url, place, size, _time_left(left, now))


def _ended_view(
    session: Tx, ref: QueueRef, current: MergeQueue, number: int, entry_id: str | None
) -> PullRequestView | None:
    entry = _ended(session, ref, number, entry_id)
    return None if entry is None else ended_views(session, ref, current, (entry,))[0]


def _ended(session: Tx, ref: QueueRef, number: int, entry_id: str | None) -> Entry | None:
    """Return a submission that has ended; the newest one without `entry_id`."""
    if entry_id is None:
        # One that is open now was submitted after the value was read.
        entry = runs.newest_ended(session, ref.id, number)
    else:
        entry = runs.entry(session, ref.id, entry_id)
    return entry if entry is not None and entry.state in FINAL else None


def ended_views(
    session: Tx, ref: QueueRef, current: MergeQueue, entries: Sequence[Entry]
) -> tuple[PullRequestView, ...]:
    """Return the views of ended submissions, in the same order."""
    last = {each.id: judging_run_of(each) for each in entries}
    ids = [run for run in last.values() if run is not None]
    found = {each.id: each for each in runs.runs_of(session, ref.id, ids)}
    web_url = access.repository(session, ref.repository_id).url
    pairs = [(each.pr, each.head) for each in entries]
    uploaded = pull_requests.targets_known(session, ref.repository_id, pairs)
    size = queue_length(current)
    views = []
    for entry in entries:
        run = found.get(last[entry.id] or "")
        views.append(
            PullRequestView(
                queue=ref,
                entry=entry,
                config=current.config,
                position=None,
                length=size,
                eta=None,
                conclusion=_conclusion(entry, run),
                run=run.id if run is not None and run.sha is not None else None,
                has_targets=(entry.pr, entry.head) in uploaded,
                pull_request_url=f"{web_url}/pull/{entry.pr}",
                judged_by=run,
            )
        )
    return tuple(views)


def _conclusion(entry: Entry, run: Run | None) -> Conclusion:
    failed = tuple(named.name for named in entry.detail.checks)
    if run is not None and not failed and entry.state is EntryState.FAILED:
        failed = tuple(
            sorted({one.name for one in run.checks if one.outcome is CheckOutcome.FAILED})
        )
    cause = run.cause.value if run is not None and run.cause is not None else None
    return Conclusion(
        at=entry.state_since,
        cause=None if entry.state is EntryState.MERGED else cause,
        merged_sha=entry.landed_sha,
        run=run.id if run is not None else None,
        failed=() if entry.state is EntryState.MERGED else failed,
    )


async def with_timelines(
    runtime: Runtime, views: Sequence[PullRequestView]
) -> tuple[PullRequestView, ...]:
    """Return the views with their timelines, oldest event first, numbered from 1."""
    return await runtime.store.read(_with_timelines, views)


def _with_timelines(session: Tx, views: Sequence[PullRequestView]) -> tuple[PullRequestView, ...]:
    return tuple(_with_timeline(session, each) for each in views)


def _with_timeline(session: Tx, view: PullRequestView) -> PullRequestView:
    recorded = journal.timeline(session, view.queue.id, view.entry.pr, view.entry.id)
    events = tuple(TimelineEvent(n, one) for n, one in enumerate(recorded, start=1))
    tables = checked_names.tables_in(session, view.queue, recorded)
    return replace(view, timeline=events, tables=tables)


async def queue_view(runtime: Runtime, ref: QueueRef) -> QueueView:
    """Return the queue with all entries that are not final; the same object until a change.

    Raises QueueGone.
    """
    return await _whole_view(runtime, ref, await turn.value(runtime, ref.id))


async def last_queue_view(runtime: Runtime, ref: QueueRef) -> QueueView:
    """Return the same, also of a deleted queue, to show what a command has done."""
    return await _whole_view(runtime, ref, await turn.last_value(runtime, ref.id))


async def _whole_view(runtime: Runtime, ref: QueueRef, current: MergeQueue) -> QueueView:
    now = runtime.clock.now()
    kept = runtime.memory.of(QueueViews).views(ref.id, _cache_key(runtime, current, now))
    if kept.whole is not None:
        return kept.whole
    entries = entries_in_order(current)
    shared, with_targets = await _rows_of(runtime, ref, kept, entries)
    etas = eta.etas(current, shared.durations_s, now)
    context = ViewContext(ref, current, shared, etas, now, with_targets)
    size = queue_length(current)
    views = {
        one.pr: _live_view(context, one, place if place <= size else None, size)
        for place, one in enumerate(entries, start=1)
    }
    view = QueueView(
        ref,
        current,
        current.required or RequiredSet(),
        tuple(views.values()),
        _time_left(eta.of_new(current, shared.durations_s, now), now),
    )
    kept.by_number, kept.whole = views, view
    return view


def _time_left(left: TimeLeftRange | None, now: datetime) -> TimeLeft | None:
    """Return the estimate as instants, to the second; None if there is no estimate."""
    if left is None:
        return None
    latest = _after(now, left.latest_s)
    return TimeLeft(_after(now, left.earliest_s), latest, overdue=latest < now)


def _after(now: datetime, seconds: float) -> datetime:
    # Rounded, so that the estimate of a running test does not flicker between two seconds.
    instant = now + timedelta(seconds=seconds + 0.5)
    return instant.replace(microsecond=0)
