"""Read runs and pull requests once more whose time is over, before a queue gives them up.

News may have come while this process, its database or the network stood still
(docs/design/testing.md 4; docs/design/engine.md 5).
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog

from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.inputs import Input
from service.mergequeue.engine.model import MergeQueue, Run
from service.mergequeue.engine.state import readiness
from service.mergequeue.engine.states import RunPhase, RunStatus
from service.mergequeue.operations import facts, run_reports, turn
from service.mergequeue.operations.run_failures import RunFailures
from service.mergequeue.store import queues
from service.provider.errors import ProviderError, Unavailable
from service.runtime import Runtime
from service.vocabulary import QueueRef

LATE_MAX = timedelta(hours=1)
"""The time that a queue waits for a last look while the provider is away."""

LAST_LOOK_S = 20.0
"""The longest look: timers of other queues wait."""

STALL_MIN = timedelta(seconds=30)
"""A timer that fires later than this was held up. Then no report may be missing."""

log = structlog.get_logger()


async def look(runtime: Runtime, queue_id: int) -> list[Input] | None:
    """Return what is known of runs and pull requests that the next turn would give up.

    Of runs the reports on their commits, and the results if their wait for evidence is over; of
    pull requests the facts. Empty without any, and if the provider refuses. None if it does not
    answer: the turn must wait, but for an hour at most.
    """
    now = runtime.clock.now()
    value = await turn.value(runtime, queue_id)
    late = [run for run in value.runs.values() if _is_late(run, now)]
    unready = {pr: at for pr, at in _ends_of(value).items() if at <= now}
    queue = await runtime.store.read(queues.ref_by_id, queue_id) if late or unready else None
    if queue is None or queue.repo.host not in runtime.providers:
        return []
    try:
        async with asyncio.timeout(LAST_LOOK_S):
            inputs = await run_reports.checks_of_many(runtime, queue, late)
            inputs += await facts.differing(runtime, queue, value, sorted(unready))
    except (ProviderError, TimeoutError) as trouble:
        # GitHub did not answer before a time limit ended; it is asked again, for a while.
        log.warning("last_look_failed", queue=queue_id, why=str(trouble))
        is_away = isinstance(trouble, Unavailable | TimeoutError)
        ends = [*(run.deadline or now for run in late), *unready.values()]
        return None if is_away and min(ends) + LATE_MAX > now else []
    return inputs + await _results_of(runtime, queue, [run for run in late if _waited(run, now)])


async def _results_of(runtime: Runtime, queue: QueueRef, waited: Sequence[Run]) -> list[Input]:
    """Return what test results say of these runs; empty if the provider does not answer.

    Without results a failure is unexplained, so nothing else waits for them.
    """
    inputs: list[Input] = []
    try:
        async with asyncio.timeout(LAST_LOOK_S):
            for run in waited:
                inputs += await runtime.links.of(RunFailures).changed_since(runtime, queue, run)
    except (ProviderError, TimeoutError) as trouble:
        # GitHub did not answer, so a failure stays unexplained.
        log.warning("last_results_failed", queue=queue.id, why=str(trouble))
    return inputs


def _is_late(run: Run, now: datetime) -> bool:
    is_tested = run.status is RunStatus.IN_PROGRESS and run.phase is RunPhase.TESTING
    if not is_tested or not run_reports.is_reported_on(run):
        return False
    if run.deadline is None or run.deadline > now:
        return False
    is_held_up = run.deadline + STALL_MIN <= now
    return is_held_up or verdict.gives_up_at(run) <= now or _waited(run, now)


def _waited(run: Run, now: datetime) -> bool:
    """Return whether the wait for the test results of a failed run is over."""
    return run.asked_evidence is not None and run.asked_evidence + verdict.EVIDENCE_WAIT <= now


def _ends_of(value: MergeQueue) -> dict[int, datetime]:
    """Return when pull requests that are not ready lose their place or leave the queue."""
    hours = value.config.not_ready_timeout_hours
    ends = {pr: readiness.gives_up_at(entry, hours) for pr, entry in value.entries.items()}
    return {pr: at for pr, at in ends.items() if at is not None}
