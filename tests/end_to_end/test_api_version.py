"""The whole way of a pull request by the newer version of GitHub's REST API."""

import pytest

from tests.harness.world import World, WorldOptions


@pytest.fixture
def world_options() -> WorldOptions:
    return WorldOptions(settings={"github_api_version": "2026-03-10"})


async def test_a_batch_lands_and_is_proved(world: World) -> None:
    await world.make_queue(batch=True, batching_min_size=2)
    numbers = [await world.open(), await world.open()]
    for number in numbers:
        await world.comment("/merge", on=number)
    await world.settle()
    assert sorted(await world.merged()) == numbers
    assert all("Merged" in world.comment_on(number) for number in numbers)
