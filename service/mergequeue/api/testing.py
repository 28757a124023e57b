"""Handlers of the test run endpoints (API.md 6), and what they show."""

from collections import defaultdict

from service.http import rendering
from service.http.call import Call
from service.http.rendering import Json
from service.mergequeue.api.models.testing import GetMergeQueueTestingDetails
from service.mergequeue.operations import naming, queue_access, testing
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
"""A provider's word for a check run that is not over → ours (API.md 6.1)."""


async def details(call: Call, asked: GetMergeQueueTestingDetails) -> Json:
    """`/getMergeQueueTestingDetails`."""
    queue = await queue_access.find_queue(
        call.runtime, call.caller, asked.repo.ref, asked.target_branch
    )
    return shown(await testing.details(call.runtime, queue, asked.test_run_id))


def shown(view: TestingView) -> Json:
    """One test run (SPECIFICATION.md 4.3, API.md 6.1)."""
    run = view.run
    answer: dict[str, object] = {
        "requiredStatuses": list(dict.fromkeys(each.name for each in run.required))
    }
    if run.required_source is not None:
        answer["requiredStatusesSource"] = run.required_source.value
    answer |= {
        # A direct merge made no branch; what was tested is the pull request's own head.
        "testBranch": run.branch or "",
        "testBranchSha": run.sha or run.entries[0].head,
        "checkSuites": check_suites(view),
        "statusChecks": status_checks(view),
        "testedPullRequests": [
            {"prNumber": each.number, "prUrl": each.url, "title": each.title}
            for each in view.tested
        ],
        "createdAt": rendering.time(run.created_at),
        "status": run.status.value,
    }
    if view.impacted is not None:
        answer["impactedTargets"] = view.impacted
    if view.impacted_tested is not None:
        answer["impactedTargetsForTestedPrs"] = view.impacted_tested
    return answer | {
        "dependentPrs": run.base_prs,
        "testRunId": run.id,
        "baseSha": run.base_tip.sha,
        "finishedAt": rendering.time_or_null(run.finished_at),
        "kind": run.kind.value,
        "isBisection": run.kind in naming.BISECTION,
        "attempt": run.attempt,
        "reusedFrom": run.reused_from,
        "testPrNumber": view.vehicle_number,
        "failedStatuses": view.failed,
        "missingStatuses": view.missing,
        "waitingOn": view.waiting_on,
        "verdict": run.cause and run.cause.value,
        "failedTests": [
            {
                "id": test.id,
                "name": test.name,
                "status": test.status.value,
                "excused": test.excused,
                "newFailureText": test.is_new_text,
            }
            for test in view.failed_tests
        ],
        "incompleteReports": [
            {"name": name, "reasons": list(reasons)}
            for name, reasons in testing.unexcused_reasons_of(run).items()
        ],
    }


def check_suites(view: TestingView) -> list[Json]:
    """Check runs as the provider groups them, suites without runs included."""
    runs: dict[str, list[Check]] = defaultdict(list)
    for check in view.run.checks:
        if check.kind is CheckKind.SUITE_RUN:
            runs[check.group].append(check)
    groups = dict.fromkeys((*view.suites, *runs))
    return [{"checkRuns": [_check_run(each) for each in runs.get(group, [])]} for group in groups]


def _check_run(check: Check) -> Json:
    word = check.raw.upper()
    waiting = WAITING.get(word)
    return {
        "name": check.name,
        "url": check.url,
        "status": waiting or "COMPLETED",
        "conclusion": None if waiting else word,
    }


def status_checks(view: TestingView) -> list[Json]:
    """Every update of every status, newest first, at most 1,000."""
    updates = [check for check in view.run.checks if check.kind is CheckKind.STATUS]
    updates.sort(key=_age, reverse=True)
    return [_status(each) for each in updates[:STATUSES_MAX]]


def _age(check: Check) -> tuple[float, int, str]:
    """Newest last: by time, then by the provider's id, which grows."""
    at = check.started_at or check.completed_at
    return (at.timestamp() if at is not None else 0.0, len(check.id), check.id)


def _status(check: Check) -> Json:
    return {
        "context": check.name,
        "url": check.url,
        "state": check.raw.upper(),
        "createdAt": rendering.time_or_null(check.started_at or check.completed_at),
    }
