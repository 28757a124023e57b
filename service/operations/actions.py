"""Perform one effect of the outbox; what came of it goes back to the queue as a report."""

from typing import assert_never

from service.mergequeue.inputs import (
    BuildRefusal,
    EvidenceReported,
    Input,
    LandingStopCode,
    LandingStopped,
    RepositoryChanged,
    RerunRefused,
    RerunStarted,
    TestBranchRefused,
)
from service.mergequeue.model import Evidence, Explanation
from service.mergequeue.outputs import (
    Action,
    AskEvidence,
    BuildTestBranch,
    Land,
    RerunChecks,
    RetireRun,
    Tell,
)
from service.mergequeue.reasons import HoldReason
from service.operations import building, landing, notices, turn
from service.provider.errors import Gone, NotPermitted, ProviderError, Suspended
from service.provider.port import Reaction, Reply
from service.runtime import Runtime
from service.store import queues, runs
from service.store.outbox import OutboxRow
from service.store.records import OutboxState
from service.vocabulary import CheckOutcome, QueueRef



async def perform(runtime: Runtime, row: OutboxRow) -> None:
    """Do what one outbox row says; safe to repeat after any interruption.

    Raises the provider's errors, after which the row is tried again or settled as unknown.
    """
    effect = row.effect
    if isinstance(effect, Reply | Reaction):
        await notices.say_plain(runtime, row.repository_id, effect)
        return
    queue = None
    if row.queue_id is not None:
        queue = await runtime.store.read(queues.ref_by_id, row.queue_id)
    if queue is not None:
        await _perform(runtime, queue, effect, unknown=row.state is OutboxState.UNKNOWN)


async def _perform(runtime: Runtime, queue: QueueRef, action: Action, *, unknown: bool) -> None:
    match action:
        case BuildTestBranch():
            await building.build(runtime, queue, action)
        case RetireRun():
            await building.retire(runtime, queue, action)
        case Land():
            await landing.land(runtime, queue, action, unknown=unknown)
        case RerunChecks():
            await _rerun(runtime, queue, action)
        case AskEvidence():
            await _answer_evidence(runtime, queue, action)
        case Tell():
            await notices.tell(runtime, queue, action)
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


async def _answer_evidence(runtime: Runtime, queue: QueueRef, action: AskEvidence) -> None:
    """Without test results every failure is unexplained (ENGINE.md 6)."""
    run = await runtime.store.read(runs.run, queue.id, action.run)
    if run is None:
        return
    failed = [check.name for check in run.checks if check.outcome is CheckOutcome.FAILED]
    explanations = dict.fromkeys(failed, Explanation.UNEXPLAINED)
    evidence = Evidence(action.attempt, explanations)
    await turn.take(runtime, queue.id, [EvidenceReported(action.run, evidence)])


async def give_up(runtime: Runtime, row: OutboxRow, why: str) -> None:
    """Tell the queue that a control action could not be done after every try.

    An infrastructure cause: nobody is blamed for it (RELIABILITY.md 4.2).
    """
    told: Input | None = None
    match row.effect:
        case BuildTestBranch(run=run):
            told = TestBranchRefused(run, None, BuildRefusal.OTHER, why)
        case RerunChecks(run=run):
            told = RerunRefused(run)
        case Land(run=run, steps=steps):
            told = LandingStopped(run, steps[0].position, LandingStopCode.RETRY, why)
        case _:
            return
    if row.queue_id is not None:
        await turn.take(runtime, row.queue_id, [told])


async def explain_trouble(runtime: Runtime, row: OutboxRow, trouble: ProviderError) -> None:
    """Hold the queue, by name, when the provider says that we or the repository are out."""
    if row.queue_id is None:
        return
    match trouble:
        case NotPermitted() | Suspended():
            hold = HoldReason.PERMISSION_LOST
        case Gone():
            hold = HoldReason.REPOSITORY_UNAVAILABLE
        case _:
            return
    report = RepositoryChanged(available=False, hold=hold, text=trouble.message)
    await turn.take(runtime, row.queue_id, [report])
