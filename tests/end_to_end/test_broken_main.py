"""A test that has just broken on `main` is not excused as flaky, whenever CI sends the results."""

from datetime import timedelta

import pytest

from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions

GREEN = {"total": "", "mail": ""}
RED = {"total": "AssertionError: 10.0 != 10.01", "mail": ""}
GOOD = 8
"""Commits of `main` on which all tests pass in order."""


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI, permissions={"actions": "write"})


async def commits(world: World, count: int) -> list[str]:
    """Push so many commits to `main` one by one, the oldest first."""
    made = []
    for number in range(count):
        files = {f"{number}.txt": f"{number}\n"}
        made.append(await world.act("push", by="alice", branch="main", files=files, bypass=True))
    await world.settle()
    return [str(each["sha"]) for each in made]


async def test_results_of_older_commits_between_its_failures_do_not_excuse_it(world: World) -> None:
    ask: Asker = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    settings = {"quarantine_enabled": True, "auto_quarantine_enabled": True}
    await ci.settle_tests(ask, "update-settings", **settings, excuse_proof="TOKEN")
    await ci.fails_by_tests_alone(ask)
    *good, late, broken, newest = await commits(world, GOOD + 3)
    begin = world.clock.now() - timedelta(hours=1)
    in_ci = [*((sha, GREEN) for sha in good), (broken, RED), (late, GREEN), (newest, RED)]
    for minute, (sha, tests) in enumerate(in_ci):
        at = (begin + timedelta(minutes=minute)).isoformat()
        about = {"sha": sha, "branch": "main", "run_id": str(minute), "ran_at": at}
        await ci.upload(ask, tests, **about, job="unit")
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    run = await ci.ends(ask, number, RED)
    await world.settle()
    assert await world.merged() == []
    shown = await ask.done("getMergeQueueTestingDetails", testRunId=run.id)
    assert (shown["verdict"], [one["excused"] for one in shown["failedTests"]]) == (
        "base_red",
        [False],
    )
