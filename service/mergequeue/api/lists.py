"""Handlers of the endpoints that list (API.md 4.3, 5.2, 6.2), and what their rows show."""

from service.accounts import access
from service.http import rendering
from service.http.call import Call
from service.http.models.common import Named
from service.http.rendering import Json
from service.mergequeue.api import responses
from service.mergequeue.api.models import lists as models
from service.mergequeue.operations import lists
from service.mergequeue.operations.views import ListedRun, QueueRow
from service.vocabulary import QueueRef


async def submitted_pull_requests(call: Call, asked: models.GetSubmittedPullRequests) -> Json:
    """`/getSubmittedPullRequests`."""
    queue = await _queue_of(call, asked)
    found = await lists.newest_submissions(
        call.runtime, queue, asked.pr_numbers, include_timeline=bool(asked.include_timeline)
    )
    return {
        "pullRequests": [responses.record_in_list(each, call.public_url) for each in found.views],
        "notFound": found.missing,
    }


async def pull_requests(call: Call, asked: models.ListPullRequests) -> Json:
    """`/listPullRequests`."""
    queue = await _queue_of(call, asked)
    part = await lists.list_pull_requests(
        call.runtime, queue, asked.wanted(), asked.count(), asked.cursor
    )
    return {
        "pullRequests": [responses.record_in_list(each, call.public_url) for each in part.rows],
        **_following(part.next_cursor),
    }


async def timeline(call: Call, asked: models.GetPullRequestTimeline) -> Json:
    """`/getPullRequestTimeline`."""
    queue = await _queue_of(call, asked)
    part = await lists.list_events(
        call.runtime, queue, asked.pr.number, asked.count(), asked.cursor
    )
    return {
        "events": [responses.event(each, queue.branch, part.past) for each in part.events],
        **_following(part.next_cursor),
    }


async def queues(call: Call, asked: models.ListQueues) -> Json:
    """`/listQueues`."""
    ref = None if asked.repo is None else asked.repo.ref
    part = await lists.list_queues(call.runtime, call.caller, ref, asked.count(), asked.cursor)
    return {"queues": [_queue(each) for each in part.rows], **_following(part.next_cursor)}


def _queue(row: QueueRow) -> Json:
    return {
        "repo": rendering.repository(row.repo),
        "branch": row.branch,
        "state": row.state.value,
        "mode": row.mode.value,
        "depth": row.depth,
        "notReady": row.not_ready,
        "testing": row.testing,
        "version": row.revision,
    }


async def testing_results(call: Call, asked: models.ListMergeQueueTestingResults) -> Json:
    """`/listMergeQueueTestingResults`."""
    queue = await _queue_of(call, asked)
    wish = asked.wish()
    part = await lists.list_runs(call.runtime, queue, wish)
    return {
        "testingResults": [_testing_result(each) for each in part.rows],
        "totalItems": part.total,
        "offset": wish.offset,
        "take": wish.take,
    }


def _testing_result(run: ListedRun) -> Json:
    return {
        "testRunId": run.id,
        "prNumber": run.prs[0],
        "prNumbers": run.prs,
        "status": run.status.value,
        "cycleConclusion": run.conclusion and run.conclusion.value.lower(),
        "bisection": _bisection(run),
        "verdict": run.cause,
        "createdAt": rendering.time(run.created_at),
        "finishedAt": rendering.time_or_null(run.finished_at),
        "testBranchSha": run.sha,
    }


def _bisection(run: ListedRun) -> str | None:
    """Its part in the search for a culprit: one of its runs, or the failure that began it."""
    if run.is_of_search:
        return "in_bisection"
    return "entered_bisection" if run.began_search else None


def _following(cursor: str | None) -> Json:
    """Where to go on; nothing at the end."""
    return {} if cursor is None else {"nextCursor": cursor}


async def _queue_of(call: Call, asked: Named) -> QueueRef:
    return await access.find_queue(call.runtime, call.caller, asked.repo.ref, asked.target_branch)
