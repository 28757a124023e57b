"""Effects of the outbox: claimed, marked as sent, performed, settled.

`sent` is committed before the request leaves, so that no stop can hide an effect. A failed
one waits and is tried again; after twelve tries the queue hears that it cannot be done.

See docs/design/transactions.md 5.
"""

from collections.abc import Collection, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

import structlog

from service import tracing
from service.database import outbox
from service.database.claims import ClaimedRows
from service.database.database import Tx
from service.database.outbox import ClaimedEffect, Lane, OutboxState
from service.database.probes import Joined
from service.errors import DatabaseUnavailable
from service.evidence import failed_checks
from service.mergequeue.engine.inputs import (
    BuildRefusal,
    Input,
    PlaceHold,
    RepositoryChanged,
    RerunRefused,
    RerunStarted,
    TestBranchDelayed,
    TestBranchRefused,
)
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.outputs import (
    Action,
    AskEvidence,
    BuildTestBranch,
    Land,
    RerunChecks,
    RetireRun,
    Tell,
)
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.operations import (
    break_effects,
    building,
    chains,
    file_checks,
    head_branches,
    landing,
    notices,
    reconcile,
    restored,
    turn,
)
from service.mergequeue.operations.breaks import FollowGreen, MindBreak
from service.mergequeue.operations.chains import ChangeBase
from service.mergequeue.operations.file_checks import CheckRepositoryFile
from service.mergequeue.operations.head_branches import DeleteHeadBranch
from service.mergequeue.operations.notices import Posted
from service.mergequeue.operations.restored import MendStatus
from service.mergequeue.operations.turn import QueueGone
from service.mergequeue.store import notices as stored_notices
from service.mergequeue.store.backlog import THROTTLED
from service.provider.errors import (
    Gone,
    GoneKind,
    NotPermitted,
    OutcomeUnknown,
    ProviderError,
    Refused,
    Suspended,
    Throttled,
    Unavailable,
)
from service.provider.labels import LabelRemoval
from service.provider.port import Provider
from service.provider.values import (
    NotPossible,
    Reaction,
    Reply,
)
from service.runtime import Runtime
from service.testhealth.detector.ticketing import KeepTicket
from service.testhealth.operations import collected, ticket_issues
from service.testhealth.reports.collecting import CollectReports
from service.tracing import Fields
from service.vocabulary import SYSTEM, QueueRef

ATTEMPTS_MAX = 12
AWAY_ATTEMPTS_MAX = 100
"""Tries of a notice while the provider is away or limits how much is written: about a day."""
BACKOFF_MAX = timedelta(minutes=15)
DOUBLINGS_MAX = 10
"""More of them lie beyond the longest wait."""
FIRST_READ_BACKS = 5
"""An unknown outcome is read back so often at the sweep's own period, then more rarely."""

LONG_ATTEMPTS = 9
"""Tries that take more than five minutes: then the queue says that the provider is away."""

log = structlog.get_logger()


async def claim(
    runtime: Runtime, limit: int, owned: Collection[int] | None = None, *, lanes: Sequence[Lane]
) -> ClaimedRows[ClaimedEffect]:
    """Claim due effects of the lanes, at most `limit`, and mark them sent.

    The `state` of a row says whether an earlier send may have worked. If `owned` ids are given,
    other effects that this process has sent are read back.
    """
    return await runtime.store.run(_claim, runtime, limit, owned, lanes)


def _claim(
    session: Tx,
    runtime: Runtime,
    limit: int,
    owned: Collection[int] | None,
    lanes: Sequence[Lane],
) -> ClaimedRows[ClaimedEffect]:
    now, me, given_back = runtime.clock.now(), runtime.instance, 0
    if owned is not None:
        given_back = outbox.reopen_unowned(session, me, lanes, owned, now)
    rows = outbox.claim(session, now, limit, lanes)
    marked = outbox.mark_sent(session, me, [row.id for row in rows], now)
    claimed = tuple(row for row in rows if row.id in marked)
    # Another process may store an effect that waits for one of these; no wake-up tells of it.
    is_behind = not runtime.store.is_alone or outbox.is_behind(session, lanes)
    return ClaimedRows(claimed, outbox.next_due(session, lanes), given_back, is_behind)


async def carry_out(runtime: Runtime, row: ClaimedEffect) -> None:
    """Perform one claimed effect and settle its row.

    That of a deleted queue ends without a report. Raises DatabaseUnavailable when the
    row could not be settled: see `interrupted`.
    """
    log.debug("effect", kind=row.kind, key=row.key, attempt=row.attempts)
    fields: Fields = {"headgate.effect.key": row.key, "headgate.effect.attempt": row.attempts + 1}
    with runtime.traces.work(f"effect {row.kind}", fields):
        tracing.about(*_submissions_of(row.effect))
        await _carry_out(runtime, row)


def _submissions_of(effect: object) -> tuple[str, ...]:
    """Return the submissions that an effect names; its turns name those of its run."""
    match effect:
        case Tell():
            return (effect.entry,)
        case Land():
            return tuple(step.entry for step in effect.steps)
        case _:
            return ()


async def _carry_out(runtime: Runtime, row: ClaimedEffect) -> None:
    posted: Posted = {}
    try:
        with suppress(QueueGone):
            posted = await perform(runtime, row)
    except ProviderError as trouble:
        tracing.failed(trouble)
        report = log.info if isinstance(trouble, Throttled) else log.warning
        report("effect_failed", kind=row.kind, key=row.key, why=trouble.message)
        await _explain_trouble(runtime, row, trouble)
        await _wait(runtime, row, trouble)
    else:
        runtime.crash_points.reach("effect.before_done")
        await runtime.memory.of(_Settling, lambda: _Settling(runtime)).answer(_Done(row.id, posted))
        _count(runtime, row, "done")


@dataclass(frozen=True, slots=True, eq=False)
class _Done:
    """An effect that was performed, and the notices to record as posted by it."""

    id: int
    posted: Posted


class _Settling(Joined[_Done, None]):
    """Effects that end at the same time are settled in one transaction."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(lambda done: runtime.store.run_kind("settle", _settle, done))


def _settle(session: Tx, done: Set[_Done]) -> None:
    in_order = sorted(done, key=lambda one: one.id)
    posted = {key: notice for one in in_order for key, notice in one.posted.items()}
    stored_notices.record_all(session, posted)
    outbox.settle(session, [one.id for one in in_order], OutboxState.DONE)


async def interrupted(runtime: Runtime, row: ClaimedEffect, error: Exception) -> None:
    """Settle an effect whose work ended by an error that nobody expected; safe to repeat.

    While the database was away its outcome is unknown, and it is read back. After a mistake of
    our own it waits and is tried again, as after any other trouble.
    """
    trouble: ProviderError = ProviderError("A mistake of ours; the log has it.")
    if isinstance(error, DatabaseUnavailable):
        trouble = OutcomeUnknown("The database was unavailable while this was carried out.")
    await _wait(runtime, row, trouble)
    await _explain_trouble(runtime, row, trouble)


async def _wait(runtime: Runtime, row: ClaimedEffect, trouble: ProviderError) -> None:
    """Try again later. Whoever is away comes back; anything else is given up in the end.

    What may have been done stays unknown until it is read back.
    """
    is_away = isinstance(trouble, Unavailable | OutcomeUnknown)
    most = AWAY_ATTEMPTS_MAX if is_away else ATTEMPTS_MAX
    is_spent = row.attempts >= most and (row.lane is Lane.NOTICE or not is_away)
    is_unknown = row.state is OutboxState.UNKNOWN or isinstance(trouble, OutcomeUnknown)
    if is_spent and await _give_up(runtime, row, trouble.message):
        if is_unknown and isinstance(row.effect, Tell) and row.queue_id is not None:
            await runtime.store.run(notices.note_unread, row.queue_id, row.effect)
        await runtime.store.run(outbox.settle, [row.id], OutboxState.FAILED, trouble.message)
        _count(runtime, row, "failed")
        return
    now = runtime.clock.now()
    note = f"{THROTTLED}{trouble.message}" if isinstance(trouble, Throttled) else trouble.message
    at = _next_try(now, row.attempts, trouble)
    if is_unknown:
        if row.lane in outbox.TELLING:
            at = max(at, now + outbox.UNDER_WAY_MAX)
        elif row.attempts <= FIRST_READ_BACKS:
            at = min(at, now + runtime.options.periods.readback)
        await runtime.store.run(outbox.mark_unknown, row, at, note)
        _count(runtime, row, "unknown")
    else:
        await runtime.store.run(outbox.retry, row, at, note)
        _count(runtime, row, "retried")
    outbox.wake(runtime.wakeups, (row.lane,))


def _count(runtime: Runtime, row: ClaimedEffect, outcome: str) -> None:
    runtime.telemetry.count("headgate_actions_total", row.kind, outcome)


def _next_try(now: datetime, attempts: int, trouble: ProviderError) -> datetime:
    """1 s doubling up to 15 min; what the provider says itself goes before."""
    doublings = min(max(attempts - 1, 0), DOUBLINGS_MAX)
    at = now + min(timedelta(seconds=2.0**doublings), BACKOFF_MAX)
    return max(at, trouble.retry_at) if isinstance(trouble, Unavailable) else at


async def perform(runtime: Runtime, row: ClaimedEffect) -> Posted:
    """Do what one outbox row says; safe to repeat after any interruption.

    Returns the notices to record as posted when the row is settled. Raises the provider's errors,
    after which the row is tried again or settled as unknown.
    """
    effect = row.effect
    first = row.state is OutboxState.READY and row.attempts == 0
    if isinstance(effect, Action | ChangeBase | MendStatus):
        queue = None if row.queue_id is None else await turn.ref_of(runtime, row.queue_id)
        if queue is None:
            return {}
        runtime.provider_of(queue.repo.host)  # raises where there is none
        if row.state is OutboxState.UNKNOWN and isinstance(effect, Tell):
            # Its texts may be there, also if it has none to write by now.
            await runtime.store.run(notices.note_unread, queue.id, effect)
        return await _perform(runtime, queue, effect, first=first)
    if isinstance(effect, Reply | Reaction | LabelRemoval):
        is_new = first or not isinstance(effect, LabelRemoval)  # one that was begun may return it
        if not (is_new and await notices.is_hushed(runtime, row.queue_id)):
            await notices.say_plain(runtime, row.repository_id, effect, first=first)
    elif isinstance(effect, CollectReports):
        await collected.fetch(runtime, row.repository_id, effect)
    elif isinstance(effect, CheckRepositoryFile):
        await file_checks.check(runtime, row.repository_id, effect, first=first)
    elif isinstance(effect, DeleteHeadBranch | MindBreak | FollowGreen):
        await _after_landing(runtime, row.repository_id, effect)
    elif isinstance(effect, KeepTicket):
        await ticket_issues.keep(runtime, row, effect, first=first)
    return {}


async def _after_landing(
    runtime: Runtime, repository_id: int, effect: DeleteHeadBranch | MindBreak | FollowGreen
) -> None:
    match effect:
        case DeleteHeadBranch():
            await head_branches.delete(runtime, repository_id, effect)
        case MindBreak():
            await break_effects.mind(runtime, effect)
        case FollowGreen():
            await break_effects.follow_green(runtime, effect)
        case _:
            assert_never(effect)


async def _perform(
    runtime: Runtime, queue: QueueRef, action: Action | ChangeBase | MendStatus, *, first: bool
) -> Posted:
    match action:
        case Tell():
            return await notices.tell(runtime, queue, action, first=first)
        case ChangeBase():
            await chains.change_base(runtime, queue, action)
            await reconcile.read_chain(runtime, queue, action.number)
        case MendStatus():
            await restored.mend(runtime, queue, action)
        case BuildTestBranch(steps=()):
            await building.build_of_tip(runtime, queue, action)
        case BuildTestBranch():
            await building.build(runtime, queue, action)
        case RetireRun():
            await building.retire(runtime, queue, action)
        case Land():
            await landing.land(runtime, queue, action)
        case RerunChecks():
            await _rerun(runtime, queue, action)
        case AskEvidence():
            await failed_checks.answer(runtime, queue, action)
        case _:
            assert_never(action)
    return {}


async def _rerun(runtime: Runtime, queue: QueueRef, action: RerunChecks) -> None:
    """Start the run's failed checks once more; when the provider cannot, the queue hears so."""
    value = await turn.value(runtime, queue.id)
    run = value.runs.get(action.run)
    if run is None or run.sha is None:
        return
    provider = runtime.providers[queue.repo.host]
    refused = await _refused_branch(provider, queue, run)
    if refused is None:
        refused = await provider.rerun(queue.repo, run.sha, action.names)
    told: Input = RerunStarted(run.id, action.attempt)
    if refused is not None:
        log.info("rerun_refused", run=run.id, why=refused.reason)
        told = RerunRefused(run.id, refused.reason)
    await turn.take(runtime, queue.id, [told])


async def _refused_branch(provider: Provider, queue: QueueRef, run: Run) -> NotPossible | None:
    """Put the branch of a repeated run back if it is gone, or return why that cannot be done."""
    if run.repeats is None or run.branch is None or run.sha is None:
        return None
    try:
        await provider.restore(queue.repo, run.branch, run.sha)
    except Refused as refused:
        return NotPossible(refused.message)
    return None


async def _give_up(runtime: Runtime, row: ClaimedEffect, why: str) -> bool:
    """Tell the queue that a control action could not be done after every try; whether it was.

    An infrastructure cause: nobody is blamed for it (docs/design/transactions.md 5). A landing is
    never given up: what may have landed has to be read back.
    """
    told: Input
    match row.effect:
        case BuildTestBranch(run=run):
            told = TestBranchRefused(run, None, BuildRefusal.OTHER, why)
        case RerunChecks(run=run):
            told = RerunRefused(run)
        case Land():
            return False
        case MindBreak() as wanted:
            await break_effects.give_up(runtime, wanted, why)
            return True
        case _:
            return True
    if row.queue_id is not None:
        await turn.report(runtime, row.queue_id, [told])
    return True


async def _explain_trouble(runtime: Runtime, row: ClaimedEffect, trouble: ProviderError) -> None:
    """Hold the queue, by name, when the provider says that we or the repository are out.

    Or when its limits delay a test branch.

    A notice holds nothing: none of them may stop a landing (docs/design/provider.md 14). Nor does
    a question about a failure, which is decided without an answer in the end.
    """
    if row.queue_id is None or row.lane in outbox.REPLACED:
        return
    report = _hold_of(row, trouble)
    if report is not None:
        await turn.report(runtime, row.queue_id, [report])


def _hold_of(row: ClaimedEffect, trouble: ProviderError) -> Input | None:
    is_long = row.attempts >= LONG_ATTEMPTS
    match trouble:
        case Throttled() if isinstance(row.effect, BuildTestBranch):
            return TestBranchDelayed(row.effect.run, trouble.retry_at, trouble.message)
        case NotPermitted() | Suspended():
            hold = HoldReason.PERMISSION_LOST
        case Gone(kind=GoneKind.REPOSITORY | GoneKind.INSTALLATION):
            hold = HoldReason.REPOSITORY_UNAVAILABLE
        case _ if isinstance(row.effect, Land) and is_long and not isinstance(trouble, Throttled):
            return PlaceHold(HoldReason.LANDING_UNRESOLVED, None, trouble.message, SYSTEM)
        case OutcomeUnknown() | Unavailable() if is_long and not isinstance(trouble, Throttled):
            hold = HoldReason.PROVIDER_UNAVAILABLE
        case _:
            return None
    return RepositoryChanged(available=False, hold=hold, text=trouble.message)
