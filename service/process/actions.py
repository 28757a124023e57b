"""Perform one effect of the outbox; what came of it goes back to the queue as a report."""

from typing import assert_never

from service.database.outbox import OutboxRow
from service.database.records import Lane, OutboxState
from service.evidence import failed_checks
from service.mergequeue.engine.inputs import (
    BuildRefusal,
    Input,
    PlaceHold,
    RepositoryChanged,
    RerunRefused,
    RerunStarted,
    TestBranchRefused,
)
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
from service.mergequeue.operations import building, landing, notices, turn
from service.mergequeue.store import queues
from service.provider.errors import (
    Gone,
    GoneKind,
    NotPermitted,
    OutcomeUnknown,
    ProviderError,
    Suspended,
    Throttled,
    Unavailable,
)
from service.provider.values import (
    Reaction,
    Reply,
)
from service.runtime import Runtime
from service.testhealth.detector.ticketing import KeepTicket
from service.testhealth.operations import collected, ticket_issues
from service.testhealth.reports.collecting import CollectReports
from service.vocabulary import SYSTEM, QueueRef

LONG_ATTEMPTS = 9
"""Tries that take more than five minutes: then the queue says that the provider is away."""


async def perform(runtime: Runtime, row: OutboxRow) -> None:
    """Do what one outbox row says; safe to repeat after any interruption.

    Raises the provider's errors, after which the row is tried again or settled as unknown.
    """
    effect = row.effect
    first = row.state is OutboxState.READY and row.attempts == 0
    if isinstance(effect, Reply | Reaction):
        await notices.say_plain(runtime, row.repository_id, effect, first=first)
        return
    if isinstance(effect, CollectReports):
        await collected.fetch(runtime, row.repository_id, effect)
        return
    if isinstance(effect, KeepTicket):
        await ticket_issues.keep(runtime, row, effect, first=first)
        return
    queue = None
    if row.queue_id is not None:
        queue = await runtime.store.read(queues.ref_by_id, row.queue_id)
    if queue is not None and isinstance(effect, Action):
        if queue.repo.host not in runtime.providers:
            raise ProviderError(f"No provider is set for {queue.repo.host}.")
        await _perform(runtime, queue, effect, first=first)


async def _perform(runtime: Runtime, queue: QueueRef, action: Action, *, first: bool) -> None:
    match action:
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
        case Tell():
            await notices.tell(runtime, queue, action, first=first)
        case _:
            assert_never(action)


async def _rerun(runtime: Runtime, queue: QueueRef, action: RerunChecks) -> None:
    """Start the run's failed checks once more; when the provider cannot, the queue hears so."""
    value = await turn.value(runtime, queue.id)
    run = value.runs.get(action.run)
    if run is None or run.sha is None:
        return
    provider = runtime.providers[queue.repo.host]
    refused = await provider.rerun(queue.repo, run.sha, action.names)
    told: Input = RerunStarted(run.id, action.attempt) if refused is None else RerunRefused(run.id)
    await turn.take(runtime, queue.id, [told])


async def give_up(runtime: Runtime, row: OutboxRow, why: str) -> bool:
    """Tell the queue that a control action could not be done after every try; whether it was.

    An infrastructure cause: nobody is blamed for it (RELIABILITY.md 4.2). A landing is never
    given up: what may have landed has to be read back.
    """
    told: Input
    match row.effect:
        case BuildTestBranch(run=run):
            told = TestBranchRefused(run, None, BuildRefusal.OTHER, why)
        case RerunChecks(run=run):
            told = RerunRefused(run)
        case Land():
            return False
        case _:
            return True
    if row.queue_id is not None:
        await turn.take(runtime, row.queue_id, [told])
    return True


async def explain_trouble(runtime: Runtime, row: OutboxRow, trouble: ProviderError) -> None:
    """Hold the queue, by name, when the provider says that we or the repository are out.

    A notice holds nothing: none of them may stop a landing (GITHUB.md 6.2).
    """
    if row.queue_id is None or row.lane is Lane.NOTICE:
        return
    report = _hold_of(row, trouble)
    if report is not None:
        await turn.take(runtime, row.queue_id, [report])


def _hold_of(row: OutboxRow, trouble: ProviderError) -> Input | None:
    is_long = row.attempts >= LONG_ATTEMPTS
    match trouble:
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
