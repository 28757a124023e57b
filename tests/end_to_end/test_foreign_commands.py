"""Commands of the queue that was here before: one answer, or the same command of ours."""

from datetime import timedelta

from service.process.store import retention
from tests.harness.world import World

ANSWER = (
    "`bors r+` is a command of `bors`, and this repository's queue is Headgate now: "
    "comment `/merge`."
)


def said(world: World, number: int) -> list[str]:
    """What our App has written on a pull request."""
    bot = world.sandbox.app.bot
    return [one.body for one in world.repository.issues[number].comments if one.author is bot]


async def test_the_first_on_a_pull_request_is_answered_with_the_command_to_use(
    world: World,
) -> None:
    await world.make_queue()
    first, second = await world.open(), await world.open()
    for number in (first, first, second):
        await world.comment("bors r+", on=number)
        await world.settle()
    await world.comment("@mergifyio dequeue", on=first)
    await world.settle()
    for number in (first, second):
        (answer,) = said(world, number)
        assert ANSWER in answer
        assert await world.reactions(number) == []
    third = await world.open()
    await world.comment("/trunk cancel", on=third)
    await world.settle()
    assert "comment `/merge cancel`." in said(world, third)[0]
    assert await world.merged() == []


async def test_it_is_said_once_however_old_the_answer_is(world: World) -> None:
    await world.make_queue()
    number = await world.open()
    await world.comment("bors r+", on=number)
    await world.settle()
    later = world.clock.now() + timedelta(days=100)
    while await world.runtime.store.run(retention.prune, later, retention.RetentionLimits()):
        pass
    await world.comment("bors r+", on=number)
    await world.settle()
    assert len(said(world, number)) == 1


async def test_nothing_is_said_where_the_other_queue_may_be_at_work(world: World) -> None:
    number = await world.open()
    await world.comment("bors r+", on=number)
    await world.settle()
    await world.make_queue(commands_enabled=False)
    await world.comment("bors r+", on=number)
    await world.settle()
    assert said(world, number) == []


async def test_with_the_setting_they_work_as_ours_with_the_same_rights(world: World) -> None:
    await world.make_queue(foreign_commands_enabled=True)
    number = await world.open()
    await world.settle()
    await world.comment("bors try", on=number)
    await world.comment("@mergifyio queue", on=number, by="dave")
    await world.settle()
    assert await world.merged() == []
    assert any("`bors try` is a command of `bors`" in one for one in said(world, number))
    await world.comment("@mergifyio queue", on=number)
    await world.settle()
    assert await world.merged() == [number]
