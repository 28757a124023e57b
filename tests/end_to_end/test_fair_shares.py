"""A token submits twelve pull requests, and a person comes after them."""

import pytest

from tests.harness import gates
from tests.harness.asking import asker
from tests.harness.world import World, WorldOptions


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI)


async def test_a_person_is_among_the_first_behind_twelve_of_one_token(world: World) -> None:
    flood = [await world.open(title=f"Agent's change {place}") for place in range(12)]
    own = await world.open(title="Fix the login", by="bob")
    await world.settle()
    await world.make_queue(concurrency=1, bisection_concurrency=1)
    agent = await asker(world)
    for number in flood:
        await agent.done("submitPullRequest", number)
    await world.comment("/merge", on=own)
    await world.settle()
    said = await agent.headgate("explain", str(flood[2]))
    assert "your share: 1 of 1 slots" in said
    assert f"Ahead     #{flood[0]}, #{own}, #{flood[1]}" in said
    for number in (flood[0], own, flood[1]):
        await gates.ends(world, number)
    await world.settle()
    merged = [number for number in await world.merged() if number in {*flood, own}]
    assert merged == [flood[0], own, flood[1]]
