"""From a comment to a landed, proved commit."""

from tests.harness.world import World


async def test_a_comment_makes_the_queue_and_lands_the_pull_request(world: World) -> None:
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.state(number) == "MERGED"
    assert await world.merged() == [number]


async def test_a_green_head_that_contains_the_tip_lands_without_another_test(
    world: World,
) -> None:
    number = await world.open(fresh=True)
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    entry = await world.entry(number)
    assert (entry.state.value, entry.reason.value) == ("MERGED", "landed_directly")
