"""The CI time that failed tests lose (docs/design/detector.md 14)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.testhealth.operations import overrides, remove, settings, sweeps
from service.testhealth.operations.overrides import OverrideRequest
from service.vocabulary import SYSTEM, Override, Sha
from tests.operations import upload_stage
from tests.operations.upload_stage import NOW

HOUR = timedelta(hours=1)
PASSED = {"one": "P", "two": "P", "three": "P", "four": "P"}
"""Four attempts of half a second."""


@pytest.fixture
async def stage(store):
    return await upload_stage.staged(store)


async def quarantining(stage, name):
    """Quarantine a test."""
    said = OverrideRequest((await stage.case(name)).id, Override.ALWAYS_QUARANTINE, "a race")
    await settings.update(stage.runtime, stage.repository, {"quarantine_enabled": True}, SYSTEM)
    await overrides.put(stage.runtime, stage.repository, said, SYSTEM)


async def costs_of(stage):
    """Return the milliseconds that each test lost, without those that lost none."""
    cases = await stage.cases()
    return {name: case.cost_ms for name, case in cases.items() if case.cost_ms}


async def test_tests_for_which_an_upload_failed_share_the_time_of_all_its_tests(stage):
    await stage.ran(PASSED | {"one": "F"}, run_id="1")
    assert await costs_of(stage) == {"one": 2000}
    await stage.ran(PASSED | {"one": "F", "two": "FF"}, run_id="2")
    assert await costs_of(stage) == {"one": 3250, "two": 1250}


async def test_a_failure_that_passed_on_a_retry_or_was_excused_costs_only_its_own_time(stage):
    await stage.ran(PASSED)
    await quarantining(stage, "two")
    await stage.ran(PASSED | {"one": "FFP", "two": "F"}, run_id="1")
    assert await costs_of(stage) == {"one": 1000, "two": 500}
    await stage.ran(PASSED | {"two": "F", "three": "F"}, run_id="2")
    assert await costs_of(stage) == {"one": 1000, "two": 1000, "three": 2000}


async def test_what_is_a_week_old_or_removed_or_of_a_stranger_costs_nothing(stage):
    for days, name in ((6.5, "one"), (6, "one"), (8, "two")):
        at = NOW - timedelta(days=days)
        await stage.ran(PASSED | {name: "F"}, run_id=f"{days}", ran_at=at)
    await stage.ran(
        PASSED | {"three": "F"},
        caller=replace(stage.caller, token_id=""),
        pr_number=4,
    )
    last = await stage.ran(PASSED | {"four": "F"}, sha=Sha("b" * 40))
    assert await costs_of(stage) == {"one": 4000, "four": 2000}
    await remove.remove(stage.runtime, stage.repository, last.upload_id, SYSTEM)
    assert await costs_of(stage) == {"one": 4000}
    for hours, cost in ((11, {"one": 4000}), (12, {"one": 2000}), (24, {})):
        stage.clock.present = NOW + hours * HOUR
        await sweeps.expire(stage.runtime)
        assert await costs_of(stage) == cost
