"""What people read when a submission ends: how the cause was found, and what was proved."""

import re

import pytest

from bot.sandbox.acts import seeds
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import queues as queue_operations
from service.mergequeue.operations.pull_requests import Requester
from service.vocabulary import SYSTEM
from tests.harness import gates
from tests.harness.world import World, WorldOptions


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI)


async def submitted(world: World, count: int) -> list[int]:
    """Pull requests whose own checks have passed, asked to merge; their numbers."""
    numbers = [await world.open() for _ in range(count)]
    await world.settle()
    for number in numbers:
        await world.comment("/merge", on=number)
    return numbers


def farewell_on(world: World, number: int) -> str:
    """Our newest comment on a pull request."""
    return world.repository.issues[number].comments[-1].body


async def test_who_merged_reads_which_tree_landed_and_how_long_it_took_without_pauses(
    world: World,
) -> None:
    await world.make_queue(state=QueueState.PAUSED)
    (number,) = await submitted(world, 1)
    await world.settle()
    await world.rest(130)
    queue, by = await world.queue(), Requester(SYSTEM)
    await queue_operations.set_state(world.runtime, queue, QueueState.RUNNING, None, by)
    await gates.ends(world, number)
    await world.settle()
    shown = world.comment_on(number)
    (tree,) = await world.landed_trees()
    assert f"Proof: its tree `{tree[:7]}` is the tree that was tested." in shown
    assert f"/octo/widgets/tree/{world.repository.git.branch('main')})" in shown
    assert "The queue was paused for another 2" in shown
    assert re.search(r"In the queue for (\d+ s|\d min)[.:]", shown) is not None


async def test_who_was_found_in_a_batch_reads_who_passed_without_it(world: World) -> None:
    await world.make_queue(
        batch=True, batching_min_size=3, batching_max_wait_time_minutes=60, confirm_failures="OFF"
    )
    first, culprit, last = await submitted(world, 3)
    await gates.fails(world, first, culprit, last)
    await gates.ends(world, first)
    await gates.fails(world, first, culprit)
    await gates.ends(world, last)
    await world.settle()
    found = (
        f"The batch of `#{first}`, `#{culprit}` and `#{last}` failed, and bisection found this PR. "
        f"Without it, `#{first}` passed."
    )
    assert found in world.comment_on(culprit)
    assert farewell_on(world, culprit).endswith("**`unit` failed**. See the status comment above.")


async def test_who_fails_twice_alone_reads_so(world: World) -> None:
    await world.make_queue()
    (number,) = await submitted(world, 1)
    await gates.fails(world, number)
    await gates.fails(world, number)
    await world.settle()
    told = world.comment_on(number)
    assert "It failed in 2 test runs." in told
    assert "All PRs ahead passed" not in told


async def test_where_the_status_comment_cannot_be_edited_the_new_comment_says_everything(
    world: World,
) -> None:
    await world.make_queue(confirm_failures="OFF")
    (number,) = await submitted(world, 1)
    await world.settle()
    lost = {"status": 403, "message": "Resource not accessible by integration"}
    await world.fault({"method": "PATCH", "path": "*/issues/comments/*"}, "refuse", **lost)
    await gates.fails(world, number)
    await world.rest(60)
    told = farewell_on(world, number)
    assert "See the status comment above" not in told
    assert "- ❌ `unit` failed" in told
    assert "Fix it, push, then comment `/merge` again." in told
    world.sandbox.world.faults.clear()
    await world.rest(20 * 60)
    assert farewell_on(world, number) == told


async def test_a_list_does_not_call_a_pull_request_free_of_conflicts_before_github_does(
    world: World,
) -> None:
    await world.make_queue()
    seeds.set_knobs(world.sandbox.world, {"mergeable_delay_s": 300})
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.rest(120)
    text = world.comment_on(number)
    assert "○ GitHub has computed whether it merges cleanly" in text
    assert "✓ there is no conflict" not in text
    assert "✓ the PR is marked ready for review" in text
