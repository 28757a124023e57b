"""Which workflow runs of a tested commit are the queue's own, by the heads that GitHub shows."""

import pytest

from bot.github import ci_runs
from service.vocabulary import Sha
from tests.github.table import on_table
from tests.github.test_landing import HEAD

OURS, FORK = {"id": 1}, {"id": 2}


@pytest.fixture
async def made():
    async with on_table() as found:
        yield found


@pytest.mark.parametrize(
    ("event", "head", "is_foreign"),
    [
        ("push", ("headgate/merge/pr-1", OURS), False),
        ("pull_request", ("headgate/merge/pr-1", OURS), False),
        ("push", ("main", OURS), False),
        ("pull_request", ("topic", OURS), True),
        ("pull_request", ("headgate/merge/pr-1", FORK), True),
        ("pull_request", ("main", None), True),
        # A deployment of a commit has no branch: `GITHUB_REF` is empty then.
        # https://docs.github.com/en/actions/reference/events-that-trigger-workflows#deployment_status
        ("deployment_status", (None, OURS), False),
        # Code scanning by default runs on the reference of a pull request, also of a draft of ours.
        ("dynamic", ("refs/pull/7/head", OURS), False),
        ("dynamic", ("refs/pull/7/head", FORK), True),
        ("deployment_status", (None, None), True),
    ],
)
async def test_a_run_of_the_commit_itself_is_no_strangers(table, client, event, head, is_foreign):
    branch, repository = head
    run = {"event": event, "head_branch": branch, "check_suite_id": 5, "repository": OURS}
    table.says("GET /actions/runs", {"workflow_runs": [run | {"head_repository": repository}]})
    found = await ci_runs.foreign_suites(client, Sha(HEAD), "main")
    assert set(found) == ({"5"} if is_foreign else set())
