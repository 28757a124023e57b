"""A target that shows our own move late, or that a person has moved back after it.

Headgate never lands a second time what a person may have taken out of the branch.
"""

import pytest

from bot.github.landing import SHOWN_FOR
from service.database.database import Store
from service.mergequeue.engine.model import LandMode
from service.mergequeue.engine.outputs import Land
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.landing_records import LandingState
from service.mergequeue.operations import landing, lost_branches
from service.provider.errors import OutcomeUnknown
from service.runtime import Runtime
from tests.operations.landing_stage import Unit, a_unit, runtime_of, three
from tests.operations.test_landing import MERGES, states
from tests.provider.stage import Stage


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Instead of one of each kind."""
    return sqlite_url


@pytest.fixture
def runtime(stage: Stage, store: Store) -> Runtime:
    return runtime_of(stage, store)


@pytest.fixture
async def unit(stage: Stage, runtime: Runtime) -> Unit:
    """Three pull requests in one run, which land by one atomic update."""
    return await a_unit(runtime, stage, await three(stage), merge_method=MERGES)


def moves(stage: Stage) -> int:
    """How often an atomic update was sent."""
    return sum("updateRefs" in str(call["body"]) for call in stage.calls())


async def read_late(stage: Stage, unit: Unit, action: Land) -> None:
    """Land, and read the target as it was before for as long as the provider waits."""
    await stage.tip_shown(1, action.expected_tip.sha)
    with pytest.raises(OutcomeUnknown):
        await landing.land(unit.runtime, unit.queue, action)
    assert await states(unit) == [LandingState.UNKNOWN] * 3


async def test_a_target_that_shows_our_move_late_lands_without_a_hold(stage, runtime, unit):
    action = await unit.land([1, 2, 3], LandMode.CAS)
    await read_late(stage, unit, action)
    await stage.act("force_push", branch="main", to=unit.run.sha, bypass=True)
    await landing.land(runtime, unit.queue, action)
    assert await states(unit) == [LandingState.LANDED] * 3
    assert (await unit.value()).holds == ()
    assert moves(stage) == 1


async def test_a_target_that_a_person_moved_back_waits_for_a_person(stage, runtime, unit):
    action = await unit.land([1, 2, 3], LandMode.CAS)
    await read_late(stage, unit, action)
    with pytest.raises(OutcomeUnknown):
        await landing.land(runtime, unit.queue, action)
    stage.clock.advance((landing.PERMIT_FOR + SHOWN_FOR).total_seconds())
    await landing.land(runtime, unit.queue, action)
    assert await states(unit) == [LandingState.MISMATCH] * 3
    assert [hold.reason for hold in (await unit.value()).holds] == [HoldReason.LANDING_MISMATCH]
    assert stage.tip() == action.expected_tip.sha
    assert moves(stage) == 1


async def test_the_test_branch_that_our_move_deleted_is_not_put_back_before_its_end_is_known(
    stage, runtime, unit
):
    action = await unit.land([1, 2, 3], LandMode.CAS)
    await read_late(stage, unit, action)
    await lost_branches.restore_branches(runtime)
    assert stage.branches() == {}
    with pytest.raises(OutcomeUnknown):
        await landing.land(runtime, unit.queue, action)
    assert stage.tip() == action.expected_tip.sha
    assert moves(stage) == 1


async def test_a_test_branch_that_goes_after_an_answer_was_lost_may_be_the_work_of_that_update(
    stage, runtime, unit
):
    # The target may have been moved back since, and the branch was read late.
    action = await unit.land([1, 2, 3], LandMode.CAS)
    await stage.fault("reset_before", graphql="updateRefs")
    with pytest.raises(OutcomeUnknown):
        await landing.land(runtime, unit.queue, action)
    gone = {"as": "alice", "act": "delete_branch", "branch": unit.run.branch, "bypass": True}
    await stage.fault("before", graphql="updateRefs", act={"repo": stage.full_name, **gone})
    with pytest.raises(OutcomeUnknown):
        await landing.land(runtime, unit.queue, action)
    assert await states(unit) == [LandingState.UNKNOWN] * 3
    stage.clock.advance((landing.PERMIT_FOR + SHOWN_FOR).total_seconds())
    await landing.land(runtime, unit.queue, action)
    assert await states(unit) == [LandingState.MISMATCH] * 3
    assert [hold.reason for hold in (await unit.value()).holds] == [HoldReason.LANDING_MISMATCH]


async def test_a_test_branch_that_is_gone_when_nothing_was_sent_before_leaves_the_merge_call(
    stage, runtime, unit
):
    action = await unit.land([1, 2, 3], LandMode.CAS)
    gone = {"as": "alice", "act": "delete_branch", "branch": unit.run.branch, "bypass": True}
    await stage.fault("before", graphql="updateRefs", act={"repo": stage.full_name, **gone})
    await landing.land(runtime, unit.queue, action)
    assert await states(unit) == [LandingState.REFUSED] * 3
    assert (await unit.value()).advance_refused_at == runtime.clock.now()
