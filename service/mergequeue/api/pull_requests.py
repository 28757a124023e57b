"""Handlers of the pull request endpoints: one operation each."""

from dataclasses import replace

from service.errors import NotAllowed
from service.http import rates
from service.http.callers import Call, Caller
from service.http.encoding import Encoder
from service.http.models.common import Named
from service.http.rates import RateClass
from service.http.route import Route, read, write
from service.http.waiting import Versioned
from service.mergequeue.api import changes, encoded, explanation, next_steps, responses
from service.mergequeue.api.models import lists as listed
from service.mergequeue.api.models import pull_requests as models
from service.mergequeue.api.models.answers import next_steps as step_answers
from service.mergequeue.api.models.answers import pull_requests as answers
from service.mergequeue.operations import (
    checked_names,
    explain,
    fork_runs,
    impacted_targets,
    lists,
    pull_requests,
    queue_access,
    queue_views,
    turn,
)
from service.mergequeue.operations.fork_runs import Claim
from service.mergequeue.operations.impacted_targets import Upload
from service.mergequeue.operations.pull_requests import SubmitOptions
from service.mergequeue.operations.views import PullRequestView
from service.mergequeue.wording.next_steps import Place
from service.provider.errors import Throttled
from service.runtime import Runtime
from service.vocabulary import QueueRef, Role


@write(
    "submitPullRequest",
    Role.QUEUE,
    models.SubmitPullRequest,
    answers.SubmissionMade,
    "queue_not_found",
    "pull_request_not_found",
    "head_mismatch",
    "failed_before",
    "over_budget",
    "pull_request_closed",
    "pull_request_merged",
    "fork_needs_person",
    "no_required_statuses",
    "conflict_after_landing",
    "stack_loses_approvals",
    "own_test_branch",
    "limit_reached",
)
async def submit(call: Call, request: models.SubmitPullRequest) -> answers.SubmissionMade:
    """Submit a pull request to the queue.

    One that is queued already keeps its place and takes the new options. A refusal has
    `next_step`: what to do next, as `/getNextStep` answers it.
    """
    if request.again and call.caller.role is not Role.ADMIN:
        raise NotAllowed(
            "`again` needs a token of role admin, or a person with write access who comments "
            "`/merge --again`."
        )
    options = SubmitOptions(
        priority=request.wanted_priority(),
        no_batch=request.no_batch,
        sha=request.pr.sha,
        undoes=tuple(request.undoes or ()),
        again=bool(request.again),
    )
    async with next_steps.telling(call, _place(request, request.pr.number)):
        queue = await queue_of(call, request)
        submitted = await pull_requests.submit(
            call.runtime, queue, request.pr.number, options, call.actor
        )
    submission = await _submission(call, queue, submitted.view)
    return answers.SubmissionMade.of(submission, result=submitted.result)


@write(
    "cancelPullRequest",
    Role.QUEUE,
    models.CancelPullRequest,
    answers.SubmissionCancelled,
    "queue_not_found",
    "not_in_queue",
    "already_landed",
    "landing_in_progress",
)
async def cancel(call: Call, request: models.CancelPullRequest) -> answers.SubmissionCancelled:
    """Take a pull request out of the queue."""
    queue = await queue_of(call, request)
    view = await pull_requests.cancel(
        call.runtime, queue, request.pr.number, call.actor, request.reason or ""
    )
    return answers.SubmissionCancelled.of(await _submission(call, queue, view))


@write(
    "restartTestsOnPullRequest",
    Role.QUEUE,
    models.RestartTestsOnPullRequest,
    answers.SubmissionRestarted,
    "queue_not_found",
    "over_budget",
    "not_in_queue",
    "already_landed",
    "landing_in_progress",
)
async def restart(
    call: Call, request: models.RestartTestsOnPullRequest
) -> answers.SubmissionRestarted:
    """Run the tests of a pull request again."""
    queue = await queue_of(call, request)
    restarted = await pull_requests.restart(call.runtime, queue, request.pr.number, call.actor)
    submission = await _submission(call, queue, restarted.view)
    return answers.SubmissionRestarted.of(submission, result=restarted.result)


@read(
    "getSubmittedPullRequest",
    models.GetSubmittedPullRequest,
    answers.SubmissionFound,
    "queue_not_found",
    "never_submitted",
)
async def get(call: Call, request: models.GetSubmittedPullRequest) -> bytes:
    """Return the newest submission of a pull request, or wait until it changes."""
    queue = await queue_of(call, request)

    async def found() -> Versioned:
        view = await pull_requests.status(
            call.runtime, queue, request.pr.number, include_timeline=bool(request.include_timeline)
        )
        checked = await checked_names.table_of(call.runtime, queue, view.judged_by)
        return encoded.submission(view, call.runtime.options, checked)

    return await changes.newest(call, f"queue/{queue.id}", request.awaited(), found)


async def _submission(call: Call, queue: QueueRef, view: PullRequestView) -> answers.Submission:
    """Return the answer about a pull request, with the evidence for its required checks."""
    checked = await checked_names.table_of(call.runtime, queue, view.judged_by)
    return responses.submission(view, call.runtime.options, checked)


@read(
    "getSubmittedPullRequests",
    listed.GetSubmittedPullRequests,
    answers.SubmissionsFound,
    "queue_not_found",
)
async def submitted_pull_requests(
    call: Call, request: listed.GetSubmittedPullRequests
) -> answers.SubmissionsFound:
    """Return the newest submission of each of several pull requests."""
    queue = await queue_of(call, request)
    found = await lists.newest_submissions(
        call.runtime, queue, request.pr_numbers, include_timeline=bool(request.include_timeline)
    )
    return answers.SubmissionsFound(
        pull_requests=[responses.submission(each, call.runtime.options) for each in found.views],
        not_found=list(found.missing),
    )


@read(
    "listPullRequests",
    listed.ListPullRequests,
    answers.SubmissionsListed,
    "queue_not_found",
    "invalid_page_token",
    "page_token_expired",
    "invalid_time_range",
)
async def list_pull_requests(
    call: Call, request: listed.ListPullRequests
) -> answers.SubmissionsListed:
    """List submissions, newest first."""
    queue = await queue_of(call, request)
    page = await lists.list_pull_requests(
        call.runtime, queue, request.pull_request_filter(), request.page()
    )
    return answers.SubmissionsListed(
        pull_requests=[responses.submission(each, call.runtime.options) for each in page.rows],
        next_cursor=page.next_cursor,
    )


@read(
    "getPullRequestTimeline",
    listed.GetPullRequestTimeline,
    answers.TimelineListed,
    "queue_not_found",
    "never_submitted",
    "invalid_page_token",
    "page_token_expired",
)
async def timeline(call: Call, request: listed.GetPullRequestTimeline) -> answers.TimelineListed:
    """List what happened to a submission, oldest first."""
    queue = await queue_of(call, request)
    page = await lists.list_events(call.runtime, queue, request.pr.number, request.page())
    return answers.TimelineListed(
        events=[
            responses.event(each, queue.branch, page.past, page.tables) for each in page.events
        ],
        next_cursor=page.next_cursor,
    )


@read(
    "explainPullRequest",
    models.ExplainPullRequest,
    answers.Explanation,
    "queue_not_found",
    "never_submitted",
)
async def explained(call: Call, request: models.ExplainPullRequest) -> answers.Explanation:
    """Say why a pull request has not landed yet, and who must act."""
    queue = await queue_of(call, request)
    view = await explain.explain(call.runtime, queue, request.pr.number)
    return explanation.explanation(view, (await queue_views.queue_view(call.runtime, queue)).value)


@read(
    "getNextStep",
    models.GetNextStep,
    step_answers.NextStepShown,
    "queue_not_found",
)
async def next_step(call: Call, request: models.GetNextStep) -> bytes:
    """Return what a program does next about a pull request, or wait until that is another step.

    Exactly one of `WAIT`, `FIX`, `REBASE`, `RESUBMIT`, `SUPERSEDED`, `DROP`, `ASK`, `SUBMIT` and
    `DONE`, with its evidence and the next call.
    """
    runtime, number = call.runtime, request.pr.number
    async with next_steps.telling(call, _place(request, request.pr.number)):
        queue = await queue_of(call, request)
    known: dict[int, Versioned] = {}

    async def found() -> Versioned:
        version = (await turn.value(runtime, queue.id)).version
        if version not in known:
            made = await explain.next_step(runtime, queue, number)
            body = Encoder(runtime.options.enum_case).encoded(next_steps.shown(made))
            known.clear()
            known[version] = Versioned(made.version, body)
        return known[version]

    return await changes.newest(call, f"queue/{queue.id}", request.awaited(), found)


@read(
    "previewCancelPullRequest",
    models.PreviewCancelPullRequest,
    answers.CancelPreviewed,
    "queue_not_found",
    "not_in_queue",
)
async def preview_cancel(
    call: Call, request: models.PreviewCancelPullRequest
) -> answers.CancelPreviewed:
    """Say what taking a pull request out would do; nothing is changed."""
    queue = await queue_of(call, request)
    preview = await pull_requests.preview_cancel(call.runtime, queue, request.pr.number, call.actor)
    return answers.CancelPreviewed(
        pr_number=preview.pr,
        runs_interrupted=list(preview.interrupted),
        pull_requests_restarted=list(preview.restarted),
        pull_requests_moved_up=list(preview.moved_up),
    )


@read(
    "previewPriority",
    models.PreviewPriority,
    answers.PriorityPreviewed,
    "queue_not_found",
    "not_in_queue",
)
async def preview_priority(
    call: Call, request: models.PreviewPriority
) -> answers.PriorityPreviewed:
    """Return what another priority would do to a queued pull request; nothing is changed."""
    queue = await queue_of(call, request)
    preview = await pull_requests.preview_priority(
        call.runtime, queue, request.pr.number, request.priority, call.actor
    )
    return answers.PriorityPreviewed(
        pr_number=preview.pr,
        runs_interrupted=list(preview.interrupted),
        pull_requests_restarted=list(preview.restarted),
        pull_requests_moved_up=list(preview.moved_up),
        pull_requests_moved_back=list(preview.moved_back),
    )


@read(
    "findQueue",
    models.FindQueue,
    answers.QueueFound,
    "queue_not_found",
    "pull_request_not_found",
    "never_submitted",
)
async def find_queue(call: Call, request: models.FindQueue) -> answers.QueueFound:
    """Return the queue that a pull request is in, or would be submitted to."""
    queue = await queue_access.queue_of_pull_request(
        call.runtime, call.caller, request.repo.ref, request.pr.number
    )
    return answers.QueueFound(pr_number=request.pr.number, target_branch=queue.branch)


@write(
    "setImpactedTargets",
    Role.CI,
    models.SetImpactedTargets,
    answers.TargetsKept,
    "queue_not_found",
    "pull_request_not_found",
    "limit_reached",
    "not_own_pull_request",
)
async def set_targets(call: Call, request: models.SetImpactedTargets) -> answers.TargetsKept:
    """Store the targets that a head impacts, for queues in PARALLEL mode. The queue must exist.

    The pull request need not be in it. A job of its CI proves itself by an OIDC token, a fork's by
    its run; another caller needs the role `queue`.
    """
    queue = await queue_of(call, request)
    upload = Upload(request.pr.number, request.pr.head(), request.targets())
    upload = await impacted_targets.own_upload(call.runtime, queue, upload, call.caller)
    stored = await impacted_targets.set_targets(call.runtime, queue, upload, call.actor)
    return answers.TargetsKept(
        pr_number=stored.number,
        pr_sha=stored.sha,
        impacts_all=stored.impacts_all,
        target_count=stored.count,
    )


async def _fork_caller(runtime: Runtime, run_id: str, request: models.SetImpactedTargets) -> Caller:
    """Return the caller of `/setImpactedTargets` who names a CI run instead of a token."""
    claim = Claim(request.repo.ref, request.target_branch, request.pr.number, request.fork_head())
    try:
        return await fork_runs.caller_of(runtime, run_id, claim)
    except Throttled as throttled:
        wait_s = (throttled.retry_at - runtime.clock.now()).total_seconds()
        raise rates.too_many(throttled.message, wait_s) from throttled


async def queue_of(call: Call, request: Named) -> QueueRef:
    """Return the queue that a request names. Raises NotFound."""
    return await queue_access.find_queue(
        call.runtime, call.caller, request.repo.ref, request.target_branch
    )


def _place(request: Named, number: int) -> Place:
    return Place(request.repo.ref, request.target_branch, number)


PULL_REQUEST_ROUTES: tuple[Route, ...] = (
    submit,
    cancel,
    restart,
    replace(set_targets, forks=_fork_caller, takes_oidc=True, rate=RateClass.UPLOAD),
    get,
    submitted_pull_requests,
    list_pull_requests,
    timeline,
    explained,
    next_step,
    preview_cancel,
    preview_priority,
    # It may cost a call of the provider.
    replace(find_queue, rate=RateClass.WRITE),
)
"""The pull request endpoints, in the order of the document."""
