"""What a report on the head of a pull request has judged, by the event of its run."""

from dataclasses import replace

import pytest

from bot.github import checks
from service.provider.ci import Subject
from service.provider.values import Checks
from service.vocabulary import CheckOutcome, Sha
from tests.github.table import on_table
from tests.github.test_land_stops import facts
from tests.mergequeue.stage import a_check

OURS = {"full_name": "octo/widgets"}
UNCHANGED = {
    "pullRequest": {"timelineItems": {"nodes": []}},
    "pullRequests": {"nodes": [], "pageInfo": {"hasNextPage": False}},
}


@pytest.fixture
async def made():
    async with on_table() as found:
        yield found


@pytest.mark.parametrize(
    ("event", "subject"),
    [
        ("push", Subject.HEAD),
        ("pull_request", Subject.MERGE),
        # It checks out the base: what passes there says nothing of the head that shows it.
        # https://docs.github.com/en/actions/reference/events-that-trigger-workflows#pull_request_target
        ("pull_request_target", Subject.UNKNOWN),
        ("workflow_run", Subject.UNKNOWN),
        ("issue_comment", Subject.UNKNOWN),
    ],
)
async def test_a_report_has_judged_what_the_event_of_its_run_tests(table, client, event, subject):
    pull = facts()
    run = {"event": event, "head_branch": "topic", "check_suite_id": 5, "head_repository": OURS}
    table.says("GET /actions/runs", {"workflow_runs": [run]})
    table.says("graphql BaseHistory", {"data": {"repository": UNCHANGED}})
    report = replace(a_check("unit", CheckOutcome.PASSED), group="5")
    shown = Checks(Sha(pull.head_sha), (report,), complete=True)
    (judged,) = await checks.read_judged(client, pull, shown)
    assert judged.subject is subject
