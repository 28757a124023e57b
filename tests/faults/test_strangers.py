"""Forks: a late word of a maintainer never lets in what was pushed after it was written."""

import pytest

from service.mergequeue.store import consents
from service.mergequeue.store.pull_requests import PullRequestHead
from service.vocabulary import Sha
from tests.harness.world import World, WorldOptions


@pytest.fixture
def world_options() -> WorldOptions:
    """A world without sweeps, so that deliveries alone tell what happened."""
    return WorldOptions(settings={"period_queues_s": 3600, "period_redelivery_s": 3600})


@pytest.mark.fault(
    "a comment comes late, after a push",
    holds="it does not let the new head in",
    within="2 min",
)
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
    pull = world.repository.issues[number].pull
    assert pull is not None
    head = PullRequestHead(queue.repository_id, number, Sha(pull.head_sha))
    assert await world.runtime.store.read(consents.find, head, "main") is None
    assert await world.merged() == []


async def test_a_comment_in_time_lets_in_the_head_that_it_was_written_for(world: World) -> None:
    await world.make_queue(merge_method="SQUASH")
    number = await world.open(by="dave", fork=True)
    await world.settle()
    await world.comment("/merge", on=number, by="alice")
    await world.settle()
    assert await world.merged() == [number]
