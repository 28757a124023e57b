"""Chains of pull requests, each based on the branch of another, without a stack on GitHub."""

from typing import Any

import pytest

from bot.sandbox.acts import seeds
from service.errors import Invalid
from service.mergequeue.operations import pull_requests
from service.vocabulary import SYSTEM
from tests.end_to_end.test_stacks import cancel, head_of, said_on
from tests.harness.asking import asker
from tests.harness.world import REPO, World, WorldOptions

RARELY_SWEPT = {"period_queues_s": 3600, "period_idle_s": 3600}
"""No sweep reads what a story wants read at once."""


async def a_chain(world: World, *files: dict[str, str]) -> list[int]:
    """Open pull requests, each on the branch of the one before."""
    numbers: list[int] = []
    for place, content in enumerate(files):
        head = f"part-{place + 1}"
        base = {"base": f"part-{place}", "from": head_of(world, numbers[-1])} if place else {}
        numbers.append(await world.open(head=head, files=content, **base))
        await world.settle()
    return numbers


@pytest.mark.parametrize("method", ["MERGE_COMMIT", pytest.param("SQUASH", marks=pytest.mark.soak)])
async def test_one_command_on_the_top_tests_a_chain_once_and_lands_it_one_by_one(
    method: str, world: World
) -> None:
    await world.make_queue(merge_method=method)
    chain = await a_chain(world, {"one.txt": "1\n"}, {"two.txt": "2\n"}, {"three.txt": "3\n"})
    await world.comment("/merge", on=chain[-1])
    await world.settle()
    assert await world.merged() == chain
    assert [await world.state(number) for number in chain] == ["MERGED"] * 3
    assert await world.landed_trees() == await world.tested_trees(chain)
    assert len({(await world.entry(number)).verified_by for number in chain}) == 1


async def test_a_branch_that_is_the_base_of_the_next_one_is_deleted_after_its_landing(
    world: World,
) -> None:
    await world.make_queue(delete_branch=True)
    chain = await a_chain(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    await world.comment("/merge", on=chain[-1])
    await world.settle()
    assert await world.merged() == chain
    assert not {"part-1", "part-2"} & set(world.branches())


async def test_a_member_that_fails_keeps_those_above_out(world: World) -> None:
    await world.make_queue()
    chain = await a_chain(world, {"one.txt": "1\n"}, {"b.txt": "2\n"}, {"three.txt": "3\n"})
    other = await world.open(files={"a.txt": "x\n"})
    await world.comment("/merge", on=other)
    await world.settle()
    await world.comment("/merge", on=chain[-1])
    await world.settle()
    assert await world.merged() == [other, chain[0]]
    assert [await world.state(number) for number in chain] == ["MERGED", "FAILED", "NOT_READY"]
    assert f"(`#{chain[1]}` is not in the queue" in said_on(world, chain[2])
    await cancel(world, chain[2:])


async def test_a_pull_request_onto_a_branch_with_a_queue_is_no_member(world: World) -> None:
    await world.act("push", by="alice", branch="release", files={"r.txt": "r\n"})
    await world.act("open", head="release", base="main")
    await world.make_queue()
    asking = await asker(world)
    await asking.done("createQueue", targetBranch="release", requiredStatuses=["unit"])
    number = await world.open(base="release", head="fix", files={"f.txt": "f\n"})
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    assert number not in world.open_pulls()
    assert (await world.value("main")).entries == {}


async def test_two_pull_requests_from_the_branch_below_make_no_chain(world: World) -> None:
    await world.make_queue()
    _, top = await a_chain(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    await world.act("push", by="alice", branch="release", files={"r.txt": "r\n"})
    await world.act("open", head="part-1", base="release")
    await world.comment("/merge", on=top)
    await world.settle()
    assert (await world.value()).entries == {}
    assert "part-1" in said_on(world, top)


@pytest.mark.parametrize("world_options", [WorldOptions(settings=RARELY_SWEPT)])
@pytest.mark.parametrize("members", [3, 4], ids=["right above it", "above one that is still known"])
async def test_a_member_that_was_read_before_the_base_below_it_was_changed_lands(
    world: World, members: int
) -> None:
    await world.make_queue(merge_method="SQUASH")
    files: list[dict[str, str]] = [{f"{place}.txt": "x\n"} for place in range(members)]
    chain = await a_chain(world, *files)
    change = {"method": "PATCH", "path": f"*/pulls/{chain[1]}", "nth": 1}
    await world.fault(change, "hang", s=20.0)
    await world.comment("/merge", on=chain[-1])

    async def has_begun_to_land() -> bool:
        return bool(await world.merged())

    await world.until(has_begun_to_land)
    await world.act("edit", number=chain[-1], title="Read me now")
    await world.settle()
    assert await world.merged() == chain
    assert await world.landed_trees() == await world.tested_trees(chain)


@pytest.mark.parametrize("world_options", [WorldOptions(settings=RARELY_SWEPT)])
async def test_a_change_of_a_base_reads_no_pull_request_outside_the_chain(world: World) -> None:
    await world.make_queue(merge_method="SQUASH")
    await world.act("push", by="alice", branch="release", files={"r.txt": "r\n"})
    asking = await asker(world)
    others = [await world.open(base="release") for _ in range(3)]
    await world.settle()
    for number in others:
        await asking.done("submitPullRequest", number)
    await world.settle()
    unmet = [(await world.entry(number)).unmet[0].value for number in others]
    assert unmet == ["base_mismatch"] * 3
    chain = await a_chain(world, {"one.txt": "1\n"}, {"two.txt": "2\n"}, {"three.txt": "3\n"})
    await world.comment("/merge", on=chain[-1])
    world.sandbox.world.calls.clear()
    await world.settle()
    assert await world.merged() == chain
    assert reads_of(world, others) == []
    assert reads_of(world, chain) != []
    await cancel(world, others)


def reads_of(world: World, numbers: list[int]) -> list[int]:
    """Return which of these pull requests our App has read by a query of their own, in order."""
    variables = [(call["body"] or {}).get("variables", {}) for call in world.sandbox.world.calls]
    return [each["number"] for each in variables if each.get("number") in numbers]


async def test_the_base_changed_by_github_itself_is_no_hindrance(world: World) -> None:
    await world.make_queue(merge_method="SQUASH")
    chain = await a_chain(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    await world.fault({"method": "PATCH", "path": f"*/pulls/{chain[1]}", "nth": 1}, "reset_after")
    await world.comment("/merge", on=chain[-1])
    await world.settle()
    assert await world.merged() == chain


async def test_a_refused_change_of_the_base_leaves_the_member_out_with_the_reason(
    world: World,
) -> None:
    await world.make_queue(merge_method="SQUASH")
    chain = await a_chain(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    await world.fault({"method": "PATCH", "path": f"*/pulls/{chain[1]}"}, "fail_before", status=422)
    await world.comment("/merge", on=chain[-1])
    await world.settle()
    assert await world.merged() == chain[:1]
    assert (await world.entry(chain[1])).unmet[0].value == "base_mismatch"
    await cancel(world, chain[1:])


async def test_a_base_that_its_author_has_changed_meanwhile_stays(world: World) -> None:
    await world.act("push", by="alice", branch="release", files={"r.txt": "r\n"})
    await world.make_queue(merge_method="SQUASH")
    chain = await a_chain(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    late = {"act": "retarget", "as": "bob", "repo": REPO, "number": chain[1], "base": "release"}
    match = {"method": "PUT", "path": f"*/pulls/{chain[0]}/merge", "nth": 1}
    await world.fault(match, "before", act=late)
    await world.comment("/merge", on=chain[-1])
    await world.settle()
    assert await world.merged() == chain[:1]
    moved = world.repository.issues[chain[1]].pull
    assert moved is not None
    assert moved.base_ref == "release"


async def test_a_draft_for_tests_is_submitted_neither_by_comment_nor_by_api(world: World) -> None:
    await world.make_queue()
    own = "headgate/merge/pr-7/8b725970-656f-5f85-bd19-cc055e58a8f2"
    draft = await world.open(head=own, draft=True)
    await world.settle()
    await world.comment("/merge", on=draft)
    await world.settle()
    assert "is a draft that Headgate opened" in said_on(world, draft)
    options, queue = pull_requests.SubmitOptions(), await world.queue()
    with pytest.raises(Invalid, match="Submit those that it names") as refused:
        await pull_requests.submit(world.runtime, queue, draft, options, SYSTEM)
    assert refused.value.code == "own_test_branch"
    start: dict[str, Any] = {"from": head_of(world, draft)}
    above = await world.open(base=own, **start)
    await world.settle()
    await world.comment("/merge", on=above)
    await world.settle()
    assert f"Pull request {draft} is a draft" in said_on(world, above)
    assert not (await world.value()).entries
    await world.act("close", number=above)
    await world.act("close", number=draft)
    await world.act("delete_branch", branch=own)


STALE = {"checks": ["unit"], "approvals": 1, "dismiss_stale": True}


async def an_approved_chain(world: World) -> list[int]:
    chain = await a_chain(world, {"one.txt": "1\n"}, {"two.txt": "2\n"}, {"three.txt": "3\n"})
    for number in chain:
        await world.act("approve", by="alice", number=number)
    await world.settle()
    return chain


async def test_a_chain_that_would_lose_its_approvals_is_refused_before_anything_lands(
    world: World,
) -> None:
    protection = {"required_checks": ["unit"], "protection": {"main": STALE}}
    seeds.set_rules(world.repository, protection)
    await world.make_queue(merge_method="SQUASH")
    chain = await an_approved_chain(world)
    await world.comment("/merge", on=chain[-1])
    await world.settle()
    assert await world.merged() == []
    assert "dismiss stale approvals" in said_on(world, chain[-1])
    await world.comment("/merge", on=chain[0])
    await world.settle()
    assert await world.merged() == chain[:1]


@pytest.mark.parametrize(
    "rule", [{"checks": ["unit"], "approvals": 1}, {"checks": ["unit"], "dismiss_stale": True}]
)
async def test_a_chain_that_keeps_or_needs_no_approvals_lands(
    world: World, rule: dict[str, Any]
) -> None:
    seeds.set_rules(world.repository, {"required_checks": ["unit"], "protection": {"main": rule}})
    await world.make_queue(merge_method="SQUASH")
    chain = await an_approved_chain(world)
    await world.comment("/merge", on=chain[-1])
    await world.settle()
    assert await world.merged() == chain


async def test_an_approval_that_our_own_new_base_dismissed_is_named_with_its_cause(
    world: World,
) -> None:
    await world.make_queue(merge_method="SQUASH")
    chain = await an_approved_chain(world)
    await world.comment("/merge", on=chain[1])

    async def has_entered() -> bool:
        return chain[1] in (await world.value()).entries

    await world.until(has_entered)
    protection = {"required_checks": ["unit"], "protection": {"main": STALE}}
    seeds.set_rules(world.repository, protection)
    await world.settle()
    assert await world.merged() == chain[:1]
    assert "its base was changed from `part-1` to `main`" in world.comment_on(chain[1])
    assert "approve it again" in world.comment_on(chain[1])
    await world.act("approve", by="alice", number=chain[1])
    await world.settle()
    assert await world.merged() == chain[:2]


@pytest.mark.parametrize("delete_branch", [False, True])
async def test_a_command_on_the_child_of_a_merged_one_says_which_base_it_needs(
    world: World, delete_branch: bool
) -> None:
    await world.make_queue(merge_method="SQUASH", delete_branch=delete_branch)
    parent, child = await a_chain(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    await world.comment("/merge", on=parent)
    await world.settle()
    assert await world.merged() == [parent]
    await world.comment("/merge", on=child)
    await world.settle()
    answer = said_on(world, child)
    assert f"`part-1` belonged to `#{parent}`, which was merged into `main`" in answer
    assert "Change the base to `main`, then comment `/merge` again" in answer
    assert "required checks" not in answer
    await world.act("retarget", number=child, base="main")
    await world.comment("/merge", on=child)
    await world.settle()
    assert await world.merged() == [parent, child]


async def test_a_merged_branch_with_required_checks_of_its_own_gets_no_queue(world: World) -> None:
    await world.make_queue(merge_method="SQUASH")
    parent, child = await a_chain(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    rules = {"protection": {"part-1": {"checks": ["unit"]}}, "required_checks": ["unit"]}
    seeds.set_rules(world.repository, rules)
    await world.comment("/merge", on=parent)
    await world.settle()
    await world.comment("/merge", on=child)
    await world.settle()
    assert "belonged to" in said_on(world, child)
    assert await world.merged() == [parent]


async def test_a_branch_that_goes_on_after_its_merge_gets_its_queue(world: World) -> None:
    await world.make_queue()
    parent = await world.open(head="next", files={"one.txt": "1\n"})
    await world.settle()
    await world.act("merge", by="alice", number=parent)
    await world.act("push", by="alice", branch="next", files={"more.txt": "x\n"})
    rules = {"protection": {"next": {"checks": ["unit"]}}, "required_checks": ["unit"]}
    seeds.set_rules(world.repository, rules)
    number = await world.open(base="next", head="topic", files={"two.txt": "2\n"})
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [parent, number]
