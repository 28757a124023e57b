"""The pull request endpoints, one line each (API.md 4)."""

from dataclasses import replace

from service.http.rates import RateClass
from service.http.route import Route, read, write
from service.mergequeue.api import lists, pull_requests
from service.mergequeue.api.models import lists as listed
from service.mergequeue.api.models import pull_requests as models
from service.mergequeue.api.models.answers import pull_requests as answers
from service.vocabulary import Role

PULL_REQUEST_ROUTES: tuple[Route, ...] = (
    write(
        "submitPullRequest", Role.QUEUE, models.SubmitPullRequest, pull_requests.submit
    ).answering(
        answers.SubmissionMade,
        "queue_not_found",
        "pull_request_not_found",
        "head_mismatch",
        "pull_request_closed",
        "pull_request_merged",
        "fork_needs_person",
        "no_required_statuses",
        "limit_reached",
    ),
    write(
        "cancelPullRequest", Role.QUEUE, models.CancelPullRequest, pull_requests.cancel
    ).answering(
        answers.Submission,
        "queue_not_found",
        "not_in_queue",
        "already_landed",
        "landing_in_progress",
    ),
    write(
        "restartTestsOnPullRequest",
        Role.QUEUE,
        models.RestartTestsOnPullRequest,
        pull_requests.restart,
    ).answering(
        answers.SubmissionRestarted,
        "queue_not_found",
        "not_in_queue",
        "already_landed",
        "landing_in_progress",
    ),
    replace(
        write("setImpactedTargets", Role.CI, models.SetImpactedTargets, pull_requests.set_targets),
        forks=pull_requests.fork_caller,
        rate=RateClass.UPLOAD,
    ).answering(
        answers.TargetsKept,
        "queue_not_found",
        "pull_request_not_found",
        "limit_reached",
        "not_own_pull_request",
    ),
    read("getSubmittedPullRequest", models.GetSubmittedPullRequest, pull_requests.get).answering(
        answers.Submission, "queue_not_found", "never_submitted"
    ),
    read(
        "getSubmittedPullRequests", listed.GetSubmittedPullRequests, lists.submitted_pull_requests
    ).answering(answers.SubmissionsFound, "queue_not_found"),
    read("listPullRequests", listed.ListPullRequests, lists.pull_requests).answering(
        answers.SubmissionsListed,
        "queue_not_found",
        "invalid_page_token",
        "page_token_expired",
        "invalid_time_range",
    ),
    read("getPullRequestTimeline", listed.GetPullRequestTimeline, lists.timeline).answering(
        answers.TimelineListed,
        "queue_not_found",
        "never_submitted",
        "invalid_page_token",
        "page_token_expired",
    ),
    read("explainPullRequest", models.ExplainPullRequest, pull_requests.explained).answering(
        answers.Explanation, "queue_not_found", "never_submitted"
    ),
    read(
        "previewCancelPullRequest", models.PreviewCancelPullRequest, pull_requests.preview_cancel
    ).answering(answers.CancelPreviewed, "queue_not_found", "not_in_queue"),
)
