"""Stacks and chains that people or GitHub disturb while they are tested or merged."""

from collections.abc import Awaitable, Callable

import pytest

from bot.sandbox.acts import merging, seeds
from bot.sandbox.acts.merging import MergeCall
from bot.sandbox.records import Actor
from service.mergequeue.engine.reasons import Reason
from tests.end_to_end.test_chains import a_chain
from tests.end_to_end.test_stacks import a_stack, cancel, merge_calls
from tests.harness.world import World

THREE = ({"one.txt": "1\n"}, {"two.txt": "2\n"}, {"three.txt": "3\n"})
MADE = {"stack": a_stack, "chain": a_chain}


async def under_test(world: World, numbers: list[int]) -> None:
    """Submit them by one command on the highest, and wait until a run tests them."""
    await world.make_queue(merge_method="SQUASH")
    await world.comment("/merge", on=numbers[-1])

    async def is_tested() -> bool:
        return bool((await world.value()).runs)

    await world.until(is_tested)


async def under_way(world: World, numbers: list[int]) -> None:
    """Submit them, and wait until GitHub has accepted the request to merge them."""
    await under_test(world, numbers)

    async def is_requested() -> bool:
        return bool(world.repository.async_merges)

    await world.until(is_requested)


async def push(world: World, number: int, place: int) -> None:
    await world.act("push", branch=f"part-{place + 1}", files={"more.txt": "x\n"})


async def close(world: World, number: int, place: int) -> None:
    await world.act("close", number=number)


async def cancelled(world: World, number: int, place: int) -> None:
    await world.comment("/merge cancel", on=number)


@pytest.mark.parametrize(
    ("kind", "act"),
    [
        ("stack", cancelled),
        pytest.param("chain", cancelled, marks=pytest.mark.soak),
        ("chain", push),
        pytest.param("chain", close, marks=pytest.mark.soak),
    ],
)
async def test_only_those_below_a_member_that_leaves_are_merged(
    kind: str, act: Callable[[World, int, int], Awaitable[None]], world: World
) -> None:
    members = await MADE[kind](world, *THREE)
    await under_test(world, members)
    await act(world, members[1], 1)
    await world.settle()
    assert await world.merged() == members[:1]
    assert await world.landed_trees() == await world.tested_trees(members[:1])
    assert (await world.value()).holds == ()
    await cancel(world, members[1:])


async def test_a_cancel_while_github_merges_comes_too_late(world: World) -> None:
    seeds.set_knobs(world.sandbox.world, {"async_merge_delay_s": 20.0})
    stack = await a_stack(world, *THREE)
    await under_way(world, stack)
    for number in stack:
        await world.comment("/merge cancel", on=number)
    await world.settle()
    assert await world.merged() == stack
    assert [await world.state(number) for number in stack] == ["MERGED"] * 3


async def test_a_member_closed_while_github_merges_leaves_those_below_to_land(
    world: World,
) -> None:
    seeds.set_knobs(world.sandbox.world, {"async_merge_delay_s": 20.0})
    stack = await a_stack(world, *THREE)
    await under_way(world, stack)
    await world.act("close", number=stack[1])
    await world.settle()
    assert (await world.merged(), merge_calls(world)) == (stack[:1], [stack[2], stack[0]])
    assert await world.landed_trees() == await world.tested_trees(stack[:1])
    await cancel(world, stack[1:])


@pytest.mark.breaks_promises
async def test_a_push_to_a_lower_member_while_github_merges_is_found_by_the_proof(
    world: World,
) -> None:
    seeds.set_knobs(world.sandbox.world, {"async_merge_delay_s": 20.0})
    stack = await a_stack(world, *THREE)
    await under_way(world, stack)
    await push(world, stack[0], 0)
    await world.settle()
    assert await world.merged() == stack
    (hold,) = (await world.value()).holds
    assert hold.reason.value == "landing_mismatch"
    assert "other_tree" in (hold.evidence or "")
    ends = [await world.entry(number) for number in stack]
    assert [(end.state.value, end.reason.value) for end in ends] == [("MERGED", "landed")] * 3


async def test_a_merge_that_github_does_not_finish_holds_the_queue_until_it_does(
    world: World,
) -> None:
    seeds.set_knobs(world.sandbox.world, {"async_merge_delay_s": 400.0})
    stack = await a_stack(world, *THREE)
    await under_way(world, stack)

    async def is_held() -> bool:
        return bool((await world.value()).holds)

    await world.until(is_held)
    (hold,) = (await world.value()).holds
    assert hold.reason.value == "landing_unresolved"

    async def is_free() -> bool:
        return not (await world.value()).holds

    await world.until(is_free)
    assert await world.merged() == stack
    assert merge_calls(world) == stack[-1:]
    assert await world.landed_trees() == await world.tested_trees(stack)


async def test_a_lower_member_that_a_person_merges_meanwhile_lands_once(world: World) -> None:
    seeds.set_knobs(world.sandbox.world, {"async_merge_delay_s": 20.0})
    stack = await a_stack(world, *THREE)
    await under_way(world, stack)
    seeds.set_knobs(world.sandbox.world, {"async_merge_delay_s": 5.0})
    pull = world.repository.issues[stack[0]].pull
    assert pull is not None
    alice = world.sandbox.world.account("alice")
    assert alice is not None
    merging.submit(pull, Actor(alice), MergeCall("squash"), "direct_merge")
    await world.settle()
    assert await world.merged() == stack
    assert [(await world.entry(number)).reason for number in stack] == [Reason.LANDED] * 3
    assert await world.landed_trees() == await world.tested_trees(stack)


async def test_a_chain_in_a_batch_lands_with_the_others(world: World) -> None:
    await world.make_queue(merge_method="SQUASH", batch=True, batching_max_wait_time_minutes=1)
    chain = await a_chain(world, *THREE)
    others = [await world.open(files={f"{name}.txt": "x\n"}) for name in "op"]
    for number in (*others, chain[-1]):
        await world.comment("/merge", on=number)
    await world.settle()
    landed = await world.merged()
    assert sorted(landed) == sorted([*chain, *others])
    assert await world.landed_trees() == await world.tested_trees(landed)
