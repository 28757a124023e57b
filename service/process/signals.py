"""From what a provider tells us to what a queue must hear (docs/design/transactions.md 1).

A signal knows a repository; here it finds the queues it matters to. Facts are read afresh:
a signal's own content decides nothing but where to look.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from typing import assert_never

import structlog

from service.accounts import repositories
from service.accounts.access import known_repository
from service.accounts.store import access
from service.accounts.tenants import RepositoryRecord
from service.dashboard.visitors import KeptLevels
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import Lane
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.states import RunStatus
from service.mergequeue.operations import (
    breaks,
    comments,
    early_failures,
    entering,
    file_checks,
    lost_branches,
    naming,
    pressed,
    radar,
    reconcile,
    repository_files,
    turn,
)
from service.mergequeue.operations.check_reads import CheckReadScheduler
from service.mergequeue.operations.file_checks import CheckRepositoryFile
from service.mergequeue.operations.turn import QueueGone
from service.mergequeue.store import consents, pull_requests, queues
from service.mergequeue.store.consents import ShownHead
from service.mergequeue.store.pull_requests import PullRequestHead
from service.provider.errors import Gone, ProviderError
from service.provider.signals import (
    AccessChanged,
    Asked,
    BranchGone,
    BranchMoved,
    ButtonPressed,
    CheckReported,
    CiRunEnded,
    DefaultBranchRenamed,
    LabelChanged,
    News,
    NoticeEdited,
    OfRepository,
    PullRequestChanged,
    RemovedWhy,
    RepositoryAdded,
    RepositoryChanged,
    RepositoryRemoved,
    RulesChanged,
    Signal,
    Where,
)
from service.runtime import Runtime
from service.testhealth.operations import code_owners, collected
from service.testhealth.reports.collecting import CollectReports
from service.vocabulary import QueueRef, RepoRef, Sha

CI_FOLDER = ".github/"
"""Workflow files and the actions that they use."""

log = structlog.get_logger()


async def receive(runtime: Runtime, signal: Signal, received_at: datetime) -> None:
    """Act on one signal; those about repositories we do not know are ignored.

    Raises the provider's errors: the delivery is then tried again.
    """
    match signal:
        case AccessChanged():
            await _access_changed(runtime, signal)
        case RepositoryAdded(where=where):
            await _added(runtime, where)
        case RepositoryRemoved(where=where, why=why):
            await _removed(runtime, where, why)
        case _:
            repository = await _known(runtime, signal.where)
            if repository is not None:
                await _about(runtime, repository, signal, received_at)


async def _about(
    runtime: Runtime, repository: RepositoryRecord, signal: OfRepository, received_at: datetime
) -> None:
    match signal:
        case Asked() | LabelChanged() | ButtonPressed() | NoticeEdited():
            await _act_of_person(runtime, repository, signal)
        case PullRequestChanged():
            await _pull_request_changed(runtime, repository, signal, received_at)
        case CheckReported():
            await hear_reports(runtime, [signal])
        case CiRunEnded(run_id=run_id, attempt=attempt, branch=branch):
            # Its checks come with a CheckReported. What it left is not fetched here: the lane
            # of a repository must not wait for it, because landings wait for the lane.
            is_awaited = naming.run_id_of(branch) is not None
            wanted = CollectReports(run_id, attempt, is_awaited)
            await collected.ask_for(runtime, repository, [wanted])
        case BranchMoved() | BranchGone() | DefaultBranchRenamed():
            await _branch_changed(runtime, repository, signal)
        case RulesChanged():
            await _rules_changed(runtime, repository)
        case RepositoryChanged(where=where):
            await reconcile.read_repository(runtime, repository.id, where.ref)
            await reconcile.read_returned(runtime, repository.id)
        case _:
            assert_never(signal)


async def _act_of_person(
    runtime: Runtime,
    repository: RepositoryRecord,
    signal: Asked | LabelChanged | ButtonPressed | NoticeEdited,
) -> None:
    match signal:
        case Asked():
            await comments.answer_comment(runtime, repository, signal)
        case LabelChanged():
            await comments.answer_label(runtime, repository, signal)
        case ButtonPressed():
            await pressed.press_button(runtime, repository, signal)
        case NoticeEdited():
            await pressed.restore_comment(runtime, repository, signal)


async def _branch_changed(
    runtime: Runtime,
    repository: RepositoryRecord,
    signal: BranchMoved | BranchGone | DefaultBranchRenamed,
) -> None:
    match signal:
        case BranchMoved(branch=branch, new=new, paths=paths):
            await code_owners.branch_moved(runtime, repository, branch, paths)
            await _branch_moved(runtime, repository, branch, new)
            if paths is None or any(path.startswith(CI_FOLDER) for path in paths):
                await _workflows_changed(runtime, repository, branch)
            if paths is None or not paths.isdisjoint(repository_files.PATHS):
                await _file_changed(runtime, repository, branch)
        case BranchGone(branch=branch):
            await _branch_gone(runtime, repository, branch)
        case DefaultBranchRenamed(where=where, old=old, new=new):
            await _default_branch_changed(runtime, repository, old, new)
            await reconcile.read_repository(runtime, repository.id, where.ref)


async def _known(runtime: Runtime, where: Where) -> RepositoryRecord | None:
    """The repository by identity; one of ours that we have not met yet is read first.

    None if another one has its name by now: what is said of the one is not believed of the other.
    """
    known = await known_repository(runtime, where.id)
    if known is not None or where.ref.host not in runtime.providers:
        return known
    added = await _added(runtime, where)
    return added if added is not None and added.provider_id == where.id.id else None


async def _added(runtime: Runtime, where: Where) -> RepositoryRecord | None:
    provider = runtime.providers.get(where.ref.host)
    if provider is None:
        return None
    fresh = await provider.repository(where.ref)
    record = await runtime.store.run(repositories.upsert, fresh)
    for branch in {queue.branch for queue in await _queues(runtime, record)}:
        await _branch_moved(runtime, record, branch)
    await remember_heads(runtime, record.id, record.ref, record.default_branch)
    await reconcile.read_repository(runtime, record.id)
    await reconcile.read_returned(runtime, record.id)
    return record


async def remember_heads(runtime: Runtime, repository_id: int, repo: RepoRef, branch: str) -> None:
    """Keep the heads of open pull requests, to which later comments are bound."""
    listed = await runtime.providers[repo.host].open_pull_requests(repo, branch)
    now = runtime.clock.now()

    def keep(session: Tx) -> None:
        for each in listed:
            head = PullRequestHead(repository_id, each.number, each.head)
            pull_requests.remember_head(session, head, each.shown_at, now)

    await runtime.store.run(keep)


async def _queues(runtime: Runtime, repository: RepositoryRecord) -> tuple[QueueRef, ...]:
    return await runtime.store.read(queues.queues_of, repository.id)


async def _pull_request_changed(
    runtime: Runtime,
    repository: RepositoryRecord,
    signal: PullRequestChanged,
    received_at: datetime,
) -> None:
    radar.note(runtime, repository.id)
    holders = await turn.queues_with(runtime, repository.id, signal.number)
    waiting = [each for each in holders if not await _is_landing(runtime, each, signal.number)]
    for queue in waiting:
        await reconcile.read_pull_request(runtime, queue, signal.number)
    await _let_in(runtime, repository, signal, is_queued=bool(holders))
    if signal.pushed_onto is not None and signal.head is not None:
        wanted = CheckRepositoryFile(signal.number, signal.head, signal.pushed_onto)
        if await file_checks.ask_for(runtime, repository, wanted):
            outbox.wake(runtime.wakeups, (Lane.COLLECT,))
    if signal.head is not None and signal.shown is not None:
        head = PullRequestHead(repository.id, signal.number, signal.head)
        there = signal.shown
        shown = ShownHead(head, there.base, there.is_fork, there.is_closed, there.at)
        if not await _is_replaced(runtime, repository, shown):
            await runtime.store.run(consents.note_shown, shown, received_at)


async def _is_replaced(runtime: Runtime, repository: RepositoryRecord, shown: ShownHead) -> bool:
    """Return whether the head gave way to the known one within one second of the provider.

    Their times do not order them, and neither do their deliveries, so the pull request is read.
    What is known of a fork proves more (docs/design/security.md 4): there each event counts.
    """
    number = shown.head.number
    known = await runtime.store.read(pull_requests.known_head, repository.id, number)
    if known is None or known.head == shown.head.head or known.shown_at != shown.at:
        return False
    if shown.is_fork or shown.at is None:
        return False
    provider = runtime.providers[repository.ref.host]
    with suppress(Gone):
        now = await provider.pull_request(repository.ref, number, awaits_mergeability=False)
        return now.head_sha == known.head
    return False


async def _let_in(
    runtime: Runtime, repository: RepositoryRecord, signal: PullRequestChanged, *, is_queued: bool
) -> None:
    """Let a pull request enter by a rule, and read those again that depend on it."""
    for queue in await _queues(runtime, repository):
        value = await turn.last_value(runtime, queue.id)
        for entry in list(value.entries.values()):
            if signal.number in entry.facts.depends_on:
                await reconcile.read_pull_request(runtime, queue, entry.pr)
        is_onto = signal.shown is None or signal.shown.base == queue.branch
        if is_onto and not is_queued and signal.head is not None:
            await entering.enter_one(runtime, queue, signal.number, signal.head)


async def _is_landing(runtime: Runtime, queue: QueueRef, number: int) -> bool:
    """Return whether its landing is under way: that reads everything itself and tells its end."""
    value = await turn.value(runtime, queue.id)
    landing = value.landing
    run = value.runs.get(landing.run) if landing is not None else None
    if landing is None or run is None:
        return False
    members = (*run.base, *run.entries)
    return any(members[position - 1].pr == number for position in landing.positions)


async def hear_reports(
    runtime: Runtime, reports: Sequence[CheckReported], settle: Callable[[Tx], None] | None = None
) -> None:
    """Read what reports about one repository may settle; one that only began settles nothing.

    It is read all the same where the steps of its job may foresee its end. Good news about a run
    that has passed settles nothing either: its landing reads everything once more. `settle` is
    committed with the last of what follows. Raises the provider's errors, QueueGone.
    """
    repository = await _known(runtime, reports[0].where)
    # News by commit: whether any of it may be bad.
    told: dict[Sha, bool] = {}
    ended = {one.sha for one in reports if one.news is not News.BEGAN}
    for one in reports:
        if one.sha in ended or early_failures.awaits_steps(runtime):
            told[one.sha] = told.get(one.sha, False) or one.news is News.OTHER
    if repository is not None and told:
        live = await runtime.store.read(queues.runs_of_shas, repository.id, sorted(told))
        for sha in told:
            if sha in ended and sha not in live:
                await _head_reported(runtime, repository, sha)
        settle = await _look_at(runtime, live, told, settle)
    if settle is not None:
        await runtime.store.run(settle)


async def _look_at(
    runtime: Runtime,
    live: Mapping[Sha, Sequence[tuple[int, str]]],
    told: Mapping[Sha, bool],
    settle: Callable[[Tx], None] | None,
) -> Callable[[Tx], None] | None:
    """Read the runs that are not to wait for others, queue by queue; return `settle` if it is left.

    What could not be read is due at once when it is tried again.
    """
    scheduler, now = runtime.memory.of(CheckReadScheduler), runtime.clock.now()
    due: dict[int, dict[str, bool]] = {}
    for sha, runs in live.items():
        for queue_id, run in runs:
            if scheduler.should_read_now(queue_id, run, now):
                due.setdefault(queue_id, {})[run] = told[sha]
            else:
                runtime.wakeups.wake("ticks")
    with ExitStack() as failed:
        for queue_id, runs_of in due.items():
            for run in runs_of:
                failed.callback(scheduler.forget, queue_id, run)
        for place, (queue_id, runs_of) in enumerate(due.items(), start=1):
            last = settle if place == len(due) else None
            if await _look(runtime, queue_id, runs_of, last):
                settle = None
        failed.pop_all()
    return settle


async def _head_reported(runtime: Runtime, repository: RepositoryRecord, sha: Sha) -> None:
    """Read pull requests that wait for the checks of their own head, and watched targets."""
    for queue in await _queues(runtime, repository):
        value = await turn.last_value(runtime, queue.id)
        for number in _waiting_on(value, sha):
            await reconcile.read_pull_request(runtime, queue, number)
        await entering.head_checked(runtime, queue, sha)
        if breaks.is_watched(value):
            await breaks.commit_checked(runtime, queue, sha)


def _waiting_on(value: MergeQueue, sha: str) -> tuple[int, ...]:
    """Pull requests not in the line yet whose own head this is: its checks may let them in."""
    return tuple(entry.pr for entry in value.entries.values() if entry.head == sha and entry.unmet)


async def _look(
    runtime: Runtime,
    queue_id: int,
    runs: Mapping[str, bool],
    settle: Callable[[Tx], None] | None = None,
) -> bool:
    """Read the checks of runs; of one that has passed only if its news may be bad.

    Returns whether `settle` was committed.
    """
    queue = await turn.ref_of(runtime, queue_id)
    if queue is None:
        return False
    with suppress(QueueGone):
        value = await turn.value(runtime, queue_id)
        read = {
            run.id
            for run_id, is_bad in runs.items()
            if (run := value.runs.get(run_id)) is not None
            and (is_bad or run.status is not RunStatus.SUCCEEDED)
        }
        return await reconcile.read_checks(runtime, queue, read, settle)
    return False


async def look_again(runtime: Runtime) -> bool:
    """Do the reads that were put off to join a burst of events; whether there were any.

    One that fails is left to the sweep.
    """
    ripe = runtime.memory.of(CheckReadScheduler).due(runtime.clock.now())
    try:
        for queue_id, run in ripe:
            try:
                await _look(runtime, queue_id, {run: False})
            except ProviderError as trouble:
                runtime.memory.of(CheckReadScheduler).forget(queue_id, run)
                # GitHub did not answer; the checks of the run are read again later.
                log.warning("look_postponed", queue=queue_id, run=run, why=trouble.message)
    finally:
        runtime.memory.of(CheckReadScheduler).ended(ripe)
    return bool(ripe)


async def _branch_moved(
    runtime: Runtime, repository: RepositoryRecord, branch: str, new: Sha | None = None
) -> None:
    """Read a target again, unless it moved to where the queue knows it, as our landings do."""
    queue = await runtime.store.read(queues.queue_ref, repository.org_id, repository.id, branch)
    if queue is None:
        return
    value = await turn.value(runtime, queue.id)
    if new is None or value.tip is None or value.tip.sha != new:
        await reconcile.read_target(runtime, queue)


async def _workflows_changed(runtime: Runtime, repository: RepositoryRecord, branch: str) -> None:
    queue = await runtime.store.read(queues.queue_ref, repository.org_id, repository.id, branch)
    if queue is not None:
        await reconcile.workflows_changed(runtime, queue)


async def _file_changed(runtime: Runtime, repository: RepositoryRecord, branch: str) -> None:
    queue = await runtime.store.read(queues.queue_ref, repository.org_id, repository.id, branch)
    if queue is not None:
        await repository_files.look(runtime, queue, is_touched=True)


async def _branch_gone(runtime: Runtime, repository: RepositoryRecord, branch: str) -> None:
    if not branch.startswith(naming.PREFIX):
        await _branch_moved(runtime, repository, branch)
        return
    for queue in await _queues(runtime, repository):
        value = await turn.value(runtime, queue.id)
        for run in value.runs.values():
            if run.branch == branch:
                await lost_branches.restore_branch(runtime, queue, run.id)


async def _default_branch_changed(
    runtime: Runtime, repository: RepositoryRecord, old: str, new: str
) -> None:
    """Let a queue follow its renamed branch; a branch that is still there was not renamed."""
    queue = await runtime.store.read(queues.queue_ref, repository.org_id, repository.id, old)
    if queue is not None:
        await reconcile.follow_branch(runtime, queue, new)


async def _rules_changed(runtime: Runtime, repository: RepositoryRecord) -> None:
    await runtime.providers[repository.ref.host].forget_rules(repository.ref)
    for queue in await _queues(runtime, repository):
        await reconcile.read_requirements(runtime, queue)
        await reconcile.rules_changed(runtime, queue)


LOST = {
    RemovedWhy.UNINSTALLED: "The App was removed from the repository.",
    RemovedWhy.DELETED: "The repository was deleted.",
    RemovedWhy.TRANSFERRED: "The repository was transferred to an owner without the App.",
}
"""The texts of the queues of a lost repository."""


async def _removed(runtime: Runtime, where: Where, why: RemovedWhy) -> None:
    """Hold the queues of a repository, unless a fresh read finds it: the event may be old."""
    known = await runtime.store.read(access.repository_by_provider_id, where.id.host, where.id.id)
    if known is None or where.ref.host not in runtime.providers:
        return
    for ref in {known.ref, where.ref}:
        await _forget_access(runtime, ref)
    await reconcile.read_repository(runtime, known.id, where.ref, LOST[why])
    await reconcile.read_returned(runtime, known.id)


async def _access_changed(runtime: Runtime, signal: AccessChanged) -> None:
    """Read every repository of that owner again, with the rights of now."""
    theirs = await runtime.store.read(access.repositories_of_owner, signal.host, signal.owner_id)
    for repository in theirs:
        await _forget_access(runtime, repository.ref)
        await reconcile.read_repository(runtime, repository.id)
        await reconcile.read_returned(runtime, repository.id)


async def _forget_access(runtime: Runtime, repo: RepoRef) -> None:
    """Forget what we may do in a repository, and what people may read there on pages."""
    runtime.memory.of(KeptLevels).forget(repo)
    await runtime.providers[repo.host].forget_access(repo)
