"""Runs that are started on a chance: optimistic units, urgent ones, hedges, screens."""

import pytest

from service.mergequeue.engine.config import BatchSizing, ConfirmFailures, Hedging
from service.mergequeue.engine.inputs import EstimateChanged
from service.mergequeue.engine.states import QueueState, RunKind
from service.mergequeue.operations import queues, turn
from service.mergequeue.operations.pull_requests import Requester
from service.vocabulary import SYSTEM, MergeMethod
from tests.harness import gates
from tests.harness.world import World, WorldOptions


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI)


async def opened(world: World, count: int) -> list[int]:
    """So many pull requests whose own checks have passed."""
    numbers = [await world.open() for _ in range(count)]
    await world.settle()
    return numbers


async def submit(world: World, *numbers: int) -> None:
    """Ask for them one after the other."""
    for number in numbers:
        await world.comment("/merge", on=number)


@pytest.mark.parametrize("method", ["SQUASH", pytest.param("MERGE_COMMIT", marks=pytest.mark.soak)])
async def test_a_pass_on_top_of_a_failure_clears_it_and_both_land_as_one_unit(
    method: str, world: World
) -> None:
    failed, cleared, behind = await opened(world, 3)
    await world.make_queue(
        merge_method=MergeMethod(method), can_optimistically_merge=True, pending_failure_depth=1
    )
    await submit(world, failed, cleared, behind)
    await gates.fails(world, failed)
    await world.settle()
    assert f"Tests of `#{cleared}` together with this PR" in world.comment_on(failed)
    run = await gates.ends(world, cleared)
    await world.settle()
    assert await world.landed_trees() == [step.tree for step in run.steps]
    assert (await world.entry(failed)).verified_by == run.id
    await gates.ends(world, behind)
    await world.settle()
    assert [await world.state(one) for one in (failed, cleared, behind)] == ["MERGED"] * 3


async def test_an_urgent_one_goes_ahead_of_a_batch_that_is_then_tested_on_top_of_it(
    world: World,
) -> None:
    one, two, urgent = await opened(world, 3)
    await world.make_queue(batch=True, batching_min_size=2)
    await submit(world, one, two)
    await gates.under_test(world, one, two)
    await world.comment("/merge --priority=urgent", on=urgent, by="alice")
    late = await gates.under_test(world, urgent)
    again = await gates.under_test(world, one, two)
    assert (late.run.base, [member.pr for member in again.run.base]) == ((), [urgent])
    assert f"because `#{urgent}` went ahead as urgent" in world.comment_on(one)
    await gates.ends(world, one, two)
    await gates.ends(world, urgent)
    await world.settle()
    assert await world.merged() == [urgent, one, two]


async def test_a_hedge_takes_over_with_its_result_when_what_it_left_out_fails(
    world: World,
) -> None:
    risky, behind = await opened(world, 2)
    await world.make_queue(hedging=Hedging.SPARE_SLOTS, confirm_failures=ConfirmFailures.BISECTION)
    await submit(world, risky, behind)
    await gates.under_test(world, risky)
    await gates.under_test(world, behind)
    queue = await world.queue()
    await turn.take(world.runtime, queue.id, [EstimateChanged(risky, 0.9)])
    hedge = await gates.under_test(world, behind, kind=RunKind.HEDGE)
    assert hedge.run.base == ()
    await gates.ends(world, behind, kind=RunKind.HEDGE)
    await gates.fails(world, risky)
    await world.settle()
    assert await world.merged() == [behind]
    assert (await world.entry(behind)).verified_by == hedge.run.id
    assert await world.state(risky) == "FAILED"


async def test_a_risky_one_is_tried_alone_and_delays_nobody(world: World) -> None:
    risky, quick = await opened(world, 2)
    await world.make_queue(
        state=QueueState.PAUSED, batch=True, batch_sizing=BatchSizing.ADAPTIVE, concurrency=2
    )
    await submit(world, risky, quick)
    await world.settle()
    queue = await world.queue()
    await turn.take(world.runtime, queue.id, [EstimateChanged(risky, 0.5)])
    await queues.set_state(world.runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
    await gates.ends(world, quick)
    await world.settle()
    assert await world.merged() == [quick]
    assert world.check_on(risky).startswith("Testing alone first")
    await gates.ends(world, risky, kind=RunKind.SCREEN)
    await gates.ends(world, risky, kind=RunKind.MAIN)
    await world.settle()
    assert await world.merged() == [quick, risky]
