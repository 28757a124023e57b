"""The test run endpoints, one line each (API.md 6)."""

from service.http.route import Route, read
from service.mergequeue.api import lists, testing
from service.mergequeue.api.models import lists as listed
from service.mergequeue.api.models import testing as models
from service.mergequeue.api.models.answers import runs as answers

RUN_ROUTES: tuple[Route, ...] = (
    read(
        "getMergeQueueTestingDetails", models.GetMergeQueueTestingDetails, testing.details
    ).answering(answers.TestRunShown, "queue_not_found", "test_run_not_found"),
    read(
        "listMergeQueueTestingResults", listed.ListMergeQueueTestingResults, lists.testing_results
    ).answering(answers.TestRunsListed, "queue_not_found"),
)
