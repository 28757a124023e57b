"""What goes wrong around a unit of several: between two of its landings, and in its search."""

from typing import Any

import pytest

from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.states import RunKind
from service.vocabulary import MergeMethod
from tests.harness import gates
from tests.harness.asking import asker
from tests.harness.world import REPO, World, WorldOptions

STRANGER = {"branch": "main", "files": {"stranger.txt": "x\n"}, "bypass": True}
PUSH = {"act": "push", "as": "alice", "repo": REPO, **STRANGER}
"""What somebody else does to `main` while ours is about to land."""


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so, and a sweep of checks that comes soon."""
    return WorldOptions(ci=gates.CI, settings={"period_run_checks_s": 10})


async def a_batch(world: World, count: int, **settings: Any) -> list[int]:
    """So many pull requests, asked to merge, in a queue whose batches are as large."""
    numbers = [await world.open() for _ in range(count)]
    await world.settle()
    await world.make_queue(**{"batch": True, "batching_min_size": count, **settings})
    for number in numbers:
        await world.comment("/merge", on=number)
    return numbers


@pytest.mark.fault(
    "a foreign push between two landings of a unit",
    holds="the rest is tested anew, in its places",
    within="20 min",
)
async def test_a_push_between_two_positions_is_tested_before_the_rest_restarts(
    world: World,
) -> None:
    first, second, third = await a_batch(world, 3)
    # The push comes with the failing call itself, never between a later judgement and its call.
    call = {"method": "PUT", "path": f"*/pulls/{second}/merge", "nth": 1}
    await world.fault(call, "before", act=PUSH)
    await world.fault(call, "fail_before", status=503)
    await gates.ends(world, first, second, third)
    tip = await gates.under_test(world)
    assert tip.run.base_tip.sha == world.repository.git.branch("main")
    await gates.ends(world)
    await gates.ends(world, second, third)
    assert await world.landings_refused() == ["The target branch has moved."]
    await world.settle()
    assert await world.merged() == [first, second, third]
    assert (await world.value()).holds == ()
    assert "because `main` moved outside the queue" in world.comment_on(second)


@pytest.mark.fault(
    "a foreign push before the move of a whole unit",
    holds="nothing of it lands untested",
    within="20 min",
)
async def test_a_push_before_the_move_of_a_whole_unit_lets_nothing_of_it_land(
    world: World,
) -> None:
    numbers = await a_batch(world, 2, merge_method=MergeMethod.MERGE_COMMIT)
    await world.fault({"graphql": "updateRefs", "nth": 1}, "before", act=PUSH)
    await gates.ends(world, *numbers)
    run = await gates.ends(world, *numbers)
    for why in await world.landings_refused():
        assert "not at the expected" in why
    await world.settle()
    assert await world.landed_trees() == [step.tree for step in run.steps]
    assert (await world.value()).holds == ()


@pytest.mark.fault(
    "every delivery of a search for the culprit is lost",
    holds="the search ends by sweeps",
    within="15 min",
)
async def test_a_search_whose_deliveries_are_all_lost_ends_by_the_sweeps(world: World) -> None:
    first, culprit = await a_batch(world, 2)
    await gates.fails(world, first, culprit)
    await gates.under_test(world, first)
    await world.fault({}, "drop")
    await gates.ends(world, first)
    await gates.fails(world, first, culprit)

    async def is_over() -> bool:
        states = [await world.state(number) for number in (first, culprit)]
        return states == ["MERGED", "FAILED"]

    await world.until(is_over)


@pytest.mark.fault(
    "somebody deletes a test branch, twice",
    holds="put back, then made anew",
    within="15 min",
)
async def test_the_branch_of_a_probe_is_put_back_once_and_then_made_anew(world: World) -> None:
    first, culprit = await a_batch(world, 2)
    await gates.fails(world, first, culprit)
    probe = await gates.under_test(world, first)
    lost = str(probe.run.branch)
    await world.act("delete_branch", by="alice", branch=lost, bypass=True)

    async def is_back() -> bool:
        return lost in world.branches()

    await world.until(is_back)
    await world.settle()
    await world.act("delete_branch", by="alice", branch=lost, bypass=True)

    async def is_replaced() -> bool:
        return probe.run.id not in (await world.value()).runs

    await world.until(is_replaced)
    again = await gates.under_test(world, first)
    assert (again.run.kind, again.run.id != probe.run.id) == (RunKind.PROBE, True)
    await gates.ends(world, first)
    await gates.fails(world, first, culprit)
    await world.settle()
    assert await world.merged() == [first]
    assert await world.state(culprit) == "FAILED"


@pytest.mark.fault(
    "impacted targets grow while a landing waits",
    holds="it does not land before a new test",
    within="15 min",
)
async def test_targets_that_grow_while_a_landing_waits_keep_it_from_landing(
    world: World,
) -> None:
    ask = await asker(world)
    await world.make_queue(mode=Mode.PARALLEL)
    numbers = []
    for target in ("//api", "//web"):
        numbers.append(await world.open())
        await world.settle()
        await ask.done("setImpactedTargets", numbers[-1], impactedTargets=[target])
        await world.comment("/merge", on=numbers[-1])
    other, grown = numbers
    early = await gates.under_test(world, grown)
    await gates.ends(world, other)
    await world.settle()
    match = {"method": "PUT", "path": f"*/pulls/{grown}/merge"}
    await world.fault(match, "fail_before", status=503)
    await gates.ends(world, grown)

    async def is_tried() -> bool:
        calls = world.sandbox.world.calls
        return any(str(call["path"]).endswith(f"/pulls/{grown}/merge") for call in calls)

    async def is_refused() -> bool:
        return await world.landings_refused() != []

    await world.until(is_tried)
    await ask.done("setImpactedTargets", grown, impactedTargets=["//web", "//api"])
    await world.until(is_refused)
    world.sandbox.world.faults.clear()
    late = await gates.under_test(world, grown)
    assert late.run.id != early.run.id
    (why,) = await world.landings_refused()
    assert why == "What it was tested on is not what it would land on."
    assert await world.merged() == [other]
    await gates.ends(world, grown)
    await world.settle()
    assert await world.merged() == [other, grown]
    assert await world.landed_trees() == await world.tested_trees([other, grown])
