"""Handlers of the endpoints that list (API.md 4.3, 5.2, 6.2)."""

from service.accounts import access
from service.http.callers import Call
from service.http.models.common import Named
from service.mergequeue.api import responses
from service.mergequeue.api.models import lists as models
from service.mergequeue.api.models.answers import pull_requests as answers
from service.mergequeue.api.models.answers.queues import ListedQueue, QueuesListed
from service.mergequeue.api.models.answers.runs import Bisection, ListedTestRun, TestRunsListed
from service.mergequeue.operations import pull_request_lists, queue_lists, run_lists
from service.mergequeue.operations.views import ListedRun
from service.vocabulary import QueueRef


async def submitted_pull_requests(
    call: Call, asked: models.GetSubmittedPullRequests
) -> answers.SubmissionsFound:
    """`/getSubmittedPullRequests`."""
    queue = await _queue_of(call, asked)
    found = await pull_request_lists.newest(
        call.runtime, queue, asked.pr_numbers, include_timeline=bool(asked.include_timeline)
    )
    return answers.SubmissionsFound(
        pull_requests=[responses.submission(each, call.public_url) for each in found.views],
        not_found=list(found.missing),
    )


async def pull_requests(call: Call, asked: models.ListPullRequests) -> answers.SubmissionsListed:
    """`/listPullRequests`."""
    queue = await _queue_of(call, asked)
    part = await pull_request_lists.listed(
        call.runtime, queue, asked.wanted(), asked.count(), asked.cursor
    )
    return answers.SubmissionsListed(
        pull_requests=[responses.submission(each, call.public_url) for each in part.rows],
        next_cursor=part.next_cursor,
    )


async def timeline(call: Call, asked: models.GetPullRequestTimeline) -> answers.TimelineListed:
    """`/getPullRequestTimeline`."""
    queue = await _queue_of(call, asked)
    part = await pull_request_lists.events(
        call.runtime, queue, asked.pr.number, asked.count(), asked.cursor
    )
    return answers.TimelineListed(
        events=[responses.event(each, queue.branch, part.past) for each in part.events],
        next_cursor=part.next_cursor,
    )


async def queues(call: Call, asked: models.ListQueues) -> QueuesListed:
    """`/listQueues`."""
    ref = None if asked.repo is None else asked.repo.ref
    part = await queue_lists.listed(call.runtime, call.caller, ref, asked.count(), asked.cursor)
    rows = [ListedQueue.of(each, version=each.revision) for each in part.rows]
    return QueuesListed(queues=rows, next_cursor=part.next_cursor)


async def testing_results(call: Call, asked: models.ListMergeQueueTestingResults) -> TestRunsListed:
    """`/listMergeQueueTestingResults`."""
    queue = await _queue_of(call, asked)
    wish = asked.wish()
    part = await run_lists.listed(call.runtime, queue, wish)
    return TestRunsListed(
        testing_results=[_testing_result(each) for each in part.rows],
        total_items=part.total,
        offset=wish.offset,
        take=wish.take,
    )


def _testing_result(run: ListedRun) -> ListedTestRun:
    return ListedTestRun.of(
        run,
        test_run_id=run.id,
        pr_number=run.prs[0],
        pr_numbers=run.prs,
        cycle_conclusion=run.conclusion and run.conclusion.value.lower(),
        bisection=_bisection(run),
        verdict=run.cause,
        test_branch_sha=run.sha,
    )


def _bisection(run: ListedRun) -> Bisection | None:
    """Return the run's part in a bisection: one of its runs, or the failure that began it."""
    if run.is_of_search:
        return "in_bisection"
    return "entered_bisection" if run.began_search else None


async def _queue_of(call: Call, asked: Named) -> QueueRef:
    return await access.find_queue(call.runtime, call.caller, asked.repo.ref, asked.target_branch)
