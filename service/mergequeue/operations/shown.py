"""Queue values and rows as the views that faces render. Reads, decides nothing.

The views of a queue are kept while its version stands, so that hot reads come from memory
(PERFORMANCE.md 3.1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from service.accounts.store import access
from service.database.database import Tx
from service.memory import Stamp
from service.mergequeue.engine import eta, explain
from service.mergequeue.engine.eta import TimeLeftRange
from service.mergequeue.engine.explain import Explained
from service.mergequeue.engine.model import Entry, MergeQueue, Run
from service.mergequeue.engine.states import FINAL, EntryState
from service.mergequeue.operations import time_left, turn
from service.mergequeue.operations.views import Conclusion, PullRequestView, TimelineEvent
from service.mergequeue.store import journal, pull_requests, runs
from service.runtime import Runtime
from service.vocabulary import CheckOutcome, QueueRef

ETA_STEP_S = 5
"""Times left are told anew this often; in between the same view is answered."""


@dataclass(frozen=True, slots=True)
class Context:
    """What every view of one queue needs beside its value."""

    queue: QueueRef
    value: MergeQueue
    web_url: str
    etas: Mapping[int, TimeLeftRange]
    now: datetime
    with_targets: frozenset[int]


async def value(runtime: Runtime, queue: QueueRef) -> MergeQueue:
    """The queue's newest value."""
    return await turn.value(runtime, queue.id)


def explained(queue: MergeQueue, entry: Entry, now: datetime) -> Explained:
    """Why the entry is where it is; a final one has its reason and no conditions."""
    live = queue.entries.get(entry.pr)
    if live is None or live.id != entry.id:
        return explain.of_final(entry)
    return explain.explain(queue, entry.pr, now)


def in_order(value: MergeQueue) -> tuple[Entry, ...]:
    """Every entry: the line, then the waiting, then those not ready by submission."""
    return tuple(sorted(value.entries.values(), key=place))


def place(entry: Entry) -> tuple[int, int, int, datetime, int]:
    """Where an open entry comes among all of its queue, to sort by."""
    if entry.state is EntryState.NOT_READY:
        return (2, 0, 0, entry.submitted_at, entry.pr)
    if entry.rank is None:
        return (1, entry.priority, entry.seq or 0, entry.submitted_at, entry.pr)
    return (0, entry.rank, 0, entry.submitted_at, entry.pr)


def length(value: MergeQueue) -> int:
    """Entries past NOT_READY."""
    return sum(1 for one in value.entries.values() if one.state is not EntryState.NOT_READY)


def position_of(value: MergeQueue, entry: Entry) -> int | None:
    """1-based place among entries past NOT_READY; None for those not ready."""
    if entry.state is EntryState.NOT_READY or entry.pr not in value.entries:
        return None
    own = place(entry)
    return 1 + sum(1 for one in value.entries.values() if place(one) < own)


def stamp(runtime: Runtime, current: MergeQueue, now: datetime) -> Stamp:
    """Under which a view of the queue stands."""
    return (current.version, int(now.timestamp()) // ETA_STEP_S, runtime.memory.generation)


def context_of(
    session: Tx, ref: QueueRef, current: MergeQueue, now: datetime, shown: tuple[Entry, ...]
) -> Context:
    """What views of these entries need, beside what the value says."""
    repository = access.repository(session, ref.repository_id)
    pairs = [(one.pr, one.head) for one in shown]
    last = shown[0].pr if len(shown) == 1 else None
    uploaded = pull_requests.targets_known(session, ref.repository_id, pairs)
    return Context(
        queue=ref,
        value=current,
        web_url=repository.url,
        etas=eta.etas(current, runs.succeeded_durations_s(session, ref.id), now, last),
        now=now,
        with_targets=frozenset(number for number, _ in uploaded),
    )


def live_view(context: Context, entry: Entry, position: int | None, size: int) -> PullRequestView:
    """An open submission at its place among `size` entries past NOT_READY."""
    value = context.value
    run = value.runs.get(entry.run or entry.verified_by or "")
    built = run is not None and run.sha is not None
    return PullRequestView(
        queue=context.queue,
        entry=entry,
        config=value.config,
        position=position,
        length=size,
        eta=time_left.of(context.etas.get(entry.pr), context.now),
        conclusion=None,
        run=run.id if run is not None and built else None,
        has_targets=entry.pr in context.with_targets,
        url=None,
        pull_request_url=f"{context.web_url}/pull/{entry.pr}",
        queue_state=value.state,
    )


async def pull_request(
    runtime: Runtime, ref: QueueRef, number: int, entry_id: str | None
) -> PullRequestView | None:
    """One submission, the newest unless `entry_id` names another; None when unknown.

    Made by itself and kept: a write that changes one entry does not pay for showing all of
    them, and who asks for one again and again is answered from memory.
    """
    now = runtime.clock.now()
    current = await turn.value(runtime, ref.id)
    kept = runtime.memory.views(ref.id, stamp(runtime, current, now))
    known = kept.get(number)
    if isinstance(known, PullRequestView) and entry_id in {None, known.entry.id}:
        return known
    entry = current.entries.get(number)
    if entry is not None and entry_id in {None, entry.id}:
        context = await runtime.store.read(context_of, ref, current, now, (entry,))
        view = live_view(context, entry, position_of(current, entry), length(current))
        kept[number] = view
        return view
    return await runtime.store.read(_ended_view, ref, current, number, entry_id)


def _ended_view(
    session: Tx, ref: QueueRef, current: MergeQueue, number: int, entry_id: str | None
) -> PullRequestView | None:
    if entry_id is None:
        entry = runs.newest_entry(session, ref.id, number)
    else:
        entry = runs.entry(session, ref.id, entry_id)
    if entry is None or entry.state not in FINAL:
        return None
    return ended(session, ref, current, (entry,))[0]


def ended(
    session: Tx, ref: QueueRef, current: MergeQueue, entries: Sequence[Entry]
) -> tuple[PullRequestView, ...]:
    """Submissions that have ended, with how they did, in the same order."""
    last = {each.id: each.verified_by or each.detail.run or each.run for each in entries}
    ids = [run for run in last.values() if run is not None]
    found = {each.id: each for each in runs.runs_of(session, ref.id, ids)}
    web_url = access.repository(session, ref.repository_id).url
    pairs = [(each.pr, each.head) for each in entries]
    uploaded = pull_requests.targets_known(session, ref.repository_id, pairs)
    size = length(current)
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
                url=None,
                pull_request_url=f"{web_url}/pull/{entry.pr}",
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
    """The views with all that happened to each submission, oldest first, numbered from 1."""
    return await runtime.store.read(_with_timelines, views)


def _with_timelines(session: Tx, views: Sequence[PullRequestView]) -> tuple[PullRequestView, ...]:
    return tuple(replace(each, timeline=_timeline(session, each)) for each in views)


def _timeline(session: Tx, view: PullRequestView) -> tuple[TimelineEvent, ...]:
    recorded = journal.timeline(session, view.queue.id, view.entry.pr, view.entry.id)
    return tuple(TimelineEvent(n, one) for n, one in enumerate(recorded, start=1))
