"""Details of one test run (API.md 6.1)."""

from service.accounts.store import access
from service.database.database import Tx
from service.errors import NotFound
from service.mergequeue.engine import targets
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Member, MergeQueue, Run
from service.mergequeue.engine.states import FINAL, RunKind
from service.mergequeue.operations import turn
from service.mergequeue.operations.views import FailedTest, TestedPullRequest, TestingView
from service.mergequeue.store import pull_requests, runs
from service.runtime import Runtime
from service.testhealth.store import listings, run_evidence
from service.vocabulary import CheckOutcome, QueueRef, Sha

ALL = "ALL"

FAILED_TESTS_MAX = 1000
"""Failures of one run that are shown, as in the answer to an upload (API.md 8.4)."""


async def details(runtime: Runtime, queue: QueueRef, run_id: str) -> TestingView:
    """One run of this queue, live or finished.

    Raises NotFound(test_run_not_found): unknown, another queue's, or not built yet.
    """
    value = await turn.value(runtime, queue.id)
    view = await runtime.store.read(_details, queue, value, run_id)
    if view is None:
        raise NotFound(
            f'The queue for {queue.branch} has no test run "{run_id}".',
            code="test_run_not_found",
        )
    return view


def _details(session: Tx, queue: QueueRef, value: MergeQueue, run_id: str) -> TestingView | None:
    run = value.runs.get(run_id) or runs.run(session, queue.id, run_id)
    if run is None or run.sha is None:
        return None
    repository = access.repository(session, queue.repository_id)
    vehicle = runs.vehicle(session, run.id)
    names = {one.required.name: one.outcome for one in verdict.standings_of(run)}
    return TestingView(
        run=run,
        tested=tuple(_tested(session, queue, repository.url, one) for one in run.entries),
        suites=tuple(sorted({check.group for check in run.checks if check.group})),
        vehicle_number=vehicle[0] if vehicle is not None else None,
        commit_url=f"{repository.url}/commit/{run.sha}",
        impacted=_targets(session, queue, (*run.base, *run.entries)),
        impacted_tested=_targets(session, queue, run.entries),
        waiting_on=_waiting_on(value, run),
        missing=tuple(name for name, outcome in names.items() if outcome is None),
        failed=tuple(name for name, outcome in names.items() if outcome is CheckOutcome.FAILED),
        failed_tests=_failed_tests(session, queue.repository_id, run, run.sha),
    )


def _failed_tests(session: Tx, repository_id: int, run: Run, sha: Sha) -> tuple[FailedTest, ...]:
    """Return the tests that failed in any attempt, from the results of the run's commit."""
    sent = run_evidence.of_run(session, repository_id, sha, run.created_at)
    found = run_evidence.failed_in(session, [each.id for each in sent], FAILED_TESTS_MAX)
    quarantined = {each.no for each in found if each.is_quarantined}
    nos = sorted({each.no for each in found})
    new_texts = frozenset(run.evidence.new_texts if run.evidence else ())
    return tuple(
        FailedTest(
            case.id,
            case.name,
            case.status,
            bool(run.excused) and case.no in quarantined,
            case.id in new_texts,
        )
        for case in listings.records(session, repository_id, nos)
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
    """Pull requests ahead whose landing this run's own waits for."""
    if run.id not in value.runs or run.kind is RunKind.DIRECT:
        return ()
    ahead = (value.entries.get(member.pr) for member in run.base)
    return tuple(entry.pr for entry in ahead if entry is not None and entry.state not in FINAL)
