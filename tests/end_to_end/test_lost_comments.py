"""Commands whose webhooks never arrive: sweeps read them, once and in their order."""

import pytest

from service.mergequeue.operations import missed_comments
from tests.harness.world import World, WorldOptions

PERIOD_S = 20
SLOW_CI = """\
triggers: {push: [main, "headgate/merge/**"], pull_request: true}
checks:
  - {name: unit, seconds: 60}
"""
"""Nothing lands before a later command arrives, however early the sweep reads the first one."""


@pytest.fixture
def world_options() -> WorldOptions:
    return WorldOptions(settings={"period_comments_s": PERIOD_S, "period_redelivery_s": 3600})


async def test_a_command_is_carried_out_with_no_webhook_at_all(world: World) -> None:
    await world.make_queue()
    one = await world.open()
    await world.settle()
    await world.fault({}, "drop", nth=None)
    await world.comment("/merge", on=one)

    async def has_merged() -> bool:
        return await world.merged() == [one]

    await world.until(has_merged)
    assert (await world.reactions(one))[0] == "+1"


async def test_a_command_that_arrived_is_not_carried_out_again(world: World) -> None:
    await world.make_queue()
    one = await world.open()
    await world.comment("/merge", on=one)
    await world.settle()
    await world.rest(2 * PERIOD_S)
    await world.settle()
    assert await world.merged() == [one]
    asked = [each for each in world.sandbox.world.calls if each["path"].endswith("/permission")]
    assert len(asked) == 1, "the command was judged more than once"


async def test_a_lost_submission_does_not_undo_a_later_cancel(world: World) -> None:
    await world.make_queue()
    one = await world.open(files={".sandbox/ci.yml": SLOW_CI})
    await world.fault({"event": "issue_comment"}, "drop")
    await world.comment("/merge", on=one)
    await world.rest(2)
    await world.comment("/merge cancel", on=one)
    await world.settle()
    await world.rest(2 * PERIOD_S)
    await world.settle()
    assert await world.merged() == []


async def test_a_comment_edited_into_a_command_is_none(world: World) -> None:
    await world.make_queue()
    one = await world.open()
    await world.comment("hello", on=one)
    await world.settle()
    await world.rest(2)
    comment = world.repository.issues[one].comments[0]
    await world.act("edit", number=one, comment=comment.id, body="/merge")
    await world.rest(2 * PERIOD_S)
    await world.settle()
    assert await world.merged() == []


async def test_looking_again_while_nobody_comments_costs_nothing(world: World) -> None:
    await world.make_queue()
    await world.settle()
    await world.rest(4 * PERIOD_S)
    looks = [one for one in world.sandbox.world.calls if one["path"].endswith("/issues/comments")]
    assert len(looks) >= 3
    assert {one["status"] for one in looks[1:]} == {304}


async def test_a_command_in_a_review_is_carried_out_with_no_webhook_at_all(world: World) -> None:
    await world.make_queue()
    one = await world.open()
    await world.settle()
    await world.fault({}, "drop", nth=None)
    await world.act("approve", by="alice", number=one, body="Well done.\n\n/merge")

    async def has_merged() -> bool:
        return await world.merged() == [one]

    await world.until(has_merged)


async def test_a_command_in_a_review_that_arrived_is_not_carried_out_again(world: World) -> None:
    await world.make_queue()
    one = await world.open()
    await world.act("approve", by="alice", number=one, body="/merge")
    await world.settle()
    await world.rest(2 * PERIOD_S)
    await world.settle()
    assert await world.merged() == [one]
    asked = [each for each in world.sandbox.world.calls if each["path"].endswith("/permission")]
    assert len(asked) == 1, "the command was judged more than once"


async def test_a_command_in_a_review_in_the_second_of_a_sweep_is_found(world: World) -> None:
    await world.make_queue()
    one = await world.open()
    await world.settle()
    await world.fault({}, "drop", nth=None)
    await world.act("approve", by="alice", number=one, body="Well done.")
    await missed_comments.read_where_queued(world.runtime)
    await world.act("approve", by="alice", number=one, body="/merge")

    async def has_merged() -> bool:
        return await world.merged() == [one]

    await world.until(has_merged)


async def test_a_review_edited_into_a_command_is_none(world: World) -> None:
    await world.make_queue()
    one = await world.open()
    await world.act("approve", by="alice", number=one, body="Well done.")
    await world.settle()
    await world.rest(2)
    await world.act("edit_review", by="bob", number=one, body="/merge")
    await world.rest(2 * PERIOD_S)
    await world.settle()
    assert await world.merged() == []


async def test_reviews_are_read_only_when_a_pull_request_changed(world: World) -> None:
    await world.make_queue()
    await world.open()
    await world.settle()
    await world.rest(5 * PERIOD_S)
    world.sandbox.world.calls.clear()
    await world.rest(4 * PERIOD_S)
    calls = list(world.sandbox.world.calls)
    looks = [one for one in calls if one["method"] == "GET" and one["path"].endswith("/pulls")]
    assert len(looks) >= 3
    assert {one["status"] for one in looks} == {304}
    assert not [one for one in calls if one["path"].endswith("/graphql")]
