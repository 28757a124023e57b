"""Calls over HTTP that GitHub delays while their queue is deleted: nothing lands through it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from service.mergequeue.wording.notices import status_marker
from tests.harness.asking import Asker, asker
from tests.harness.world import World

SUBMISSIONS = 3
GONE = (404, "queue_not_found")


@asynccontextmanager
async def submitting(
    world: World, somebody: Asker, number: int
) -> AsyncIterator["asyncio.Task[tuple[int, dict[str, Any]]]"]:
    """A submission that waits for GitHub; in the end GitHub is as fast as before."""
    await world.fault({"path": "*graphql*"}, "hang", s=3)
    task = asyncio.create_task(somebody.post("submitPullRequest", number))
    await world.rest(1)
    assert not task.done()
    yield task
    await task
    await world.sandbox.control.clear_faults({})
    await world.settle()


async def answer_of(call: "asyncio.Task[tuple[int, dict[str, Any]]]") -> tuple[int, str]:
    """The status of an answer and its code or result."""
    status, answer = await call
    return status, answer.get("code") or answer["result"]


@pytest.mark.fault(
    "a queue is deleted under a submission",
    holds="nothing lands through it",
    within="at once",
)
async def test_a_submission_under_way_does_not_land_through_a_deleted_queue(world: World) -> None:
    await world.make_queue()
    number, somebody = await world.open(), await asker(world)
    async with submitting(world, somebody, number) as call:
        await somebody.done("deleteQueue")
        assert await answer_of(call) == GONE
    assert await world.merged() == []
    assert (await somebody.post("getQueue"))[0] == 404


async def test_a_submission_under_way_does_not_pass_by_a_pause_of_the_next_queue(
    world: World,
) -> None:
    await world.make_queue()
    number, somebody = await world.open(), await asker(world)
    async with submitting(world, somebody, number) as call:
        await somebody.done("deleteQueue")
        await somebody.done("createQueue")
        await somebody.done("updateQueue", state="PAUSED", stateReason="release freeze")
        assert await answer_of(call) == GONE
    assert await world.merged() == []
    assert (await somebody.done("getQueue"))["enqueuedPullRequests"] == []


async def test_a_queue_is_deleted_or_its_submissions_are_in_it(world: World) -> None:
    await world.make_queue()
    numbers = [await world.open() for _ in range(SUBMISSIONS)]
    somebody = await asker(world)
    await somebody.done("updateQueue", state="PAUSED")
    submissions = (somebody.post("submitPullRequest", number) for number in numbers)
    (deleted, _), *answers = await asyncio.gather(somebody.post("deleteQueue"), *submissions)
    statuses = {status for status, _ in answers}
    assert (deleted, statuses) in ((200, {404}), (409, {200}))
    await world.settle()
    assert await world.merged() == []


@pytest.mark.fault(
    "a queue is deleted and made again",
    holds="a pull request has one status comment",
    within="-",
)
async def test_a_queue_that_is_made_again_writes_no_second_status_comment(world: World) -> None:
    somebody = await asker(world)
    number = await world.open()
    for _ in range(3):
        await somebody.done("createQueue")
        await somebody.done("updateQueue", state="PAUSED")
        await somebody.done("submitPullRequest", number)
        await world.settle()
        await somebody.done("cancelPullRequest", number)
        await world.settle()
        await somebody.done("deleteQueue")
    texts = [one.body for one in world.repository.issues[number].comments]
    assert [text.partition("\n")[0] for text in texts] == [status_marker("main")]


async def test_a_wait_for_a_change_ends_with_the_deletion_of_the_queue(world: World) -> None:
    await world.make_queue()
    somebody = await asker(world)
    record = await somebody.done("getQueue")
    waiting = asyncio.create_task(
        somebody.post("getQueue", sinceVersion=record["recordVersion"], waitFor=30)
    )
    await world.rest(1)
    await somebody.done("deleteQueue")
    status, answer = await waiting
    assert (status, answer["code"]) == GONE
