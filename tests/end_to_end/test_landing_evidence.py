"""Signed evidence: every form of a landing is proved on a fresh clone, by git alone."""

from pathlib import Path

import pytest

from tests.end_to_end.test_batches import batch_of
from tests.end_to_end.test_chains import a_chain
from tests.end_to_end.test_stacks import a_stack
from tests.harness.signed_landings import files_of
from tests.harness.world import World, WorldOptions

METHODS = ("MERGE_COMMIT", "SQUASH", "REBASE")
BY_GIT = {"settings": {"build_method": "git"}}


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    """As usual, unless the story says otherwise."""
    return WorldOptions(**getattr(request, "param", {}))


async def everything_proved(world: World, folder: Path, numbers: list[int]) -> None:
    """All of it landed, each with evidence, and the whole range is proved."""
    assert set(await world.merged()) >= set(numbers)
    files = await files_of(world, folder)
    assert len(files.lines()) == len(numbers)
    assert files.verify(f"{world.start}..main") == 0


@pytest.mark.parametrize("method", METHODS)
async def test_single_landings_are_proved(world: World, tmp_path: Path, method: str) -> None:
    await world.make_queue(merge_method=method)
    numbers = [await world.open(), await world.open(fresh=True), await world.open()]
    for number in numbers:
        await world.settle()
        await world.comment("/merge", on=number)
    await world.settle()
    await everything_proved(world, tmp_path, numbers)


@pytest.mark.parametrize("method", METHODS)
async def test_a_batch_is_proved_member_by_member(
    world: World, tmp_path: Path, method: str
) -> None:
    numbers = await batch_of(world, 3, merge_method=method)
    await world.settle()
    await everything_proved(world, tmp_path, numbers)


@pytest.mark.parametrize("method", METHODS)
async def test_a_chain_is_proved_member_by_member(
    world: World, tmp_path: Path, method: str
) -> None:
    await world.make_queue(merge_method=method)
    numbers = await a_chain(world, {"one.txt": "1\n"}, {"two.txt": "2\n"}, {"three.txt": "3\n"})
    await world.comment("/merge", on=numbers[-1])
    await world.settle()
    assert [await world.state(number) for number in numbers] == ["MERGED"] * 3
    await everything_proved(world, tmp_path, numbers)


@pytest.mark.parametrize("method", METHODS)
async def test_a_native_stack_is_proved_member_by_member(
    world: World, tmp_path: Path, method: str
) -> None:
    await world.make_queue(merge_method=method)
    numbers = await a_stack(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    await world.comment("/merge", on=numbers[-1])
    await world.settle()
    await everything_proved(world, tmp_path, numbers)


@pytest.mark.parametrize("world_options", [BY_GIT], indirect=True)
@pytest.mark.parametrize("method", ["SQUASH", "REBASE"])
async def test_tested_commits_that_become_the_branch_are_proved(
    world: World, tmp_path: Path, method: str
) -> None:
    numbers = await batch_of(world, 3, merge_method=method, land_tested_commits=True)
    await world.settle()
    files = await files_of(world, tmp_path)
    assert len(files.lines()) == len(numbers)
    assert files.verify(f"{world.start}..main") == 0
