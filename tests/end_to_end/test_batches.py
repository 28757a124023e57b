"""Batches as people see them: landed as tested, searched for a culprit, broken up by people."""

from typing import Any

import pytest

from service.mergequeue.engine.states import RunKind
from service.vocabulary import MergeMethod
from tests.harness import gates
from tests.harness.asking import asker
from tests.harness.world import World, WorldOptions


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI)


async def batch_of(world: World, count: int, **settings: Any) -> list[int]:
    """So many pull requests, asked to merge, in a queue whose batches are as large."""
    numbers = [await world.open(title=f"Change {place}") for place in range(1, count + 1)]
    await world.settle()
    await world.make_queue(**{"batch": True, "batching_min_size": count, **settings})
    for number in numbers:
        await world.comment("/merge", on=number)
    return numbers


def ours(world: World) -> list[str]:
    """Branches of ours in the repository."""
    return [name for name in world.branches() if name.startswith("headgate/")]


@pytest.mark.parametrize(("method", "moves"), [("SQUASH", 3), ("MERGE_COMMIT", 1)])
async def test_a_batch_lands_every_tested_prefix_and_each_comment_says_so(
    method: str, moves: int, world: World
) -> None:
    numbers = await batch_of(world, 3, merge_method=MergeMethod(method))
    before = len(moves_of_main(world))
    run = await gates.ends(world, *numbers)
    await world.settle()
    # A draft whose commits are on `main` counts as merged there, as at the provider.
    assert [number for number in await world.merged() if number in numbers] == numbers
    assert await world.landed_trees() == [step.tree for step in run.steps]
    assert len(moves_of_main(world)) - before == moves
    for number in numbers:
        others = [f"`#{other}`" for other in numbers if other != number]
        assert world.check_on(number).startswith("Merged into main as ")
        assert "### 🟣 Merged into `main` as `" in world.comment_on(number)
        assert "together started on top of `main`" in world.comment_on(number)
        assert all(other in world.comment_on(number) for other in others)
    assert ours(world) == []


def moves_of_main(world: World) -> list[str]:
    """What `main` was set to, in order."""
    moves = world.sandbox.world.reflog
    return [one.after for one in moves if one.ref == "refs/heads/main"]


async def test_only_the_culprit_of_a_batch_fails_and_the_search_is_explained(
    world: World,
) -> None:
    first, culprit, last = await batch_of(world, 3, concurrency=2)
    ask = await asker(world)
    await gates.fails(world, first, culprit, last)
    probes = [await gates.under_test(world, first), await gates.under_test(world, first, culprit)]
    explained = await ask.done("explainPullRequest", last)
    found = {one["code"]: one for one in explained["conditions"]}
    assert found["bisection_done"]["met"] is False
    assert f"among #{first}, #{culprit} and #{last}" in found["bisection_done"]["text"]
    await gates.ends(world, first)
    await gates.fails(world, first, culprit)
    confirmation = await gates.under_test(world, first, culprit)
    await world.settle()
    assert confirmation.run.kind is RunKind.CONFIRMATION
    assert await world.merged() == [first]
    await gates.fails(world, first, culprit)
    await gates.ends(world, last)
    await world.settle()
    entry = await world.entry(culprit)
    assert await world.merged() == [first, last]
    assert (entry.state.value, entry.reason.value) == ("FAILED", "required_status_failed")
    assert [named.name for named in entry.detail.checks] == ["unit"]
    assert world.check_on(culprit) == "unit failed · removed from the queue (failure)"
    assert len({probe.run.branch for probe in probes}) == 2
    assert ours(world) == []


async def test_a_search_that_opens_later_than_the_failure_is_told_to_all_whom_it_is_about(
    world: World,
) -> None:
    ahead = await batch_of(world, 4, batching_min_size=2, concurrency=2)
    behind = [ahead.pop(), ahead.pop()][::-1]
    await gates.fails(world, *behind)
    await world.settle()
    for number in behind:
        assert "ahead are still being tested" in world.comment_on(number)
    await gates.ends(world, *ahead)
    await gates.under_test(world, behind[0])
    await world.settle()
    for number in behind:
        assert "### 🔎 A batch of 2 failed, splitting it" in world.comment_on(number)
        assert "still being tested" not in world.comment_on(number)
    for kind in (RunKind.PROBE, RunKind.CONFIRMATION):
        await gates.ends(world, behind[0], conclusion="failure", kind=kind)
    await gates.under_test(world, behind[1])
    await world.settle()
    assert "### 🧪 Testing again" in world.comment_on(behind[1])


async def test_members_that_conflict_are_parted_and_the_later_is_told(world: World) -> None:
    files = [{"README.md": "# One\n"}, {"other.txt": "x\n"}, {"README.md": "# Three\n"}]
    one, other, three = [await world.open(files=each) for each in files]
    await world.settle()
    await world.make_queue(batch=True, batching_min_size=3)
    for number in (one, other, three):
        await world.comment("/merge", on=number)
    await gates.under_test(world, one, other)
    await world.settle()
    assert f"conflicts with #{one}" in world.check_on(three)
    await gates.ends(world, one, other)
    await world.settle()
    entry = await world.entry(three)
    assert await world.merged() == [one, other]
    assert (entry.state.value, entry.reason.value) == ("FAILED", "conflict_target")


async def test_a_push_to_a_member_takes_it_out_and_the_others_are_tested_anew(
    world: World,
) -> None:
    first, pushed, last = await batch_of(world, 3)
    await gates.under_test(world, first, pushed, last)
    await world.act("push", number=pushed, files={"more.txt": "x\n"})
    await gates.ends(world, first, last)
    await world.settle()
    assert await world.merged() == [first, last]
    entry = await world.entry(pushed)
    assert (entry.state.value, entry.reason.value) == ("CANCELLED", "head_changed")
    assert f"because `#{pushed}` left the batch" in world.comment_on(first)


async def test_a_member_cancelled_between_two_positions_keeps_those_before_it(
    world: World,
) -> None:
    first, second, third = await batch_of(world, 3)
    merge = {"method": "PUT", "path": f"*/pulls/{second}/merge"}
    await world.fault(merge, "fail_before", status=503)
    await gates.ends(world, first, second, third)

    async def is_half_way() -> bool:
        landing = (await world.value()).landing
        return await world.merged() == [first] and landing is not None

    async def is_cancelled() -> bool:
        return await world.state(second) == "CANCELLED"

    await world.until(is_half_way)
    await world.comment("/merge cancel", on=second)
    await world.until(is_cancelled)
    world.sandbox.world.faults.clear()
    # The target stands on a part of the batch, so it is tested first.
    await gates.ends(world)
    await gates.ends(world, third)
    await world.settle()
    assert await world.merged() == [first, third]
    assert await world.state(second) == "CANCELLED"


async def test_the_pull_request_of_a_fork_travels_in_a_batch_once_a_maintainer_lets_it_in(
    world: World,
) -> None:
    own = await world.open()
    forked = await world.open(by="dave", fork=True)
    await world.settle()
    await world.make_queue(batch=True, batching_min_size=2)
    await world.comment("/merge", on=own)
    await world.comment("/merge", on=forked, by="alice")
    run = await gates.ends(world, own, forked)
    await world.settle()
    assert await world.merged() == [own, forked]
    assert await world.landed_trees() == [step.tree for step in run.steps]
