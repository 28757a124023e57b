"""Commits with more reports than GitHub lists or we read: nothing is called missing."""

import pytest

from bot.github.checks import SUITES_LISTED_MAX, Reports
from bot.github.protection import Protection
from bot.github.pull_requests import PullRequests
from service.vocabulary import Blocker, BlockerCode, Sha
from tests.github.table import APP_ID, on_table
from tests.github.test_landing import FACTS, HEAD, RULES, a_pull

SUITES = f"GET /commits/{HEAD}/check-suites"
RUNS = f"GET /commits/{HEAD}/check-runs"
PASSED = {"id": 5, "name": "unit", "status": "completed", "conclusion": "success"}


@pytest.fixture
async def made():
    async with on_table() as found:
        yield found


@pytest.mark.parametrize("beyond", [0, 1])
async def test_a_commit_with_more_suites_than_github_lists_runs_of_is_not_read_whole(
    table, client, beyond
):
    # https://docs.github.com/en/rest/checks/runs#list-check-runs-for-a-git-reference
    more = {"nodes": [], "pageInfo": {"hasNextPage": True}}
    commit = {"status": None, "checkSuites": more}
    table.says("graphql CommitChecks", {"data": {"repository": {"commit_0": commit}}})
    table.says(RUNS, {"check_runs": [PASSED]})
    suites = [{"id": number, "status": "completed"} for number in range(SUITES_LISTED_MAX + beyond)]
    table.says(SUITES, {"check_suites": suites})
    found = await Reports(client.clock, APP_ID).checks(client, [HEAD], skipped_pass=True)
    assert [check.name for check in found[Sha(HEAD)].items] == ["unit"]
    assert found[Sha(HEAD)].complete is (beyond == 0)


@pytest.mark.parametrize("pages", [3, 1_000])
async def test_a_required_check_beyond_the_pages_that_are_read_is_not_called_missing(
    table, client, pages
):
    parameters = {"required_status_checks": [{"context": "late"}]}
    table.says(RULES, [{"type": "required_status_checks", "parameters": parameters}])
    table.denies("GET /branches/main/protection", 404, "Branch not protected")
    table.says("graphql MergeQueue", {"data": {"repository": {"mergeQueue": None}}})
    table.says("GET /pulls/3", {"number": 3})
    table.says("GET /pulls/3/files", [])
    table.says(FACTS, *[a_page(place < pages) for place in range(1, min(pages, 20) + 1)])
    pulls = PullRequests(Protection(client.clock, APP_ID), APP_ID)
    pull = await pulls.pull_request(client, 3)
    if pages == 3:
        assert pull.blockers == (Blocker(BlockerCode.CHECK_MISSING, "late"),)
        assert pull.skipped_checks == ("other",)
    else:
        assert pull.blockers == ()
        assert pull.skipped_checks == ()  # a pass of the same name may be among the rest


def a_page(has_more):
    check = {
        "__typename": "CheckRun",
        "name": "other",
        "status": "COMPLETED",
        "conclusion": "SKIPPED",
        "isRequired": False,
    }
    page = {"hasNextPage": has_more, "endCursor": "next"}
    return a_pull(statusCheckRollup={"contexts": {"nodes": [check], "pageInfo": page}})
