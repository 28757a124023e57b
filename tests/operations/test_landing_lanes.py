"""Landings beside other lanes, and of a base that was cleared with its run."""

import pytest

from service.database.database import Store
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.model import LandMode, Proof
from service.mergequeue.landing_records import LandingState
from service.mergequeue.operations import landing
from service.runtime import Runtime
from tests.operations.landing_stage import a_unit, runtime_of, three
from tests.operations.test_landing import MERGES
from tests.provider.stage import Stage


@pytest.fixture
def runtime(stage: Stage, store: Store) -> Runtime:
    return runtime_of(stage, store)


async def test_a_unit_may_hold_members_of_the_base_of_its_run(stage, runtime):
    unit = await a_unit(runtime, stage, await three(stage), base=2, merge_method=MERGES)
    await landing.land(runtime, unit.queue, await unit.land([1, 2, 3], LandMode.CAS))
    assert stage.tip() == unit.run.sha
    assert [record.position for record in await unit.records()] == [1, 2, 3]


async def test_beside_another_lane_the_change_lands_and_not_its_tree(stage, runtime):
    unit = await a_unit(runtime, stage, await three(stage), mode=Mode.PARALLEL)
    await stage.act("push", branch="main", files={"lane/other.txt": "x\n"})
    await stage.settle()
    for position in (1, 2, 3):
        action = await unit.land([position], LandMode.CALL, Proof.SAME_CHANGE)
        await landing.land(runtime, unit.queue, action)
    records = await unit.records()
    assert [record.state for record in records] == [LandingState.LANDED] * 3
    assert records[2].landed_tree == stage.tree(stage.tip())
    assert records[2].landed_tree != unit.run.steps[2].tree


async def test_what_another_lane_touched_too_is_not_even_permitted(stage, runtime):
    unit = await a_unit(runtime, stage, await three(stage), mode=Mode.PARALLEL)
    await stage.act("push", branch="main", files={"app.py": "1\n2\nx\n3\n"})
    await stage.settle()
    action = await unit.land([1], LandMode.CALL, Proof.SAME_CHANGE)
    await landing.land(runtime, unit.queue, action)
    action = await unit.land([2], LandMode.CALL, Proof.SAME_CHANGE)
    before = stage.tip()
    await landing.land(runtime, unit.queue, action)
    assert stage.tip() == before
    first, second = await unit.records()
    assert (first.state, second.state) == (LandingState.LANDED, LandingState.REFUSED)
    assert "app.py" in (second.evidence or "")
    assert second.permit_until is None
