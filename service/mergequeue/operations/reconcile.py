"""Read the provider's state again, in case a webhook was lost.

Each function reads one thing afresh and tells the queue; the sweeps call them on a clock,
signals call them at once. Everything lands with no signal at all, later.
"""

from collections.abc import Awaitable, Callable, Sequence, Set
from datetime import datetime, timedelta

import structlog

from service import sweeping
from service.accounts import repositories
from service.accounts.store import access
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.mergequeue.engine.applying import reports
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.inputs import (
    FactsChanged,
    Input,
    PullRequestGone,
    ReleaseHold,
    RepositoryChanged,
    RulesChanged,
    TargetGone,
    TimePassed,
    WorkflowsChanged,
)
from service.mergequeue.engine.model import MergeQueue, Run
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.states import RunPhase, RunStatus
from service.mergequeue.operations import (
    early_failures,
    facts,
    last_looks,
    merged_by_others,
    renamed_branches,
    repository_files,
    requirements,
    run_reports,
    turn,
    undone_work,
)
from service.mergequeue.operations.check_reads import CheckReadScheduler
from service.mergequeue.operations.turn import Along
from service.mergequeue.store import queues
from service.provider.errors import (
    Gone,
    GoneKind,
    NotPermitted,
    ProviderError,
    Refused,
    Suspended,
    Throttled,
    Unavailable,
)
from service.provider.values import Repository
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef, RepoRef

UNAVAILABLE = frozenset({HoldReason.PERMISSION_LOST, HoldReason.REPOSITORY_UNAVAILABLE})
LOST = frozenset({GoneKind.REPOSITORY, GoneKind.INSTALLATION})
"""Without one of these the queues hold; a pull request or a branch that is gone is read again."""

LOOK_AGAIN = timedelta(seconds=30)
"""The time that a queue's timers wait when the provider did not answer a last look."""

log = structlog.get_logger()


async def read_checks(
    runtime: Runtime,
    queue: QueueRef,
    run_ids: Set[str],
    settle: Callable[[Tx], None] | None = None,
) -> bool:
    """Read the checks of live runs and report them in one turn; skip runs that are over.

    `settle` is committed with the turn. Returns whether there was one.
    """
    value = await turn.value(runtime, queue.id)
    known = [run for run in value.runs.values() if run.id in run_ids]
    reported_on = [run for run in known if run_reports.is_reported_on(run)]
    if not reported_on:
        return False
    inputs = await run_reports.checks_of_many(runtime, queue, reported_on)
    await turn.take(runtime, queue.id, inputs, Along(beside=settle))
    try:
        await _read_reporters(runtime, queue, {run.id for run in reported_on})
        for run in reported_on:
            await early_failures.look(runtime, queue, run.id)
    except ProviderError as trouble:
        if settle is None:
            raise
        # What the reports led to was not read; the sweep of the queue does it.
        log.warning("reporters_unread", queue=queue.id, why=trouble.message)
    return True


async def _read_reporters(runtime: Runtime, queue: QueueRef, run_ids: Set[str]) -> None:
    """Read the required statuses again if others than their known reporters have reported one."""
    value = await turn.value(runtime, queue.id)
    runs = (run for run in value.runs.values() if run.id in run_ids)
    if any(one.foreign is not None for run in runs for one in verdict.standings_of(run)):
        await read_requirements(runtime, queue)


async def read_running_checks(runtime: Runtime) -> None:
    """Sweep: the checks of live runs, so that a lost event only delays (provider.md 8.2)."""
    await sweeping.one_by_one(_sweep_queue(runtime, queue) for queue in await _live(runtime))


async def _sweep_queue(runtime: Runtime, queue: QueueRef) -> None:
    value = await turn.value(runtime, queue.id)
    due = [run for run in value.runs.values() if _is_swept(runtime, queue, run)]
    if due:
        await _guarded(runtime, queue, _sweep_checks(runtime, queue, due))


def _is_swept(runtime: Runtime, queue: QueueRef, run: Run) -> bool:
    waits = run.status in {RunStatus.IN_PROGRESS, RunStatus.FAILED}
    if not waits or run.phase is not RunPhase.TESTING or not run_reports.is_reported_on(run):
        return False
    began_at = run.built_at or run.created_at
    scheduler = runtime.memory.of(CheckReadScheduler)
    return scheduler.is_swept(queue.id, run.id, began_at, runtime.clock.now())


async def _sweep_checks(runtime: Runtime, queue: QueueRef, due: Sequence[Run]) -> None:
    """Read the checks of several runs and report them in one turn.

    If that fails, each is read by itself: one commit that cannot be read stops no other run.
    """
    try:
        inputs = await run_reports.checks_of_many(runtime, queue, due)
    except ProviderError as failure:
        if len(due) > 1 and not isinstance(failure, Throttled):
            for run in due:
                await _guarded(runtime, queue, _sweep_checks(runtime, queue, [run]))
            return
        for run in due:
            runtime.memory.of(CheckReadScheduler).forget(queue.id, run.id)
        raise
    await turn.take(runtime, queue.id, inputs)
    await _read_reporters(runtime, queue, {run.id for run in due})
    for run in due:
        await early_failures.look(runtime, queue, run.id)


async def read_live_queues(runtime: Runtime) -> None:
    """Sweep: tip, pull requests and required statuses of queues with live entries."""
    await sweeping.one_by_one(_read_guarded(runtime, queue) for queue in await _live(runtime))


async def read_all_queues(
    runtime: Runtime, hosts: Set[str] | None = None, is_over: Callable[[], bool] = sweeping.never
) -> None:
    """Sweep: the same for every queue, and whether its repository is still ours.

    `hosts` None: of every host that a provider is set for. Begins no read once `is_over`.
    """
    chosen = runtime.providers.keys() if hosts is None else hosts
    # First the repositories: queues are read by the names that these have now.
    await sweeping.one_by_one(
        part(runtime, chosen, is_over) for part in (_read_repositories_of, _read_queues_of)
    )


async def _read_repositories_of(
    runtime: Runtime, hosts: Set[str], is_over: Callable[[], bool]
) -> None:
    known = await runtime.store.read(access.repositories_of, None)
    reads = (read_repository(runtime, one.id) for one in known if one.ref.host in hosts)
    await sweeping.one_by_one(reads, is_over)


async def _read_queues_of(runtime: Runtime, hosts: Set[str], is_over: Callable[[], bool]) -> None:
    every = [one for one in await runtime.store.read(queues.all_queues) if one.repo.host in hosts]
    await sweeping.one_by_one((_read_whole(runtime, queue) for queue in every), is_over)


async def _read_whole(runtime: Runtime, queue: QueueRef) -> None:
    await _read_guarded(runtime, queue)
    await _guarded(runtime, queue, _read_others(runtime, queue))
    await _guarded(runtime, queue, repository_files.look(runtime, queue))


async def _read_others(runtime: Runtime, queue: QueueRef) -> None:
    await merged_by_others.look(runtime, queue, is_sweep=True)
    await merged_by_others.read_targets(runtime, queue)


async def _read_guarded(runtime: Runtime, queue: QueueRef) -> None:
    await _guarded(runtime, queue, read_queue(runtime, queue))


async def read_repository(
    runtime: Runtime, repository_id: int, seen_as: RepoRef | None = None, why: str = ""
) -> None:
    """Read a repository again: its names, whether it is archived, gone or not ours.

    `seen_as`: the name that an event gave it, read before the known one. `why`: what an event says
    of its loss, shown if it is gone.
    """
    known = await runtime.store.read(access.repository, repository_id)
    if known.ref.host not in runtime.providers:
        return
    hold: HoldReason | None = None
    text = ""
    try:
        fresh = await _repository_by_id(runtime, known, seen_as)
    except Gone as gone:
        hold, text = HoldReason.REPOSITORY_UNAVAILABLE, why or gone.message
    except (NotPermitted, Suspended) as lost:
        hold, text = HoldReason.PERMISSION_LOST, lost.message
    except Unavailable:
        return
    else:
        await runtime.store.run(repositories.upsert, fresh)
        await _follow_default_branch(runtime, known, fresh)
        if fresh.archived:
            hold, text = HoldReason.REPOSITORY_UNAVAILABLE, "The repository is archived."
    if known.available is not (hold is None):
        await runtime.store.run(access.set_repository_available, repository_id, hold is None)
    await _tell_queues_of(runtime, repository_id, hold, text)


async def _follow_default_branch(
    runtime: Runtime, known: RepositoryRecord, fresh: Repository
) -> None:
    if fresh.default_branch == known.default_branch:
        return
    for queue in await runtime.store.read(queues.queues_of, known.id):
        if queue.branch == known.default_branch:
            await follow_branch(runtime, queue, fresh.default_branch)


async def follow_branch(runtime: Runtime, queue: QueueRef, new: str) -> None:
    """Let the queue of a former default branch follow it to a new name, and read it there."""
    renamed = await renamed_branches.follow(runtime, queue, new, was_default=True, base=new)
    if renamed is not None:
        await read_queue(runtime, renamed)


async def _follows(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, inputs: Sequence[Input]
) -> bool:
    """Return whether the branch has a new name, by which the queue was read instead.

    Looks only if the branch seems to be gone, or a pull request has another base now.
    """
    bases = [base for one in inputs if (base := _new_base(queue, value, one)) is not None]
    if not bases and not any(isinstance(one, TargetGone) for one in inputs):
        return False
    known = await runtime.store.read(access.repository, queue.repository_id)
    fresh = await _repository_by_id(runtime, known, None)
    was_default = known.default_branch == queue.branch
    base = bases[0] if bases else None
    renamed = await renamed_branches.follow(
        runtime, queue, fresh.default_branch, was_default=was_default, base=base
    )
    if renamed is not None:
        await read_queue(runtime, renamed)
    return renamed is not None


def _new_base(queue: QueueRef, value: MergeQueue, one: Input) -> str | None:
    """Return the base of a pull request that was based on the queue's branch before."""
    if not isinstance(one, FactsChanged) or one.facts.base == queue.branch:
        return None
    before = value.entries[one.facts.pr].facts.base
    return one.facts.base if before == queue.branch else None


async def _repository_by_id(
    runtime: Runtime, known: RepositoryRecord, seen_as: RepoRef | None
) -> Repository:
    """Return the repository with the known id, whatever its name is now.

    Another repository may have taken a former name. Raises the provider's errors; Gone if no name
    leads to it.
    """
    provider = runtime.providers[known.ref.host]
    why = f"{known.ref.slug} is another repository now."
    for ref in dict.fromkeys((seen_as or known.ref, known.ref)):
        try:
            fresh = await provider.repository(ref)
        except Gone as gone:
            why = gone.message
        else:
            if fresh.id.id == known.provider_id:
                return fresh
    raise Gone(why, GoneKind.REPOSITORY)


async def read_returned(runtime: Runtime, repository_id: int) -> None:
    """Read everything of a repository that our App may see again, with the rights of now.

    Skips one that it may not see. Raises the provider's errors.
    """
    repository = await runtime.store.read(access.repository, repository_id)
    if not repository.available:
        return
    await runtime.providers[repository.ref.host].forget_rules(repository.ref)
    for queue in await runtime.store.read(queues.queues_of, repository_id):
        await read_queue(runtime, queue)
        await rules_changed(runtime, queue)


async def _tell_queues_of(
    runtime: Runtime, repository_id: int, hold: HoldReason | None, text: str
) -> None:
    """Report to a repository's queues whether it is available; skip queues that know."""
    for queue in await runtime.store.read(queues.queues_of, repository_id):
        value = await turn.last_value(runtime, queue.id)
        held = {one.reason for one in value.holds} & UNAVAILABLE
        if held != ({hold} if hold is not None else set()):
            report = RepositoryChanged(available=hold is None, hold=hold, text=text)
            await turn.report(runtime, queue.id, [report])


async def read_queue(runtime: Runtime, queue: QueueRef) -> None:
    """Read everything a queue depends on and report the differences in one turn.

    Also what is known of runs and pull requests that this turn would give up.
    """
    inputs = await last_looks.look(runtime, queue.id)
    if inputs is None:
        return
    value = await turn.value(runtime, queue.id)
    inputs += await facts.target(runtime, queue, value)
    inputs += await _requirements(runtime, queue, value)
    inputs += await _reruns(runtime, queue, value)
    inputs += await facts.differing(runtime, queue, value, sorted(value.entries))
    inputs += _reachable_again(value)
    await _report(runtime, queue, value, inputs)


async def read_target(runtime: Runtime, queue: QueueRef) -> None:
    """Read the target's tip and report it if it differs."""
    value = await turn.value(runtime, queue.id)
    inputs = await facts.target(runtime, queue, value)
    await _report(runtime, queue, value, inputs)


async def _report(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, inputs: Sequence[Input]
) -> None:
    """Report what differs of a queue and its target in one turn, and look at what has landed."""
    if await _follows(runtime, queue, value, inputs):
        return
    if inputs:
        await turn.take(runtime, queue.id, inputs)
    await undone_work.judge_again(runtime, queue)
    await merged_by_others.look(runtime, queue)


async def read_requirements(runtime: Runtime, queue: QueueRef) -> None:
    """Read the required statuses and report them if they differ."""
    value = await turn.value(runtime, queue.id)
    inputs = await _requirements(runtime, queue, value)
    if inputs:
        await turn.take(runtime, queue.id, inputs)


async def rules_changed(runtime: Runtime, queue: QueueRef) -> None:
    """Make the queue retry whatever the rules refused."""
    value = await turn.value(runtime, queue.id)
    is_held = any(hold.reason in reports.REFUSED_BY_RULES for hold in value.holds)
    if is_held or any(entry.barred or entry.refusal for entry in value.entries.values()):
        await turn.take(runtime, queue.id, [RulesChanged()])


async def workflows_changed(runtime: Runtime, queue: QueueRef) -> None:
    """After a push to its target, read which checks never run on a test branch.

    The queue also tests entries again whose checks were skipped.
    """
    value = await turn.value(runtime, queue.id)
    if value.tip is None:
        return
    provider = runtime.providers[queue.repo.host]
    advice = await provider.vehicle_advice(queue.repo, queue.branch, value.tip.sha)
    await turn.take(runtime, queue.id, [WorkflowsChanged(advice.never)])


async def _reruns(runtime: Runtime, queue: QueueRef, value: MergeQueue) -> list[Input]:
    can_rerun = await runtime.providers[queue.repo.host].can_rerun(queue.repo)
    is_known = can_rerun == (value.reruns_from is not None)
    return [] if is_known else [RepositoryChanged(reruns=can_rerun)]


async def _requirements(runtime: Runtime, queue: QueueRef, value: MergeQueue) -> list[Input]:
    resolved = await requirements.resolve(
        runtime, queue.repo, queue.branch, requirements.override_of(value), value
    )
    return requirements.reports(value, resolved)


async def read_pull_request(runtime: Runtime, queue: QueueRef, number: int) -> None:
    """Read one queued pull request and report it to the queue; skip one that is not queued."""
    value = await turn.value(runtime, queue.id)
    if number not in value.entries:
        return
    inputs = await _facts_of(runtime, queue, value, number)
    if await _follows(runtime, queue, value, inputs):
        return
    if inputs:
        await turn.take(runtime, queue.id, inputs)


async def read_chain(runtime: Runtime, queue: QueueRef, number: int) -> None:
    """Read a pull request whose base was changed, and those above it that have lost their chain.

    A member that was read between the landing below it and that change seemed to belong to no
    chain, so its base keeps it out. Other pull requests that their base keeps out are not read.
    """
    await read_pull_request(runtime, queue, number)
    value = await turn.value(runtime, queue.id)
    kept_out = {
        other: entry.facts.base
        for other, entry in value.entries.items()
        if Reason.BASE_MISMATCH in entry.unmet and other != number
    }
    above = (other for other, entry in value.entries.items() if number in entry.facts.below)
    members = [number, *above]
    while kept_out and members:
        branches = await _own_branches(runtime, queue, members)
        members = [other for other, base in kept_out.items() if base in branches]
        for other in members:
            del kept_out[other]
            await read_pull_request(runtime, queue, other)


async def _own_branches(runtime: Runtime, queue: QueueRef, numbers: Sequence[int]) -> set[str]:
    """Return the branches of pull requests, without those of forks, on which none can be based."""
    pulls = await runtime.providers[queue.repo.host].pull_requests(queue.repo, numbers)
    return {pull.head_branch for pull in pulls.values() if pull is not None and not pull.is_fork}


async def _facts_of(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, number: int
) -> list[Input]:
    """Return inputs about one pull request that the queue lacks; empty if it knows all."""
    provider = runtime.providers[queue.repo.host]
    try:
        pull = await provider.pull_request(queue.repo, number)
    except Gone as gone:
        if gone.kind is not GoneKind.PULL_REQUEST:
            raise
        return [PullRequestGone(number)]
    fresh = await facts.facts_of(runtime, queue, value.config, pull)
    return [] if value.entries[number].facts == fresh else [FactsChanged(fresh)]


def _reachable_again(value: MergeQueue) -> list[Input]:
    return [
        ReleaseHold(hold.id, "The provider answers again.", SYSTEM)
        for hold in value.holds
        if hold.reason in {HoldReason.PROVIDER_UNAVAILABLE, HoldReason.RECOVERING}
    ]


async def pass_time(runtime: Runtime) -> bool:
    """Give every queue whose time has come the chance to act; whether there was any."""
    due = await runtime.store.read(queues.due, runtime.clock.now())
    await sweeping.one_by_one(_pass_time_of(runtime, queue_id) for queue_id in due)
    return bool(due)


async def _pass_time_of(runtime: Runtime, queue_id: int) -> None:
    inputs = await last_looks.look(runtime, queue_id)
    if inputs is None:
        until = runtime.clock.now() + LOOK_AGAIN
        await runtime.store.run(queues.postpone, queue_id, until)
        return
    await turn.take(runtime, queue_id, [*inputs, TimePassed()])


async def next_wake(runtime: Runtime) -> datetime | None:
    """Return when the next queue must wake up or a postponed read is due."""
    wake = await runtime.store.read(queues.next_wake)
    times = [at for at in (wake, runtime.memory.of(CheckReadScheduler).next_at()) if at is not None]
    return min(times, default=None)


async def _guarded(runtime: Runtime, queue: QueueRef, reading: Awaitable[None]) -> None:
    """Isolate a sweep's errors per queue; errors with a meaning are reported to that queue."""
    try:
        await reading
    except (NotPermitted, Suspended) as lost:
        await _hold(runtime, queue, HoldReason.PERMISSION_LOST, lost.message)
    except (Unavailable, Refused, Gone) as trouble:
        if isinstance(trouble, Gone) and trouble.kind in LOST:
            await _hold(runtime, queue, HoldReason.REPOSITORY_UNAVAILABLE, trouble.message)
        else:
            log.warning("sweep_postponed", queue=queue.id, why=trouble.message)


async def _hold(runtime: Runtime, queue: QueueRef, hold: HoldReason, text: str) -> None:
    report = RepositoryChanged(available=False, hold=hold, text=text)
    await turn.take(runtime, queue.id, [report])


async def _live(runtime: Runtime) -> tuple[QueueRef, ...]:
    ids = await runtime.store.read(queues.live_queues)
    refs = [await runtime.store.read(queues.ref_by_id, queue_id) for queue_id in ids]
    return tuple(ref for ref in refs if ref is not None and ref.repo.host in runtime.providers)
