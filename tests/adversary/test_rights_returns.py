"""Attacks by which a head leaves and comes back around the comment of a person."""

import pytest

from tests.adversary.judge import files_on
from tests.adversary.test_rights_consent import head_of, of_fork, push_evil
from tests.harness.world import World

RETURNS = ("by force", "by a plain push")


async def _away(world: World, way: str) -> tuple[int, str]:
    """A fork's pull request whose evil head was shown and is replaced unheard; and that head."""
    number = await of_fork(world)
    good = head_of(world, number)
    await push_evil(world, number)
    await world.settle()
    await world.rest(5)
    evil = head_of(world, number)
    await world.fault({"event": "pull_request"}, "drop")
    if way == "by force":
        await world.act("force_push", by="dave", number=number, files={"good.txt": "x\n"})
    else:
        await world.act("force_push", by="dave", number=number, to=good)
    await world.rest(5)
    return number, evil


async def _not_let_in(world: World) -> None:
    await world.rest(200)
    await world.settle()
    assert await world.merged() == []
    assert "evil.txt" not in await files_on(world)


@pytest.mark.parametrize("way", RETURNS)
async def test_a_head_that_comes_back_after_the_comment_is_not_let_in(
    world: World, way: str
) -> None:
    """Hurts everybody who builds main: a change of a fork would run with the secrets of CI."""
    await world.make_queue()
    number, evil = await _away(world, way)
    await world.fault({"event": "issue_comment", "nth": 1}, "delay", s=60)
    await world.comment("/merge", on=number)
    await world.rest(2)
    await world.act("force_push", by="dave", number=number, to=evil)
    await _not_let_in(world)
    (answer,) = [
        one.body for one in world.repository.issues[number].comments if "do not prove" in one.body
    ]
    assert f"`/merge --sha={evil}`" in answer


@pytest.mark.parametrize("way", RETURNS)
async def test_a_head_that_came_back_before_the_comment_is_let_in(world: World, way: str) -> None:
    """Hurts everybody who builds main: a change of a fork would run with the secrets of CI."""
    await world.make_queue()
    number, evil = await _away(world, way)
    await world.act("force_push", by="dave", number=number, to=evil)
    await world.rest(5)
    await world.comment("/merge", on=number)
    await world.settle()
    if way == "by a plain push":  # nothing says when: the first answer names the command
        assert await world.merged() == []
        await world.rest(5)
        await world.comment("/merge", on=number)
        await world.settle()
    assert await world.merged() == [number]


async def test_a_head_that_was_pushed_by_force_is_let_in_by_a_later_comment(world: World) -> None:
    """Hurts everybody who builds main: a change of a fork would run with the secrets of CI."""
    await world.make_queue()
    number = await of_fork(world)
    await world.act("force_push", by="dave", number=number, files={"other.txt": "x\n"})
    await world.settle()
    await world.rest(5)
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [number]
