"""Attacks that would keep the line waiting by taking back what a pull request had."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bot.sandbox.acts import seeds
from tests.harness.world import CI, World, WorldOptions

Act = Callable[[World, int], Awaitable[Any]]

REVIEWED = {
    "name": "reviewed",
    "rules": [
        {
            "type": "pull_request",
            "parameters": {
                "required_approving_review_count": 1,
                "required_review_thread_resolution": True,
            },
        }
    ],
}

SOON_S = 60.0
"""Less than any grace of an entry that is not ready."""


@pytest.fixture
def world_options() -> WorldOptions:
    return WorldOptions(ci=CI.replace("seconds: 3", "seconds: 20"))


async def approved(world: World) -> int:
    number = await world.open()
    await world.act("approve", by="alice", number=number)
    await world.settle()
    return number


async def requested(world: World, number: int) -> None:
    await world.act("request_changes", by="alice", number=number, body="No.")


async def discussed(world: World, number: int) -> None:
    await world.act("discuss", by="carol", number=number, body="Why?")


async def lost(world: World, number: int) -> None:
    """Changes are requested, and the delivery is lost: a sweep finds it."""
    await world.fault({"event": "pull_request_review", "nth": 1}, "drop")
    await requested(world, number)


async def approve(world: World, number: int) -> None:
    await world.act("approve", by="alice", number=number)


async def resolve(world: World, number: int) -> None:
    await world.act("resolve", number=number)


@pytest.mark.parametrize(
    ("withdraw", "give_back", "within_s"),
    [
        pytest.param(requested, approve, SOON_S, id="changes requested"),
        pytest.param(discussed, resolve, SOON_S, id="a conversation opened"),
        pytest.param(lost, approve, SOON_S + 60, id="changes requested, delivery lost"),
    ],
)
async def test_what_is_taken_back_is_out_of_the_way_at_once_and_comes_back(
    world: World, withdraw: Act, give_back: Act, within_s: float
) -> None:
    """Hurts everybody behind it: the line would stand still."""
    seeds.set_rules(world.repository, {"rulesets": [REVIEWED]})
    await world.make_queue()
    first, second = await approved(world), await approved(world)
    await world.comment("/merge", on=first)
    await world.comment("/merge", on=second)

    async def are_tested() -> bool:
        entries = (await world.value()).entries
        states = [entries[one].state.value for one in (first, second) if one in entries]
        return states == ["TESTING", "TESTING"]

    await world.until(are_tested)
    await withdraw(world, first)

    async def has_landed() -> bool:
        return await world.merged() == [second]

    await world.until(has_landed, within_s=within_s)
    assert await world.state(first) == "NOT_READY"
    await give_back(world, first)
    await world.settle()
    assert await world.merged() == [second, first]
