"""Handlers of the test run endpoints, and what they show."""

from collections import defaultdict

from service.errors import Invalid
from service.http.callers import Call
from service.http.route import Route, read
from service.mergequeue.api import pull_requests, responses
from service.mergequeue.api.models import lists as listed
from service.mergequeue.api.models import testing as models
from service.mergequeue.api.models.answers import runs as answers
from service.mergequeue.engine.states import PROBE_SLOTS
from service.mergequeue.operations import lists, testing
from service.mergequeue.operations.views import TestingView
from service.vocabulary import Check, CheckKind

STATUSES_MAX = 1_000

WAITING = {
    "QUEUED": "QUEUED",
    "IN_PROGRESS": "IN_PROGRESS",
    "WAITING": "QUEUED",
    "REQUESTED": "QUEUED",
    "PENDING": "QUEUED",
}
"""A provider's word for a check run that is not over → ours."""


@read(
    "getMergeQueueTestingDetails",
    models.GetMergeQueueTestingDetails,
    answers.TestRunShown,
    "queue_not_found",
    "test_run_not_found",
)
async def details(call: Call, request: models.GetMergeQueueTestingDetails) -> answers.TestRunShown:
    """Return a test run with everything reported on its test branch."""
    queue = await pull_requests.queue_of(call, request)
    return test_run(await testing.details(call.runtime, queue, request.test_run_id))


def test_run(view: TestingView) -> answers.TestRunShown:
    """Return the answer about one test run."""
    run = view.run
    return answers.TestRunShown(
        required_statuses=list(dict.fromkeys(each.name for each in run.required)),
        required_statuses_source=run.required_source,
        # A direct merge made no branch; what was tested is the pull request's own head.
        test_branch=run.branch or "",
        test_branch_sha=run.sha or (run.entries[0].head if run.entries else run.base_tip.sha),
        check_suites=check_suites(view),
        status_checks=status_checks(view),
        tested_pull_requests=[
            answers.TestedPullRequestShown(pr_number=each.number, pr_url=each.url, title=each.title)
            for each in view.tested
        ],
        created_at=run.created_at,
        status=view.status,
        impacted_targets=_listed(view.impacted),
        impacted_targets_for_tested_prs=_listed(view.impacted_tested),
        dependent_prs=list(run.base_prs),
        test_run_id=run.id,
        base_sha=run.base_tip.sha,
        finished_at=run.finished_at,
        kind=run.kind,
        is_bisection=run.kind in PROBE_SLOTS,
        attempt=run.attempt,
        reused_from=run.reused_from,
        test_pr_number=view.vehicle_number,
        failed_statuses=list(view.failed),
        missing_statuses=list(view.missing),
        waiting_on=list(view.waiting_on),
        verdict=run.cause,
        failed_tests=[
            answers.FailedTest.of(test, new_failure_text=test.is_new_text)
            for test in view.failed_tests
        ],
        incomplete_reports=[
            answers.IncompleteReport(name=name, reasons=list(reasons))
            for name, reasons in testing.unexcused_reasons_of(run).items()
        ],
        required_checks=responses.required_checks(view.checked),
    )


def _listed(targets: tuple[str, ...] | None) -> list[str] | None:
    return None if targets is None else list(targets)


def check_suites(view: TestingView) -> list[answers.CheckSuiteShown]:
    """Return check runs as the provider groups them, suites without runs included."""
    runs: dict[str, list[Check]] = defaultdict(list)
    for check in view.run.checks:
        if check.kind is CheckKind.SUITE_RUN:
            runs[check.group].append(check)
    groups = dict.fromkeys((*view.suites, *runs))
    return [
        answers.CheckSuiteShown(check_runs=[_check_run(each) for each in runs.get(group, [])])
        for group in groups
    ]


def _check_run(check: Check) -> answers.CheckRunShown:
    word = check.raw.upper()
    waiting = WAITING.get(word)
    return answers.CheckRunShown.of(
        check, status=waiting or "COMPLETED", conclusion=None if waiting else word
    )


def status_checks(view: TestingView) -> list[answers.StatusCheckShown]:
    """Return every update of every status, newest first, at most 1,000."""
    updates = [check for check in view.run.checks if check.kind is CheckKind.STATUS]
    updates.sort(key=_age, reverse=True)
    return [_status(each) for each in updates[:STATUSES_MAX]]


def _age(check: Check) -> tuple[float, int, str]:
    """Newest last: by time, then by the provider's id, which grows."""
    at = check.started_at or check.completed_at
    return (at.timestamp() if at is not None else 0.0, len(check.id), check.id)


def _status(check: Check) -> answers.StatusCheckShown:
    return answers.StatusCheckShown.of(
        check,
        context=check.name,
        state=check.raw.upper(),
        created_at=check.started_at or check.completed_at,
    )


@read(
    "listMergeQueueTestingResults",
    listed.ListMergeQueueTestingResults,
    answers.TestRunsListed,
    "queue_not_found",
    "invalid_page_token",
    "page_token_expired",
    "conflicting_fields",
)
async def testing_results(
    call: Call, request: listed.ListMergeQueueTestingResults
) -> answers.TestRunsListed:
    """List test runs, newest first."""
    queue = await pull_requests.queue_of(call, request)
    if request.cursor and request.offset:
        raise Invalid(
            "`cursor` says where to go on, and so does `offset`; send one of them.",
            code="conflicting_fields",
        )
    wanted = request.request()
    page = await lists.list_runs(call.runtime, queue, wanted)
    listed_runs = [
        answers.ListedTestRun.of(
            run,
            test_run_id=run.id,
            pr_number=run.prs[0],
            pr_numbers=run.prs,
            cycle_conclusion=run.conclusion and run.conclusion.value.lower(),
            bisection=_bisection(is_of_search=run.is_of_search, began_search=run.began_search),
            verdict=run.cause,
            test_branch_sha=run.sha,
        )
        for run in page.runs
    ]
    return answers.TestRunsListed(
        testing_results=listed_runs,
        total_items=page.total,
        offset=wanted.offset,
        take=wanted.page.size,
        next_cursor=page.next_cursor,
    )


def _bisection(*, is_of_search: bool, began_search: bool) -> answers.Bisection | None:
    """Return a run's part in a bisection: one of its runs, or the failure that began it."""
    if is_of_search:
        return "in_bisection"
    return "entered_bisection" if began_search else None


RUN_ROUTES: tuple[Route, ...] = (
    details,
    testing_results,
)
"""The test run endpoints."""
