"""How long CI took on the head of a pull request (docs/design/provider.md 10)."""

from datetime import timedelta

import pytest

from bot.github.protection import Protection
from bot.github.pull_requests import PullRequests
from tests.github.table import APP_ID, on_table
from tests.github.test_landing import FACTS, a_pull
from tests.provider.stage import START

STATUS = {
    "__typename": "StatusContext",
    "context": "preview",
    "state": "SUCCESS",
    "isRequired": False,
}


def a_run(lasted=None, *, app="15368", **changed):
    """A check run that took so long; a run in progress without it."""
    return {
        "__typename": "CheckRun",
        "name": "unit",
        "status": "IN_PROGRESS" if lasted is None else "COMPLETED",
        "conclusion": None if lasted is None else "SUCCESS",
        "isRequired": False,
        "startedAt": START.isoformat(),
        "completedAt": None if lasted is None else (START + lasted).isoformat(),
        "checkSuite": {"app": {"databaseId": int(app)}},
        **changed,
    }


async def minutes(*reports):
    """What is read of a closed pull request: its facts take one call."""
    contexts = {"nodes": reports, "pageInfo": {"hasNextPage": False}}
    rollup = {"contexts": contexts} if reports else None
    async with on_table() as (table, client):
        table.says(FACTS, a_pull(state="CLOSED", statusCheckRollup=rollup))
        pulls = PullRequests(Protection(client.clock, APP_ID), APP_ID)
        return (await pulls.pull_request_now(client, 3)).own_minutes


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, 1), (20, 1), (100, 2), (12 * 60 + 29, 12), (12 * 60 + 31, 13), (6 * 3600, 360)],
)
async def test_they_are_whole_minutes_and_at_least_one(seconds, told):
    assert await minutes(a_run(timedelta(seconds=seconds))) == told


async def test_the_slowest_check_run_counts_also_if_it_failed():
    failed = a_run(timedelta(minutes=40), conclusion="FAILURE")
    skipped = a_run(timedelta(0), conclusion="SKIPPED")
    assert await minutes(skipped, failed, a_run(timedelta(minutes=12)), STATUS) == 40


@pytest.mark.parametrize(
    "report",
    [
        STATUS,
        a_run(),
        a_run(startedAt=None),
        a_run(timedelta(minutes=40), startedAt=None),
        a_run(timedelta(minutes=40), app=APP_ID),
        a_run(timedelta(hours=6, seconds=1)),
        a_run(timedelta(seconds=-1)),
    ],
    ids=[
        "a status",
        "a run in progress",
        "a run that waits for a runner",
        "a run without a start",
        "a run of our own App",
        "a run that took longer than a hosted job may",
        "a run that ended before it began",
    ],
)
async def test_it_does_not_count(report):
    assert await minutes(report) is None
    assert await minutes(report, a_run(timedelta(minutes=12))) == 12


async def test_a_head_without_checks_has_none():
    assert await minutes() is None


async def test_a_run_of_an_app_that_is_gone_counts():
    assert await minutes(a_run(timedelta(minutes=12), checkSuite={"app": None})) == 12
