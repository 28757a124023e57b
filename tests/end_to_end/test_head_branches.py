"""Branches of landed pull requests: deleted where the queue says so and nothing needs them."""

import pytest

from bot.sandbox.acts import seeds
from bot.sandbox.git import ZERO
from service.vocabulary import MergeMethod
from tests.harness.asking import asker
from tests.harness.world import REPO, World

KEPT = {"name": "kept", "include": ["refs/heads/topic"], "rules": [{"type": "pull_request"}]}


async def landed(world: World, number: int, *, by: str = "bob") -> None:
    await world.comment("/merge", on=number, by=by)
    await world.settle()
    assert number in await world.merged(), world.comment_on(number)


def deletions_of(world: World, how: str) -> list[str]:
    moves = world.sandbox.world.reflog
    return [each.ref for each in moves if each.after == ZERO and each.how == how]


@pytest.mark.parametrize(
    "method",
    [
        MergeMethod.SQUASH,
        *(pytest.param(one, marks=pytest.mark.soak) for one in MergeMethod if one != "SQUASH"),
    ],
)
async def test_the_branch_is_deleted_after_the_landing(world: World, method: MergeMethod):
    await world.make_queue(merge_method=method, delete_branch=True)
    number = await world.open(head="topic/one")
    await landed(world, number)
    assert "topic/one" not in world.branches()
    assert not world.repository.issues[number].open


async def test_no_branch_is_deleted_that_a_landing_has_deleted_already(world: World):
    await world.make_queue(merge_method=MergeMethod.MERGE_COMMIT)
    await landed(world, await world.open())
    calls = world.sandbox.world.calls
    assert [
        one["path"] for one in calls if one["method"] == "DELETE" and "/refs/" in one["path"]
    ] == []
    assert not [name for name in world.branches() if name.startswith("headgate/")]


async def test_without_the_setting_it_stays(world: World):
    await world.make_queue()
    number = await world.open(head="topic")
    await landed(world, number)
    assert "topic" in world.branches()


async def test_it_stays_while_another_open_pull_request_starts_from_it(world: World):
    await world.make_queue(delete_branch=True)
    number = await world.open(head="topic")
    other = await world.open(base="topic", head="further", fresh=True)
    await landed(world, number)
    assert "topic" in world.branches()
    assert world.open_pulls() == [other]


async def test_it_stays_if_another_open_pull_request_comes_from_it(world: World):
    await world.make_queue(delete_branch=True)
    await world.act("push", by="alice", branch="release", files={"r.txt": "r\n"})
    number = await world.open(head="topic")
    other = (await world.act("open", head="topic", base="release"))["number"]
    await landed(world, number)
    assert "topic" in world.branches()
    assert other in world.open_pulls()


@pytest.mark.parametrize(
    "rules",
    [
        {"protection": {"topic": {"deletions": True}}},
        {
            "rulesets": [
                {
                    "name": "kept",
                    "include": ["refs/heads/topic"],
                    "rules": [{"type": "pull_request"}],
                }
            ]
        },
    ],
)
async def test_a_protected_branch_stays_even_if_it_could_be_deleted(world: World, rules):
    await world.make_queue(delete_branch=True)
    number = await world.open(head="topic")
    seeds.set_rules(world.repository, rules)
    await landed(world, number)
    assert "topic" in world.branches()


async def test_the_default_branch_stays(world: World):
    await world.make_queue(delete_branch=True, required_statuses=("unit",))
    number = await world.open(head="topic")
    await world.act("default_branch", by="alice", branch="topic")
    await landed(world, number)
    assert "topic" in world.branches()


async def test_a_branch_with_a_queue_of_its_own_stays(world: World):
    await world.make_queue(delete_branch=True)
    number = await world.open(head="topic")
    asking = await asker(world)
    await asking.done("createQueue", targetBranch="topic")
    await landed(world, number)
    assert "topic" in world.branches()


async def test_the_repository_deletes_branches_itself_if_it_is_set_so(world: World):
    await world.make_queue(delete_branch=True)
    number = await world.open(head="topic")
    seeds.set_rules(world.repository, {"settings": {"delete_head": True}})
    await landed(world, number)
    assert "topic" not in world.branches()
    assert not deletions_of(world, "updateRefs")


async def test_a_fork_keeps_its_branch(world: World):
    await world.make_queue(delete_branch=True)
    number = await world.open(by="dave", fork=True, head="topic")
    await world.settle()
    await landed(world, number, by="alice")
    pull = world.repository.issues[number].pull
    assert pull is not None
    assert pull.head_tip == pull.head_sha


@pytest.mark.parametrize("read", ["*/git/ref/heads/topic", "*/branches/topic/protection"])
async def test_a_branch_that_moved_after_the_landing_stays(world: World, read: str):
    await world.make_queue(delete_branch=True)
    number = await world.open(head="topic")
    push = {"act": "push", "branch": "topic", "files": {"late.txt": "late\n"}}
    act = {"as": "bob", "repo": REPO, **push}
    await world.fault({"method": "GET", "path": read, "nth": 1}, "before", act=act)
    await landed(world, number)
    assert "topic" in world.branches()


async def test_a_failed_deletion_is_tried_again(world: World):
    await world.make_queue(delete_branch=True)
    number = await world.open(head="topic")
    reads = {"method": "GET", "path": "*/branches/topic/protection", "nth": 1}
    await world.fault(reads, "fail_before", status=502)
    await landed(world, number)

    async def is_deleted() -> bool:
        return "topic" not in world.branches()

    await world.until(is_deleted)
    await world.settle()
