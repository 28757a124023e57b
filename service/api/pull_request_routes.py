"""The pull request endpoints, one line each (API.md 4)."""

from dataclasses import replace

from service.api import pull_requests
from service.api.models import pull_requests as models
from service.api.rates import RateClass
from service.api.route import Route, read, write
from service.vocabulary import Role

PULL_REQUEST_ROUTES: tuple[Route, ...] = (
    write("submitPullRequest", Role.QUEUE, models.SubmitPullRequest, pull_requests.submit),
    write("cancelPullRequest", Role.QUEUE, models.CancelPullRequest, pull_requests.cancel),
    write(
        "restartTestsOnPullRequest",
        Role.QUEUE,
        models.RestartTestsOnPullRequest,
        pull_requests.restart,
    ),
    replace(
        write("setImpactedTargets", Role.CI, models.SetImpactedTargets, pull_requests.set_targets),
        forks=pull_requests.fork_caller,
        rate=RateClass.UPLOAD,
    ),
    read("getSubmittedPullRequest", models.GetSubmittedPullRequest, pull_requests.get),
    read("explainPullRequest", models.ExplainPullRequest, pull_requests.explained),
    read("previewCancelPullRequest", models.PreviewCancelPullRequest, pull_requests.preview_cancel),
)
