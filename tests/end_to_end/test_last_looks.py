"""No news of CI comes in time: a run is looked at once more before it counts as too late."""

from typing import Any

import pytest

from service.mergequeue.engine.reasons import Reason
from service.mergequeue.operations import last_looks
from service.mergequeue.store import runs
from tests.harness.world import World, WorldOptions

NEWS = ("check_run", "check_suite", "status", "workflow_run")


@pytest.fixture
def world_options() -> WorldOptions:
    """No sweep of the checks comes in time."""
    return WorldOptions(settings={"period_run_checks_s": 3600})


async def unheard(world: World, **settings: Any) -> int:
    """Make a queue, and submit a pull request whose tests nobody hears of; its number."""
    await world.make_queue(confirm_failures="OFF", **settings)
    number = await world.open()
    await world.settle()
    for event in NEWS:
        await world.fault({"event": event}, "drop")
    await world.comment("/merge", on=number)
    return number


@pytest.mark.parametrize("limit", ["check_start_timeout_minutes", "testing_timeout_minutes"])
async def test_tests_that_passed_unheard_do_not_count_as_too_late(world: World, limit: str):
    number = await unheard(world, **{limit: 1})
    await world.settle()
    entry = await world.entry(number)
    assert (entry.state.value, entry.restarts) == ("MERGED", {})
    queue = await world.queue()
    run = await world.runtime.store.read(runs.run, queue.id, entry.verified_by or "")
    assert run is not None
    assert (run.number, run.attempt) == (1, 1)


@pytest.mark.parametrize(
    ("kind", "how"),
    [("fail_before", {"status": 503}), ("hang", {"s": last_looks.LAST_LOOK_S + 5})],
)
async def test_tests_do_not_count_as_too_late_while_github_does_not_answer(
    world: World, kind: str, how: dict[str, float]
):
    await world.fault({"graphql": "CommitChecks"}, kind, **how)
    number = await unheard(world, testing_timeout_minutes=1)
    await world.rest(600)
    assert await world.state(number) == "TESTING"
    world.sandbox.world.faults.clear()
    await world.settle()
    assert await world.state(number) == "MERGED"


async def test_tests_count_as_too_late_once_github_has_not_answered_for_an_hour(world: World):
    await world.fault({"graphql": "CommitChecks"}, "fail_before", status=503)
    number = await unheard(world, check_start_timeout_minutes=1)

    async def is_tested_again() -> bool:
        return Reason.RETRY_ON_NEW_BRANCH in (await world.entry(number)).restarts

    await world.rest(last_looks.LATE_MAX.total_seconds())
    assert not await is_tested_again()
    await world.until(is_tested_again, within_s=300)
    world.sandbox.world.faults.clear()
    await world.settle()
    assert await world.state(number) == "MERGED"
