"""Native stacks of pull requests, as people see them: one command, landed from the bottom up."""

import pytest

from bot.sandbox.acts import seeds
from tests.harness.world import REPO, World


async def a_stack(world: World, *files: dict[str, str]) -> list[int]:
    """Open pull requests, each on the branch of the one before, and make them a native stack."""
    numbers: list[int] = []
    for place, content in enumerate(files):
        head = f"part-{place + 1}"
        base = {"base": f"part-{place}", "from": head_of(world, numbers[-1])} if place else {}
        numbers.append(await world.open(head=head, files=content, **base))
    await world.settle()
    await world.act("stack", numbers=numbers)
    await world.settle()
    return numbers


def head_of(world: World, number: int) -> str:
    """The head commit of a pull request."""
    pull = world.repository.issues[number].pull
    assert pull is not None
    return pull.head_sha


def said_on(world: World, number: int) -> str:
    """All comments on a pull request."""
    return "\n".join(one.body for one in world.repository.issues[number].comments)


@pytest.mark.parametrize(
    "method",
    ["MERGE_COMMIT", *(pytest.param(one, marks=pytest.mark.soak) for one in ("SQUASH", "REBASE"))],
)
async def test_one_command_on_the_top_lands_a_stack_from_the_bottom_up(
    method: str, world: World
) -> None:
    await world.make_queue(merge_method=method)
    stack = await a_stack(world, {"one.txt": "1\n"}, {"two.txt": "2\n"}, {"three.txt": "3\n"})
    await world.comment("/merge", on=stack[-1])
    await world.settle()
    assert await world.merged() == stack
    assert [await world.state(number) for number in stack] == ["MERGED"] * 3
    assert await world.landed_trees() == await world.tested_trees(stack)
    assert len({(await world.entry(number)).verified_by for number in stack}) == 1
    assert merge_calls(world) == stack[-1:]


async def test_the_answer_names_the_members_and_each_comment_what_lands_first(
    world: World,
) -> None:
    await world.make_queue()
    bottom, middle, top = await a_stack(
        world, {"one.txt": "1\n"}, {"two.txt": "2\n"}, {"three.txt": "3\n"}
    )
    await world.act("draft", number=bottom)
    await world.comment("/merge", on=top)
    await world.settle()
    assert f"together, from the bottom up: `#{bottom}`, `#{middle}` and `#{top}`." in said_on(
        world, top
    )
    named = f"`#{bottom}` and `#{middle}`, which are below it in its stack, have been merged"
    assert named in said_on(world, top)
    assert f"`#{bottom}`, which is below it in its stack, has been merged" in said_on(world, middle)
    assert await world.merged() == []
    await cancel(world, [top, middle, bottom])


async def test_one_that_fails_keeps_those_above_out_and_is_named_by_them(world: World) -> None:
    await world.make_queue()
    stack = await a_stack(world, {"one.txt": "1\n"}, {"b.txt": "2\n"}, {"three.txt": "3\n"})
    # Its own CI passed without this file; on the target branch both fail together.
    other = await world.open(files={"a.txt": "x\n"})
    await world.comment("/merge", on=other)
    await world.settle()
    await world.comment("/merge", on=stack[-1])
    await world.settle()
    assert await world.merged() == [other, stack[0]]
    assert [await world.state(number) for number in stack] == ["MERGED", "FAILED", "NOT_READY"]
    left = f"(`#{stack[1]}` is not in the queue: comment `/merge` here again to submit the stack)"
    assert left in said_on(world, stack[2])
    await cancel(world, stack[2:])


async def test_a_push_to_the_lower_one_while_it_is_tested_lands_neither(world: World) -> None:
    await world.make_queue(merge_method="SQUASH")
    bottom, top = await a_stack(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    await world.comment("/merge", on=top)

    async def is_tested() -> bool:
        return bool((await world.value()).runs)

    await world.until(is_tested)
    await world.act("push", branch="part-1", files={"more.txt": "3\n"})
    await world.settle()
    assert await world.merged() == []
    assert (await world.entry(bottom)).reason.value == "head_changed"
    assert await world.state(top) == "NOT_READY"
    await cancel(world, [top])


async def test_a_stack_whose_merge_is_refused_lands_one_by_one(world: World) -> None:
    await world.make_queue(merge_method="SQUASH")
    stack = await a_stack(world, {"one.txt": "1\n"}, {"two.txt": "2\n"}, {"three.txt": "3\n"})
    whole = {"method": "PUT", "path": f"/repos/{REPO}/pulls/{stack[-1]}/merge-async", "nth": 1}
    await world.fault(whole, "fail_before", status=422)
    await world.comment("/merge", on=stack[-1])
    await world.settle()
    assert await world.merged() == stack
    assert merge_calls(world) == [stack[-1], *stack]
    assert await world.landed_trees() == await world.tested_trees(stack)


async def test_members_with_texts_of_the_queue_land_one_by_one(world: World) -> None:
    await world.make_queue(merge_method="SQUASH", commit_title="Change {{ number }}")
    stack = await a_stack(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    await world.comment("/merge", on=stack[-1])
    await world.settle()
    assert merge_calls(world) == stack
    assert await world.landed_trees() == await world.tested_trees(stack)


async def test_one_that_is_cancelled_is_named_by_those_above(world: World) -> None:
    await world.make_queue()
    bottom, top = await a_stack(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    await world.act("draft", number=bottom)
    await world.comment("/merge", on=top)
    await world.settle()
    assert "is not in the queue" not in said_on(world, top)
    await world.comment("/merge cancel", on=bottom)
    await world.settle()
    assert f"(`#{bottom}` is not in the queue" in said_on(world, top)
    await world.act("draft", number=bottom, draft=False)
    await world.comment("/merge", on=top)
    await world.settle()
    assert await world.merged() == [bottom, top]


async def test_the_bottom_lands_alone_and_nothing_above_with_it(world: World) -> None:
    await world.make_queue(merge_method="SQUASH")
    bottom, top = await a_stack(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    await world.comment("/merge", on=bottom)
    await world.settle()
    assert await world.merged() == [bottom]
    assert top in world.open_pulls()
    assert await world.landed_trees() == await world.tested_trees([bottom])


async def test_a_lost_answer_to_the_merge_is_read_back_and_lands_once(world: World) -> None:
    await world.make_queue(merge_method="SQUASH")
    stack = await a_stack(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    lost = {"method": "PUT", "path": f"/repos/{REPO}/pulls/{stack[0]}/merge-async", "nth": 1}
    await world.fault(lost, "reset_after")
    await world.comment("/merge", on=stack[-1])
    await world.settle()
    assert await world.merged() == stack
    assert await world.landed_trees() == await world.tested_trees(stack)


async def test_a_slow_merge_is_waited_for_and_lands_once(world: World) -> None:
    await world.make_queue(merge_method="SQUASH")
    seeds.set_knobs(world.sandbox.world, {"async_merge_delay_s": 90.0})
    stack = await a_stack(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    await world.comment("/merge", on=stack[0])
    await world.settle()
    assert await world.merged() == stack[:1]
    assert (await world.value()).holds == ()


async def test_a_member_that_was_pushed_to_needs_a_new_command(world: World) -> None:
    await world.make_queue()
    bottom, top = await a_stack(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    await world.act("draft", number=bottom)
    await world.comment("/merge", on=top)
    await world.settle()
    await world.act("push", branch="part-2", files={"more.txt": "3\n"})
    await world.settle()
    assert (await world.entry(top)).reason.value == "head_changed"
    await cancel(world, [bottom])


async def test_a_closed_member_below_is_named_and_nothing_is_submitted(world: World) -> None:
    await world.make_queue()
    bottom, top = await a_stack(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    await world.act("close", number=bottom)
    await world.comment("/merge", on=top)
    await world.settle()
    assert f"Pull request {bottom}, which is below it in its stack, is closed" in said_on(
        world, top
    )
    assert (await world.value()).entries == {}


def merge_calls(world: World) -> list[int]:
    """The pull requests whose merge was requested, in order."""
    calls = [(str(one["method"]), str(one["path"])) for one in world.sandbox.world.calls]
    return [
        int(path.split("/")[-2])
        for method, path in calls
        if method == "PUT" and path.endswith("/merge-async")
    ]


async def cancel(world: World, numbers: list[int]) -> None:
    """Leave nothing in the queue."""
    for number in numbers:
        await world.comment("/merge cancel", on=number)
    await world.settle()
    assert not (await world.value()).entries.keys() & set(numbers)
