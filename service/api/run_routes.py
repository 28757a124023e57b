"""The test run endpoints, one line each (API.md 6)."""

from service.api import lists, testing
from service.api.models import lists as listed
from service.api.models import testing as models
from service.api.models.answers import runs as answers
from service.api.route import Route, read

RUN_ROUTES: tuple[Route, ...] = (
    read(
        "getMergeQueueTestingDetails", models.GetMergeQueueTestingDetails, testing.details
    ).answering(answers.TestRunShown, "queue_not_found", "test_run_not_found"),
    read(
        "listMergeQueueTestingResults", listed.ListMergeQueueTestingResults, lists.testing_results
    ).answering(answers.TestRunsListed, "queue_not_found"),
)
