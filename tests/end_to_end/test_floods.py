"""Too many commands: who is refused, what they are told, and what still works."""

import asyncio
import re

import pytest

from service.mergequeue.engine.states import QueueState
from tests.harness.world import World

A_MINUTE = 10
"""Commands of one person within a minute."""


@pytest.fixture
async def flooded(world: World) -> int:
    """A pull request on which alice has sent as many commands as are counted in a minute."""
    await world.make_queue(state=QueueState.PAUSED)
    number = await world.open()
    await world.settle()
    await at_once(world, "/merge help", number, A_MINUTE)
    return number


async def at_once(world: World, text: str, number: int, times: int) -> None:
    """Let alice send so many comments in one moment, however busy the machine is."""
    comments = (world.comment(text, on=number, by="alice") for _ in range(times))
    await asyncio.gather(*comments)


def refusals(world: World, number: int) -> list[str]:
    """Our replies about too many commands."""
    bodies = [one.body for one in world.repository.issues[number].comments]
    return [body for body in bodies if "Too many commands" in body]


async def test_a_maintainer_resumes_the_queue_in_a_flood(world: World, flooded: int) -> None:
    await world.comment("/merge resume", on=flooded, by="alice")
    await world.settle()
    assert (await world.value()).state is QueueState.RUNNING
    assert refusals(world, flooded) == []


async def test_a_flood_gets_one_sentence_and_the_next_flood_another(
    world: World, flooded: int
) -> None:
    await at_once(world, "/merge status", flooded, 2)
    await world.settle()
    (told,) = refusals(world, flooded)
    wait = re.search(r"Try again in (\d+) s\.", told)
    assert wait is not None
    await world.rest(int(wait[1]) + 60)
    await at_once(world, "/merge help", flooded, A_MINUTE + 1)
    await world.settle()
    assert len(refusals(world, flooded)) == 2
