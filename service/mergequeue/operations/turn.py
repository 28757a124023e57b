"""One turn: a single transaction that takes waiting inputs through the engine.

Rows, journal, outbox, landing intents and audit entries are written together or not at all
(docs/design/transactions.md 3). Workers call the provider after it.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from service.accounts import access
from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import Lane, OutboxItem
from service.errors import Conflict, DeletedMeanwhile, InvariantBroken, Stale
from service.locks import LocksByNumber
from service.memory import VersionedCache
from service.mergequeue.engine import engine
from service.mergequeue.engine.inputs import Command, Input, PlaceHold, Report, TimePassed
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import (
    Action,
    AskEvidence,
    BuildTestBranch,
    Land,
    RerunChecks,
    RetireRun,
    Step,
    Tell,
)
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.operations import admission, announcements, counting, turn_traces
from service.mergequeue.operations.announcements import TurnResult
from service.mergequeue.store import journal, landings, queues
from service.mergequeue.store.cache import QueueCache, newest_known
from service.mergequeue.store.queues import Head
from service.notifications import notifications
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef

INPUTS_MAX = 64
STALE_TRIES_MAX = 5
KEPT_WITHIN_S = 0.1
"""The longest wait for a value that a turn of this process is about to keep."""

NOTICE_DELAY = timedelta(seconds=2)
"""Changes of one pull request's texts are joined over this time (docs/design/provider.md 5)."""

REFRESH_DELAY = timedelta(seconds=5)
"""The same for what is new without a change of the state, which comes more often."""

LANES: Mapping[type[Action], Lane] = {
    BuildTestBranch: Lane.CONTROL,
    RerunChecks: Lane.CONTROL,
    RetireRun: Lane.CONTROL,
    Land: Lane.LANDING,
    AskEvidence: Lane.EVIDENCE,
    Tell: Lane.NOTICE,
}

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Along:
    """Rows to commit together with a turn, and its preconditions.

    `also` returns the lanes for which it stored effects. `on_taken`, which stores none, is kept
    only if no input is refused; `beside`, which stores none either, in any case. With more inputs
    than a turn takes, it is kept with the last turn.
    `whole`: when one input is refused, none of them counts. `expected_version`: the
    queue's `revision` must be it, else Conflict(version_conflict). A token that asks must
    still be valid.
    """

    audit: AuditEntry | None = None
    also: Callable[[Tx], Collection[Lane]] | None = None
    on_taken: Callable[[Tx], None] | None = None
    beside: Callable[[Tx], None] | None = None
    whole: bool = False
    expected_version: int | None = None


ALONE = Along()


class QueueLocks(LocksByNumber):
    """Serializes the turns of a queue within this process."""


class QueueGone(DeletedMeanwhile):
    """The queue was deleted: nothing enters or changes it any more."""

    code = "queue_not_found"


async def take(
    runtime: Runtime, queue_id: int, inputs: Sequence[Input], along: Along = ALONE
) -> tuple[Step, ...]:
    """Take at most 64 inputs in order through one transaction.

    Returns a step for each command, and one for all reports between two commands. Raises
    QueueGone, DatabaseUnavailable. A broken invariant rolls the turn back and
    holds the queue (`invariant_breach`), then raises InvariantBroken.
    """
    if len(inputs) > INPUTS_MAX:
        head = await take(runtime, queue_id, inputs[:INPUTS_MAX], replace(along, beside=None))
        return head + await take(runtime, queue_id, inputs[INPUTS_MAX:], Along(beside=along.beside))
    async with runtime.memory.of(QueueLocks).of(queue_id):
        try:
            return await _take(runtime, queue_id, inputs, along)
        except InvariantBroken as broken:
            runtime.telemetry.count("headgate_invariant_breaches_total")
            # A mistake of ours: the turn is undone and the queue is on hold. Report it with the
            # lines before.
            log.error("invariant_broken", queue=queue_id, number=broken.number, why=broken.detail)
            await _take(runtime, queue_id, [_breach(broken)], ALONE)
            raise


async def ask(runtime: Runtime, queue: QueueRef, command: Command, along: Along = ALONE) -> Step:
    """Give one queue a command; a refusal is a value in the step."""
    return (await take(runtime, queue.id, [command], along))[-1]


async def value(runtime: Runtime, queue_id: int) -> MergeQueue:
    """Return the queue's newest committed value. Raises QueueGone."""
    found = await last_value(runtime, queue_id)
    if found.deleted:
        raise _gone(found.branch)
    return found


async def last_value(runtime: Runtime, queue_id: int) -> MergeQueue:
    """Return the same, and of a deleted queue the last value, to show what has happened in it.

    Raises NotFound(queue_not_found).
    """
    seen = runtime.wakeups.version(topic_of(queue_id))
    known = await newest_known(runtime.store, queue_id)
    if known is None and runtime.memory.of(QueueLocks).of(queue_id).locked():
        # A turn of this process has committed it, and keeps it in a moment: a load costs more.
        await runtime.wakeups.wait(topic_of(queue_id), seen, KEPT_WITHIN_S)
        known = await newest_known(runtime.store, queue_id)
    if known is not None:
        return known
    # Taken before the read: a cache that is cleared meanwhile must not get an older value.
    cache = runtime.store.caches.of(QueueCache)
    read = await runtime.store.read(queues.load, queue_id)
    cache.put(read)
    return read


class _QueueRefs(VersionedCache[int, QueueRef]):
    """Names of queues, under the version that each change of a name increments."""


async def ref_of(runtime: Runtime, queue_id: int) -> QueueRef | None:
    """Return the present names of a queue, also of a deleted one; then remembered."""
    version = await runtime.store.access_version()
    cache = runtime.memory.of(_QueueRefs)
    known = cache.get(version, queue_id)
    if known is None:
        known = await runtime.store.read(queues.ref_by_id, queue_id)
        if known is not None:
            cache.put(version, queue_id, known)
    return known


async def report(runtime: Runtime, queue_id: int, inputs: Sequence[Input]) -> None:
    """Take inputs without an answer; a queue that was deleted meanwhile needs none of them."""
    with suppress(QueueGone):
        await take(runtime, queue_id, inputs)


async def queues_with(runtime: Runtime, repository_id: int, number: int) -> tuple[QueueRef, ...]:
    """Return the queues of a repository that a pull request is in."""
    found = await runtime.store.read(queues.queues_of, repository_id)
    return tuple([one for one in found if number in (await last_value(runtime, one.id)).entries])


async def _take(
    runtime: Runtime, queue_id: int, inputs: Sequence[Input], along: Along
) -> tuple[Step, ...]:
    for _ in range(STALE_TRIES_MAX):
        request = _TurnRequest(queue_id, tuple(inputs), along, runtime.clock.now())
        turn = asyncio.create_task(_committed(runtime, request))
        try:
            # A turn that began is finished and cached, even if its caller stops waiting.
            return await asyncio.shield(turn)
        except asyncio.CancelledError:
            turn.add_done_callback(_unheard)
            raise
        except Stale:
            runtime.store.caches.of(QueueCache).drop(queue_id)
    raise Conflict("The queue is changing too fast; try again.", code="version_conflict")


def _unheard(turn: asyncio.Task[tuple[Step, ...]]) -> None:
    """Log how a turn failed whose caller had stopped waiting."""
    failed = None if turn.cancelled() else turn.exception()
    if failed is not None:
        log.warning("turn_unheard", why=str(failed))


def topic_of(queue_id: int) -> str:
    """Return the topic that every change of a queue wakes."""
    return f"queue/{queue_id}"


async def _committed(runtime: Runtime, request: "_TurnRequest") -> tuple[Step, ...]:
    if not runtime.traces.are_on:
        return (await _taken(runtime, request)).steps
    inputs = ", ".join(dict.fromkeys(type(one).__name__ for one in request.inputs))
    with runtime.traces.work("turn", {"headgate.turn.inputs": inputs}):
        turned = await _taken(runtime, request)
        if turned.ref is not None:
            turn_traces.record(runtime, turned.ref, turned.before, turned.steps)
    return turned.steps


async def _taken(runtime: Runtime, request: "_TurnRequest") -> "_Turned":
    began_s = runtime.clock.monotonic_s()
    turned = await runtime.store.run_kind("turn", _turn, runtime, request)
    took_s = runtime.clock.monotonic_s() - began_s
    runtime.telemetry.observe("headgate_turn_duration_seconds", took_s)
    if turned.saved is not None:
        runtime.store.caches.of(QueueCache).put(turned.saved)
        runtime.wakeups.wake(topic_of(request.queue_id))
        runtime.wakeups.wake("ticks")
        if turned.has_messages:
            runtime.wakeups.wake(notifications.TOPIC)
    outbox.wake(runtime.wakeups, turned.lanes)
    return turned


@dataclass(frozen=True, slots=True)
class _Turned:
    """The result of a turn. `saved` is the queue to be cached after the commit; None: unchanged.

    `lanes` are those for which effects were stored.
    """

    before: MergeQueue
    steps: tuple[Step, ...]
    ref: QueueRef | None = None
    saved: MergeQueue | None = None
    has_messages: bool = False
    lanes: frozenset[Lane] = frozenset()


@dataclass(frozen=True, slots=True)
class _TurnRequest:
    queue_id: int
    inputs: tuple[Input, ...]
    along: Along
    now: datetime


def _turn(session: Tx, runtime: Runtime, request: _TurnRequest) -> _Turned:
    head, before = newest(session, runtime, request.queue_id, lock=True)
    _check(session, request.along, before, request.now)
    request = replace(
        request, inputs=admission.with_past(session, runtime, before, request.inputs, request.now)
    )
    steps = _steps(before, request)
    current = steps[-1].queue
    if request.along.whole and any(step.refusal is not None for step in steps):
        if request.along.audit is not None:
            audit.append(session, _decided(request.along.audit, steps))
        return _Turned(before, tuple(steps))
    whole = _joined(steps)
    ref, saved, has_messages = None, None, False
    if current is not before or whole.events or whole.actions or _is_clock(request):
        saved = queues.save(session, before, whole, head.epoch)
        ref = queues.ref_by_id(session, request.queue_id)
        if ref is None:
            raise _gone(current.branch)
        result = TurnResult(ref, before, replace(whole, queue=saved), request.now)
        _store_outputs(session, runtime, head, result)
        has_messages = record_result(session, runtime, result)
    if request.along.audit is not None:
        audit.append(session, _decided(request.along.audit, steps))
    lanes = {LANES[type(action)] for action in whole.actions}
    lanes.update(_keep_along(session, request.along, steps))
    return _Turned(before, tuple(steps), ref, saved, has_messages, frozenset(lanes))


def _steps(queue: MergeQueue, request: _TurnRequest) -> list[Step]:
    """Plan once for all reports that arrived together; a command takes a step of its own."""
    steps: list[Step] = []
    reports: list[Report] = []
    for one in request.inputs:
        if not isinstance(one, Command):
            reports.append(one)
            continue
        if reports:
            steps.append(engine.step_reports(queue, reports, request.now))
            queue, reports = steps[-1].queue, []
        steps.append(engine.step(queue, one, request.now))
        queue = steps[-1].queue
    if reports:
        steps.append(engine.step_reports(queue, reports, request.now))
    return steps


def _keep_along(session: Tx, along: Along, steps: Sequence[Step]) -> Collection[Lane]:
    """Store the rows that come with a turn; return the lanes of their effects."""
    lanes = along.also(session) if along.also is not None else ()
    if along.on_taken is not None and all(step.refusal is None for step in steps):
        along.on_taken(session)
    if along.beside is not None:
        along.beside(session)
    return lanes


def _is_clock(request: _TurnRequest) -> bool:
    """Return whether time is the only input: the wake-up is then stored even without a change."""
    return any(isinstance(one, TimePassed) for one in request.inputs)


def _decided(row: AuditEntry, steps: Sequence[Step]) -> AuditEntry:
    """Return the audit row with the queue's decision."""
    refused = next((step.refusal for step in steps if step.refusal is not None), None)
    if refused is None:
        return row
    return replace(row, decision="denied", reason=refused.reason.value)


def _store_outputs(session: Tx, runtime: Runtime, head: Head, result: TurnResult) -> None:
    """Store the outputs of a turn in its transaction: journal, outbox, landing rows."""
    ref, whole = result.ref, result.whole
    journal.append(session, ref.id, whole.events)
    items = [item(runtime, ref, action, result.now) for action in whole.actions]
    outbox.append(session, ref.repository_id, ref.id, head.epoch, items)
    for action in whole.actions:
        if isinstance(action, Land):
            landings.intend(session, ref.id, action)
    if whole.queue.deleted:
        queues.mark_deleted(session, ref.id, result.now)


def record_result(session: Tx, runtime: Runtime, result: TurnResult) -> bool:
    """Store the metrics and notifications of a turn; return whether there may be notifications.

    In the turn's transaction. Writes rows only, so that it can run again with its turn. An error
    undoes the turn.
    """
    counting.count_turn(session, result.ref, result.before, result.whole, result.now)
    return announcements.announce(session, runtime, result)


def newest(
    session: Tx, runtime: Runtime, queue_id: int, *, lock: bool = False
) -> tuple[Head, MergeQueue]:
    """Return the stored version and its value, from memory where it is there.

    `lock` keeps other turns out until the commit. Raises QueueGone.
    """
    head = queues.head_of(session, queue_id, lock=lock)
    if head is None:
        ref = queues.ref_by_id(session, queue_id)
        raise _gone(ref.branch if ref is not None else "")
    known = runtime.store.caches.of(QueueCache).get(queue_id, head.version)
    return head, known if known is not None else queues.load(session, queue_id)


def _gone(branch: str) -> QueueGone:
    return QueueGone(f'The queue of branch "{branch}" has been deleted.')


def _check(session: Tx, along: Along, before: MergeQueue, now: datetime) -> None:
    expected = along.expected_version
    if expected is not None and expected != before.revision:
        raise Conflict(
            f"The queue is at version {before.revision}, not {expected}.", code="version_conflict"
        )
    if along.audit is not None:
        access.recheck(session, along.audit.actor, now)


def _joined(steps: Sequence[Step]) -> Step:
    """Return all steps of a turn as one: all outputs in order, the last value and wake-up."""
    last = steps[-1]
    return Step(
        queue=last.queue,
        actions=tuple(action for step in steps for action in step.actions),
        events=tuple(event for step in steps for event in step.events),
        refusal=None,
        wake_at=last.wake_at,
        finished_entries=tuple(entry for step in steps for entry in step.finished_entries),
        finished_runs=tuple(run for step in steps for run in step.finished_runs),
    )


def place_of_texts(queue: QueueRef, number: int) -> str:
    """Return the key under which texts on a pull request replace each other and keep their order.

    A queue that is made again goes on with the status comment of the one before it, so the key
    names the branch, as the comment does.
    """
    return f"tell/{queue.repository_id}/{queue.branch}/{number}"


def item(runtime: Runtime, queue: QueueRef, action: Action, now: datetime) -> OutboxItem:
    """Return an action of a queue as an effect to be performed."""
    plain = OutboxItem(LANES[type(action)], key="", kind="", effect=action, next_at=now)
    match action:
        case BuildTestBranch(run=run):
            return replace(plain, key=f"{run}/build", kind="build", run=run)
        case RerunChecks(run=run, attempt=attempt):
            return replace(plain, key=f"{run}/rerun/{attempt}", kind="rerun", run=run)
        case Land(run=run, number=number):
            key = f"{run}/land/{number}"
            return replace(plain, key=key, kind="land", run=run)
        case RetireRun(run=run):
            return replace(plain, key=f"{run}/retire", kind="retire", run=run)
        case AskEvidence(run=run):
            # A question may be asked again; of several about one run the newest is enough.
            return replace(
                plain,
                key=f"{run}/evidence/{runtime.ids.uuid()}",
                kind="evidence",
                supersede_key=f"evidence/{run}",
            )
        case Tell(pr=pr, entry=entry, is_refresh=is_refresh):
            return replace(
                plain,
                key=f"{entry}/tell/{runtime.ids.uuid()}",
                kind="tell",
                supersede_key=place_of_texts(queue, pr),
                next_at=now + (REFRESH_DELAY if is_refresh else NOTICE_DELAY),
                yields=is_refresh,
            )


def _breach(broken: InvariantBroken) -> PlaceHold:
    return PlaceHold(
        reason=HoldReason.INVARIANT_BREACH,
        scope=None,
        text=f"Invariant {broken.number} broke: {broken.detail}",
        actor=SYSTEM,
    )
