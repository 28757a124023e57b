"""Details of one test run."""

from service.accounts.store import access
from service.database.database import Tx
from service.errors import NotFound
from service.mergequeue.engine import checked, targets
from service.mergequeue.engine.culprits import failing, verdict
from service.mergequeue.engine.model import Member, MergeQueue, Run
from service.mergequeue.engine.states import FINAL, RunKind
from service.mergequeue.operations import checked_names, turn
from service.mergequeue.operations.run_failures import RunFailures
from service.mergequeue.operations.views import TestedPullRequest, TestingView
from service.mergequeue.store import pull_requests, runs
from service.runtime import Runtime
from service.vocabulary import CheckOutcome, QueueRef, Sha

ALL = "ALL"


async def details(
    runtime: Runtime, queue: QueueRef, run_id: str, *, only_built: bool = True
) -> TestingView:
    """Return one run of this queue, live or finished; the queue may be deleted.

    `only_built`: it must have a test branch. Raises NotFound(test_run_not_found): unknown, another
    queue's, or not built.
    """
    value = await turn.last_value(runtime, queue.id)
    view = await runtime.store.read(_details, runtime, queue, value, run_id)
    if view is None or (only_built and view.run.sha is None):
        raise NotFound(
            f'The queue for {queue.branch} has no test run "{run_id}".',
            code="test_run_not_found",
        )
    return view


def _details(
    session: Tx, runtime: Runtime, queue: QueueRef, value: MergeQueue, run_id: str
) -> TestingView | None:
    run = value.runs.get(run_id) or runs.run(session, queue.id, run_id)
    if run is None:
        return None
    repository = access.repository(session, queue.repository_id)
    failures = runtime.links.of(RunFailures)
    vehicle = runs.draft_pull_request_of(session, run.id)
    names = {one.required.name: one.outcome for one in verdict.standings_of(run)}
    return TestingView(
        run=run,
        status=failing.status_of(run),
        tested=tuple(_tested(session, queue, repository.url, one) for one in run.entries),
        suites=tuple(sorted({check.group for check in run.checks if check.group})),
        vehicle_number=vehicle[0] if vehicle is not None else None,
        commit_url=f"{repository.url}/commit/{run.sha}" if run.sha else "",
        impacted=_targets(session, queue, (*run.base, *run.entries)),
        impacted_tested=_targets(session, queue, run.entries),
        waiting_on=_waiting_on(value, run),
        missing=tuple(name for name, outcome in names.items() if outcome is None),
        failed=tuple(name for name, outcome in names.items() if outcome is CheckOutcome.FAILED),
        failed_tests=failures.listed_in(session, queue, run),
        killed=failures.killed_in(session, queue, run),
        checked=checked_names.read_table(session, runtime, queue, run),
    )


def _tested(session: Tx, queue: QueueRef, web_url: str, member: Member) -> TestedPullRequest:
    entry = runs.entry(session, queue.id, member.entry)
    title = entry.facts.title if entry is not None else ""
    return TestedPullRequest(member.pr, f"{web_url}/pull/{member.pr}", title)


def _targets(session: Tx, queue: QueueRef, members: tuple[Member, ...]) -> tuple[str, ...] | None:
    """Return the sorted union of the targets uploaded for these heads; None if there are none."""
    pairs: tuple[tuple[int, Sha], ...] = tuple((one.pr, one.head) for one in members)
    found = pull_requests.targets_of(session, queue.repository_id, pairs)
    if not found:
        return None
    whole = targets.union(found.values())
    return (ALL,) if whole.everything else tuple(sorted(whole.names))


def _waiting_on(value: MergeQueue, run: Run) -> tuple[int, ...]:
    """Return the pull requests ahead whose landing this run waits for."""
    if run.id not in value.runs or run.kind is RunKind.DIRECT:
        return ()
    ahead = (value.entries.get(member.pr) for member in run.base)
    return tuple(entry.pr for entry in ahead if entry is not None and entry.state not in FINAL)


def unexcused_reasons_of(run: Run) -> dict[str, tuple[str, ...]]:
    """Return sentences why quarantine does not excuse a failure, by required status."""
    gaps = {} if run.evidence is None else dict(run.evidence.gaps)
    return gaps | dict.fromkeys(verdict.revoked_of(run), (checked.REVOKED,))
