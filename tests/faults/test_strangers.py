"""Forks: a late word of a maintainer never lets in what was pushed after it was written."""

import pytest

from service.mergequeue.store import pull_requests
from tests.harness.world import World, WorldOptions


@pytest.fixture
def world_options() -> WorldOptions:
    """A world without sweeps, so that deliveries alone tell what happened."""
    return WorldOptions(settings={"period_queues_s": 3600, "period_redelivery_s": 3600})


async def test_a_comment_delivered_late_does_not_let_in_a_head_that_was_pushed_meanwhile(
    world: World,
) -> None:
    await world.make_queue(merge_method="SQUASH")
    number = await world.open(by="dave", fork=True)
    await world.settle()
    await world.fault({"event": "issue_comment", "nth": 1}, "delay", s=60)
    await world.comment("/merge", on=number, by="alice")
    await world.act("push", by="dave", number=number, files={"evil.txt": "x\n"})
    await world.rest(120)
    queue = await world.queue()
    let_in = await world.runtime.store.read(
        pull_requests.fork_authorization, queue.repository_id, number
    )
    assert let_in is None
    assert await world.merged() == []


async def test_a_comment_in_time_lets_in_the_head_that_it_was_written_for(world: World) -> None:
    await world.make_queue(merge_method="SQUASH")
    number = await world.open(by="dave", fork=True)
    await world.settle()
    await world.comment("/merge", on=number, by="alice")
    await world.settle()
    assert await world.merged() == [number]
