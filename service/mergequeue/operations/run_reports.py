"""What the provider reports of test runs, read afresh, also for runs that are about to be late."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog

from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.inputs import ChecksReported, Input
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.states import RunKind, RunPhase, RunStatus
from service.mergequeue.operations import turn
from service.mergequeue.store import queues
from service.provider.errors import ProviderError, Unavailable
from service.runtime import Runtime
from service.vocabulary import QueueRef, Sha

LATE_MAX = timedelta(hours=1)
"""How long a run waits for its last look while the provider is away."""

LAST_LOOK_S = 20.0
"""The longest look at runs that are about to count as too late: timers of other queues wait."""

log = structlog.get_logger()


async def checks_of(runtime: Runtime, queue: QueueRef, run: Run) -> ChecksReported:
    """Return the whole present set of reports on a built run's commit, read afresh."""
    if run.sha is None:
        raise ValueError(f"run {run.id} has no commit yet")
    provider = runtime.providers[queue.repo.host]
    checks = await provider.checks(
        queue.repo, run.sha, skipped_pass=run.config.skipped_statuses_pass
    )
    return ChecksReported(run.id, run.sha, checks.items, checks.complete)


async def checks_of_many(runtime: Runtime, queue: QueueRef, due: Sequence[Run]) -> list[Input]:
    """Return what is reported of several runs, read at once. Raises the provider's errors."""
    by_setting: defaultdict[bool, dict[Sha, list[str]]] = defaultdict(dict)
    for run in due:
        if run.sha is not None:
            by_setting[run.config.skipped_statuses_pass].setdefault(run.sha, []).append(run.id)
    provider = runtime.providers[queue.repo.host]
    inputs: list[Input] = []
    for skipped_pass, runs_of in by_setting.items():
        read = await provider.checks_of_many(queue.repo, list(runs_of), skipped_pass=skipped_pass)
        inputs += [
            ChecksReported(run_id, sha, read[sha].items, read[sha].complete)
            for sha, run_ids in runs_of.items()
            for run_id in run_ids
        ]
    return inputs


async def last_look(runtime: Runtime, queue_id: int) -> list[Input] | None:
    """Return what is reported of the runs that the next turn would count as too late.

    The reports may have come while this process, its database or the network stood still. Empty
    without such runs, and if the provider refuses. None if it does not answer: the turn must wait,
    but not for runs that are late for an hour.
    """
    now = runtime.clock.now()
    value = await turn.value(runtime, queue_id)
    late = [run for run in value.runs.values() if _is_late(run, now)]
    queue = await runtime.store.read(queues.ref_by_id, queue_id) if late else None
    if queue is None or queue.repo.host not in runtime.providers:
        return []
    try:
        async with asyncio.timeout(LAST_LOOK_S):
            return await checks_of_many(runtime, queue, late)
    except (ProviderError, TimeoutError) as trouble:
        log.warning("last_look_failed", queue=queue_id, why=str(trouble))
        is_away = isinstance(trouble, Unavailable | TimeoutError)
        is_over = any(verdict.gives_up_at(run) + LATE_MAX <= now for run in late)
        return None if is_away and not is_over else []


def _is_late(run: Run, now: datetime) -> bool:
    is_tested = run.status is RunStatus.IN_PROGRESS and run.phase is RunPhase.TESTING
    if not is_tested or not is_reported_on(run) or run.deadline is None:
        return False
    return run.deadline <= now and verdict.gives_up_at(run) <= now


def is_reported_on(run: Run) -> bool:
    """Return whether reports on the run's commit can still matter."""
    return run.sha is not None and run.kind is not RunKind.DIRECT and run.published
