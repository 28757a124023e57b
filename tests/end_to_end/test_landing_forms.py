"""Test branches in the form in which they land, for each merge method, built by git and by REST."""

from typing import Any

import pytest

from bot.sandbox.acts import pull_states
from bot.sandbox.git import NewCommit
from tests.end_to_end.test_chains import a_chain
from tests.end_to_end.test_stacks import head_of
from tests.harness.world import World, WorldOptions

BY_GIT = {"settings": {"build_method": "git"}}
NEW_COMMITS = ("SQUASH", "REBASE")


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    """Built by the REST API, unless the story says otherwise."""
    return WorldOptions(**getattr(request, "param", {}))


def on_main(world: World, path: str) -> bool:
    """Whether `main` has a file."""
    tip = str(world.repository.git.branch("main"))
    return world.repository.git.objects.item_at(tip, path) is not None


async def on_one_line(world: World) -> list[int]:
    """A chain whose members change the same line."""
    return await a_chain(world, {"README.md": "# A\n"}, {"README.md": "# B\n"})


@pytest.mark.parametrize("world_options", [BY_GIT], indirect=True)
@pytest.mark.parametrize("method", NEW_COMMITS)
async def test_a_chain_that_will_conflict_is_refused_with_every_way_out(
    world: World, method: str
) -> None:
    await world.make_queue(merge_method=method)
    await world.settle()
    lower, upper = await on_one_line(world)
    head = head_of(world, lower)
    await world.comment("/merge", on=upper)
    await world.settle()
    said = world.comment_on(upper)
    assert f"`#{upper}` builds on `#{lower}`, which lands as new commits." in said
    assert "conflicts with `main` in `README.md`" in said
    assert f"git rebase --onto origin/main {head}" in said
    assert "mergeMethod=MERGE_COMMIT" in said
    assert await world.merged() == []
    await world.comment("/merge", on=lower)
    await world.settle()
    assert await world.merged() == [lower]


@pytest.mark.parametrize("method", NEW_COMMITS)
async def test_a_conflict_that_only_the_build_finds_lands_no_half(
    world: World, method: str
) -> None:
    await world.make_queue(merge_method=method)
    lower, upper = await on_one_line(world)
    await world.comment("/merge", on=upper)
    await world.settle()
    assert await world.merged() == [lower]
    assert await world.landed_trees() == await world.tested_trees([lower])
    assert await world.state(upper) == "FAILED"
    assert "git rebase --onto origin/main origin/part-1" in world.comment_on(upper)


@pytest.mark.parametrize("method", [*NEW_COMMITS, "MERGE_COMMIT"])
async def test_a_child_that_takes_back_what_it_merged_of_the_target_lands_no_untested_half(
    world: World, method: str
) -> None:
    """`a.txt` and `b.txt` fail together; the child merges `b.txt` from `main` and removes it."""
    await world.make_queue(merge_method=method)
    lower = await world.open(head="part-1", files={"README.md": "# A\n", "a.txt": "x\n"})
    start = {"base": "part-1", "from": head_of(world, lower)}
    upper = await world.open(head="part-2", files={"README.md": "# B\n"}, **start)
    await world.settle()
    await world.act("push", by="alice", branch="main", files={"b.txt": "x\n"}, bypass=True)
    git = world.repository.git
    bob = pull_states.signature(world.sandbox.world, world.sandbox.world.add_account("bob"))
    top = git.objects.a_commit(head_of(world, upper))
    tree = git.objects.tree_with(top.tree, {"b.txt": None})
    parents = (top.sha, str(git.branch("main")))
    merged = git.objects.write_commit(NewCommit(tree, parents, bob, bob, "Merge main"))
    await world.act("force_push", number=upper, to=merged.sha)
    await world.settle()
    await world.comment("/merge", on=upper)
    await world.settle()
    assert not (on_main(world, "a.txt") and on_main(world, "b.txt"))
    for number in (lower, upper):
        if await world.state(number) == "NOT_READY":
            await world.comment("/merge cancel", on=number)


@pytest.mark.parametrize("method", NEW_COMMITS)
async def test_what_is_not_in_the_target_is_not_called_merged(world: World, method: str) -> None:
    """The second one contains the first and takes it back; it lands before it."""
    await world.make_queue(merge_method=method)
    inner = await world.open(head="inner", files={"wanted.txt": "w"})
    start = {"from": head_of(world, inner)}
    await world.act("push", branch="outer", files={"wanted.txt": None, "o.txt": "o"}, **start)
    outer = (await world.act("open", head="outer"))["number"]
    await world.settle()
    await world.comment("/merge", on=outer)
    await world.comment("/merge", on=inner)
    await world.settle()
    assert sorted(await world.merged()) == [inner, outer]
    assert on_main(world, "wanted.txt")
    assert await world.state(inner) == "MERGED"


@pytest.mark.parametrize("method", NEW_COMMITS)
async def test_two_pull_requests_of_one_head_both_land_as_the_provider_shows(
    world: World, method: str
) -> None:
    await world.make_queue(merge_method=method)
    first = await world.open(head="one", files={"same.txt": "x"})
    await world.act("push", branch="other", **{"from": head_of(world, first)})
    second = (await world.act("open", head="other"))["number"]
    await world.settle()
    for number in (first, second):
        await world.comment("/merge", on=number)
    await world.settle()
    assert sorted(await world.merged()) == [first, second]


@pytest.mark.parametrize("world_options", [BY_GIT], indirect=True)
@pytest.mark.parametrize("method", NEW_COMMITS)
@pytest.mark.parametrize("kind", ["chain", "batch"])
async def test_tested_commits_become_the_branch_in_one_update(
    world: World, method: str, kind: str
) -> None:
    size: dict[str, Any] = {"batch": True, "batching_min_size": 2} if kind == "batch" else {}
    await world.make_queue(merge_method=method, land_tested_commits=True, **size)
    await world.settle()
    if kind == "chain":
        numbers = await on_one_line(world)
    else:
        numbers = [await world.open(files={f"{name}.txt": "x\n"}) for name in "cd"]
        await world.settle()
    before = len(moves_of_main(world))
    for number in numbers if kind == "batch" else numbers[-1:]:
        await world.comment("/merge", on=number)
    await world.settle()
    assert [await world.state(number) for number in numbers] == ["MERGED", "MERGED"]
    assert len(moves_of_main(world)) - before == 1
    run = await world.entry(numbers[-1])
    assert run.landed_sha == world.repository.git.branch("main")
    assert all(not world.repository.issues[number].open for number in numbers)
    said = [one.body for one in world.repository.issues[numbers[-1]].comments]
    assert any("GitHub does not show it as merged, so it is closed here" in one for one in said)


def moves_of_main(world: World) -> list[str]:
    """What `main` was set to, in order."""
    moves = world.sandbox.world.reflog
    return [one.after for one in moves if one.ref == "refs/heads/main"]
