"""Attacks by which words would command a queue that their author may not command."""

from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import missed_comments
from tests.adversary.judge import landed_on
from tests.harness.world import World

QUOTED = [
    "> /merge",
    "Do not write\n```\n/merge\n```\nhere",
    "`/merge`",
    "Please /merge this",
    "<!-- \n/merge\n -->",
    "/merge\u200b",
    "\uff0fmerge",
]


async def test_readers_and_strangers_command_nothing_and_are_answered(world: World) -> None:
    """Hurts everybody in line: a passer-by would merge, stop or empty the queue."""
    mine, other = await world.open(), await world.open()
    await world.make_queue(state=QueueState.PAUSED)
    await world.comment("/merge", on=mine)
    await world.settle()
    for who in ("carol", "dave"):
        for command in ("", " cancel", " retry", " -p urgent", " pause x", " resume", " drain x"):
            await world.comment(f"/merge{command}", on=mine, by=who)
        await world.comment("/merge", on=other, by=who)
    await world.comment("/merge resume", on=mine, by="bob")
    await world.settle()
    value = await world.value()
    assert (value.state, list(value.entries)) == (QueueState.PAUSED, [mine])
    assert await world.state(mine) == "PENDING"
    assert set((await world.reactions(mine))[1:]) <= {"-1", "eyes", "+1"}
    assert await world.reactions(other) == ["-1", "-1"]
    said = [one.body for one in world.repository.issues[other].comments]
    assert sum("you need" in body for body in said) == 2
    assert await landed_on(world) == []


async def test_words_that_are_no_command_of_their_author_do_nothing(world: World) -> None:
    """Hurts an author: quoting, editing or showing a command would merge what is not ready."""
    number = await world.open()
    await world.make_queue()
    for body in QUOTED:
        await world.comment(body, on=number)
    made = await world.act("comment", by="bob", number=number, body="Looks fine")
    # GitHub's times have whole seconds: an edit in the second of the comment cannot be told.
    await world.rest(1)
    await world.act("edit", by="bob", number=number, comment=made["comment"], body="/merge")
    await world.act("edit", by="bob", number=number, title="/merge", body="/merge")
    await missed_comments.read_where_queued(world.runtime)
    await world.settle()
    assert list((await world.value()).entries) == []
    assert await landed_on(world) == []


async def test_the_bots_own_words_are_no_command(world: World) -> None:
    """Hurts everybody in line: the bot would answer itself for ever, and merge what it quotes."""
    number = await world.open()
    await world.make_queue(state=QueueState.PAUSED)
    await world.comment("/merge cancle", on=number)
    await world.comment("/merge help", on=number)
    await world.settle()
    before = len(world.repository.issues[number].comments)
    await world.rest(120)
    await world.settle()
    assert len(world.repository.issues[number].comments) == before
    assert list((await world.value()).entries) == []
