"""Stories whose test branches are built by git, over the sandbox's own git server."""

import pytest

from service.vocabulary import MergeMethod
from tests.harness import gates
from tests.harness.world import World, WorldOptions


@pytest.fixture
def world_options() -> WorldOptions:
    """Every test branch is built by git; the first one waits for the mirror."""
    return WorldOptions(settings={"build_method": "git"})


def merge_calls(world: World) -> list[str]:
    """Calls that build a branch by the REST API."""
    calls = world.sandbox.world.calls
    return [call["path"] for call in calls if call["path"].endswith(("/merges", "/git/refs"))]


def pushes(world: World) -> int:
    """How often the service pushed."""
    calls = world.sandbox.world.calls
    return sum(call["path"].endswith("/git-receive-pack") for call in calls)


def ours(world: World) -> list[str]:
    """Branches of ours in the repository."""
    return [name for name in world.branches() if name.startswith("headgate/")]


async def test_a_pull_request_lands_as_git_built_it(world: World) -> None:
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [number]
    assert await world.landed_trees() == await world.tested_trees([number])
    assert (merge_calls(world), pushes(world), ours(world)) == ([], 1, [])


@pytest.mark.parametrize("method", [pytest.param("SQUASH", marks=pytest.mark.soak), "MERGE_COMMIT"])
async def test_a_batch_lands_from_one_push(method: str, world: World) -> None:
    numbers = [await world.open() for _ in range(3)]
    await world.settle()
    await world.make_queue(batch=True, batching_min_size=3, merge_method=method)
    for number in numbers:
        await world.comment("/merge", on=number)
    await world.settle()
    assert [number for number in await world.merged() if number in numbers] == numbers
    assert (merge_calls(world), pushes(world), ours(world)) == ([], 1, [])


async def test_a_conflict_is_confirmed_by_github_and_names_its_files(world: World) -> None:
    one = await world.open(files={"shared.txt": "1\n", "own.txt": "1\n"})
    two = await world.open(files={"shared.txt": "2\n", "other.txt": "2\n"})
    await world.settle()
    await world.make_queue(batch=False)
    await world.comment("/merge", on=one)
    await world.comment("/merge", on=two)
    await world.settle()
    assert await world.state(one) == "MERGED"
    assert await world.state(two) != "MERGED"
    assert "conflict" in world.comment_on(two).lower()
    assert merge_calls(world) != []
    assert ours(world) == []


async def test_github_confirms_a_conflict_once_however_many_are_behind(world: World) -> None:
    await world.make_queue(concurrency=6, merge_method=MergeMethod.MERGE_COMMIT)
    one, two = [await world.open(files={"shared.txt": words}) for words in ("one\n", "two\n")]
    behind = [await world.open() for _ in range(4)]
    await world.settle()
    for number in (one, two, *behind):
        await world.comment("/merge", on=number)
    await world.settle()
    states = [await world.state(number) for number in (one, two, *behind)]
    assert states == ["MERGED", "FAILED", *(["MERGED"] * 4)]
    # Once with the first, unless it has landed, and once with the target after it has.
    asked = [path.rpartition("/")[2] for path in merge_calls(world)]
    assert asked.count("refs") in (1, 2)


class TestALineThatIsNeverEmpty:
    """Pull requests arrive while others land."""

    @pytest.fixture
    def world_options(self) -> WorldOptions:
        """CI that ends when the story says so."""
        return WorldOptions(ci=gates.CI, settings={"build_method": "git"})

    @pytest.mark.parametrize(("count", "at_once"), [(7, 3), (10, 10)])
    async def test_every_tested_commit_becomes_the_target_itself(
        self, count: int, at_once: int, world: World
    ) -> None:
        await world.make_queue(concurrency=at_once, merge_method=MergeMethod.MERGE_COMMIT)
        numbers = [await world.open() for _ in range(count)]
        for number in numbers:
            await world.comment("/merge", on=number)
        tested = [(await gates.ends(world, number)).sha for number in numbers]
        await world.settle()
        assert {await world.state(number) for number in numbers} == {"MERGED"}
        moves = [one for one in world.sandbox.world.reflog if one.ref == "refs/heads/main"]
        assert [one.after for one in moves][-len(tested) :] == tested
