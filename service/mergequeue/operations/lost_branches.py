"""Put back test branches that their runs need, and delete those that nothing needs."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace

import structlog

from service import sweeping
from service.accounts.store import access
from service.accounts.tenants import RepositoryRecord
from service.mergequeue.engine.inputs import TestBranchLost
from service.mergequeue.engine.states import RunKind
from service.mergequeue.operations import naming, turn
from service.mergequeue.operations.turn import QueueGone
from service.mergequeue.store import queues, runs
from service.mergequeue.store.runs import RecordedBranch
from service.provider.errors import ProviderError, Refused, Unavailable
from service.runtime import Runtime
from service.vocabulary import QueueRef

log = structlog.get_logger()


async def restore_branches(runtime: Runtime) -> None:
    """Sweep: put back a live run's lost branch once, delete leftovers."""
    known = await runtime.store.read(access.repositories_of, None)
    await sweeping.one_by_one(_restore_branches_of(runtime, repository) for repository in known)


async def _restore_branches_of(runtime: Runtime, repository: RepositoryRecord) -> None:
    recorded = await runtime.store.read(runs.recorded_branches, repository.id)
    # Read after the branches: one whose queue is not there now belongs to a deleted queue.
    there = {queue.id for queue in await runtime.store.read(queues.queues_of, repository.id)}
    # A dry test leaves no record, and may come before the first test branch of a queue.
    if not (recorded or there) or repository.ref.host not in runtime.providers:
        return
    recorded = {
        name: replace(one, live=one.live and one.queue_id in there)
        for name, one in recorded.items()
    }
    try:
        await _look_at_branches(runtime, repository, recorded)
    except ProviderError as trouble:
        # GitHub did not answer, or refused; the next sweep tries again.
        log.warning("sweep_postponed", repo=repository.ref.slug, why=trouble.message)


async def _look_at_branches(
    runtime: Runtime, repository: RepositoryRecord, recorded: Mapping[str, RecordedBranch]
) -> None:
    """Look at each branch of a repository; one that cannot be changed keeps no other from it."""
    provider = runtime.providers[repository.ref.host]
    present = {ref.branch for ref in await provider.vehicles(repository.ref)}
    others = present - recorded.keys()
    left = await _left_over(runtime, repository, others)
    for branch in (*recorded, *sorted(others)):
        try:
            if branch in left:
                await provider.discard(repository.ref, branch)
            elif branch in recorded:
                owner, is_there = recorded[branch], branch in present
                await _restore_or_delete(runtime, repository, branch, owner, is_there=is_there)
        except Unavailable:
            raise
        except ProviderError as trouble:
            # GitHub refuses to change the branch; the next sweep tries again.
            log.warning("branch_left", branch=branch, why=trouble.message)


async def _left_over(
    runtime: Runtime, repository: RepositoryRecord, branches: Collection[str]
) -> frozenset[str]:
    """Return those that nothing needs of branches which no run has reported.

    A dry test leaves one if the process that ran it has stopped. One of a run was made late: the
    provider may carry out a call after its connection was cut.
    """
    now = runtime.clock.now()
    ends = {branch: naming.end_of_dry_test(branch) for branch in branches}
    of_runs = {branch: run for branch in branches if (run := naming.made_for(branch)) is not None}
    made_late = await runtime.store.read(runs.left_by_ended, repository.id, of_runs)
    return made_late | {branch for branch, end in ends.items() if end is not None and end <= now}


async def _restore_or_delete(
    runtime: Runtime,
    repository: RepositoryRecord,
    branch: str,
    owner: RecordedBranch,
    *,
    is_there: bool,
) -> None:
    """Put back a branch that its run needs, or delete one that nothing needs any more."""
    if not owner.live and is_there:
        await runtime.providers[repository.ref.host].discard(repository.ref, branch)
    elif owner.live and not is_there:
        queue = await runtime.store.read(queues.ref_by_id, owner.queue_id)
        if queue is not None:
            with suppress(QueueGone):
                await restore_branch(runtime, queue, owner.run_id)


async def restore_branch(runtime: Runtime, queue: QueueRef, run_id: str) -> None:
    """Put a live run's branch back at its commit, the first time; then the queue must know.

    While the run is landing it stays as it is: the landing may have deleted it, and a landing is
    read back by that.
    """
    value = await turn.value(runtime, queue.id)
    if value.landing is not None and value.landing.run == run_id:
        return
    run = value.runs.get(run_id)
    if run is None or run.sha is None or run.branch is None or run.kind is RunKind.DIRECT:
        return
    first = await runtime.store.run(runs.note_restored, queue.id, run_id)
    if first:
        try:
            await runtime.providers[queue.repo.host].restore(queue.repo, run.branch, run.sha)
        except Refused as refused:
            # The test branch cannot be put back; its run ends and is made again.
            log.warning("restore_refused", run=run_id, why=refused.message)
        else:
            return
    await turn.take(runtime, queue.id, [TestBranchLost(run_id, by="")])
