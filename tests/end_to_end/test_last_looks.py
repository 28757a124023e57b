"""No news of CI comes in time: a run is looked at once more before it counts as too late."""

from typing import Any

import pytest

from service.mergequeue.engine.reasons import Reason
from service.mergequeue.operations import run_reports
from service.mergequeue.store import runs
from tests.harness.world import World, WorldOptions

NEWS = ("check_run", "check_suite", "status", "workflow_run")


@pytest.fixture
def world_options() -> WorldOptions:
    """No sweep of the checks comes in time."""
    return WorldOptions(settings={"period_run_checks_s": 3600})


@pytest.mark.parametrize("limit", ["check_start_timeout_minutes", "testing_timeout_minutes"])
async def test_tests_that_passed_unheard_do_not_count_as_too_late(world: World, limit: str):
    settings: dict[str, Any] = {limit: 1}
    await world.make_queue(**settings)
    number = await world.open()
    await world.settle()
    for event in NEWS:
        await world.fault({"event": event}, "drop")
    await world.comment("/merge", on=number)
    await world.settle()
    entry = await world.entry(number)
    assert (entry.state.value, entry.restarts) == ("MERGED", {})
    queue = await world.queue()
    run = await world.runtime.store.read(runs.run, queue.id, entry.verified_by or "")
    assert run is not None
    assert (run.number, run.attempt) == (1, 1)


async def test_a_last_look_that_github_does_not_answer_delays_no_timer_for_long(world: World):
    await world.make_queue(testing_timeout_minutes=1, confirm_failures="OFF")
    number = await world.open()
    await world.settle()
    for event in NEWS:
        await world.fault({"event": event}, "drop")
    await world.fault({"graphql": "CommitChecks"}, "hang", s=100)
    began = world.clock.monotonic_s()
    await world.comment("/merge", on=number)

    async def is_over() -> bool:
        return (
            number not in (await world.value()).entries and world.clock.monotonic_s() > began + 60
        )

    await world.until(is_over, within_s=60 + 2 * run_reports.LAST_LOOK_S)
    assert (await world.entry(number)).reason is Reason.RUN_TIMED_OUT
    await world.settle()
