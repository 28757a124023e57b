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


async def test_commands_on_what_a_person_merged_say_so_and_do_not_ask_to_queue_it(
    world: World,
) -> None:
    number = await world.open(fresh=True)
    await world.settle()
    await world.act("merge", by="alice", number=number)
    for command in ("/merge status", "/merge retry"):
        await world.comment(command, on=number)
        await world.settle()
    texts = [one.body for one in world.repository.issues[number].comments]
    assert "This PR is already merged." in texts[1]
    assert "This PR is already merged, so there was nothing to restart." in texts[3]
