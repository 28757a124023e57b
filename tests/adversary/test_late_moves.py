"""Attacks by moves that come after the tests: another base, a commit by hand, another reporter."""

from pathlib import Path

import pytest

from tests.adversary.judge import files_on
from tests.adversary.test_reporters import OTHER, TARGET, UNIT, commit_under_test, of, post, to_main
from tests.adversary.test_untested import opened
from tests.harness.signed_landings import files_of
from tests.harness.world import REPO, World, WorldOptions

MERGE = {"method": "PUT", "path": "*/pulls/*/merge"}


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    found: WorldOptions = getattr(request, "param", WorldOptions())
    return found


async def another_branch(world: World) -> str:
    """The branch `release` beside `main`, which has no queue."""
    files = {"release.txt": "r\n"}
    await world.act("push", by="alice", branch="release", files=files, bypass=True)
    await world.settle()
    return str(world.repository.git.branch("release"))


@pytest.mark.breaks_promises
@pytest.mark.parametrize("method", ["SQUASH", "REBASE"])
async def test_a_base_changed_at_the_moment_of_the_merge_is_never_called_landed(
    world: World, tmp_path: Path, method: str
) -> None:
    """Hurts release: the author takes the tested pull request there with our rights."""
    await another_branch(world)
    await world.make_queue(merge_method=method)
    number = await opened(world, "a.txt")
    late = {"act": "retarget", "as": "bob", "repo": REPO, "number": number, "base": "release"}
    await world.fault({**MERGE, "nth": 1}, "before", act=late)
    await world.comment("/merge", on=number)
    await world.settle()
    entry = await world.entry(number)
    holds = (await world.value()).holds
    files = await files_of(world, tmp_path)
    assert "a.txt" in await files_on(world, "release")
    assert "a.txt" not in await files_on(world)
    assert (entry.state.value, entry.reason.value) == ("CANCELLED", "merged_into_other_branch")
    assert [hold.reason.value for hold in holds] == ["landing_mismatch"]
    assert f"Pull request {number} was merged into release" in (holds[0].evidence or "")
    assert files.lines() == []


async def test_a_commit_by_hand_is_not_proved_by_a_pull_request_of_it(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hurts who trusts the range: alice pushes, then has a pull request of the same commit land."""
    await world.make_queue()
    number = await opened(world, "a.txt")
    pull = world.repository.issues[number].pull
    assert pull is not None
    await world.comment("/merge", on=number)
    await commit_under_test(world)
    await world.act("force_push", by="alice", branch="main", to=pull.head_sha)
    await world.settle()
    files = await files_of(world, tmp_path)
    assert files.verify(f"{world.start}..main") == 2
    assert pull.head_sha in capsys.readouterr().out


@of(TARGET + UNIT)
async def test_a_writers_status_does_not_take_over_a_name_that_ci_gave_up(world: World) -> None:
    """Hurts everybody who builds main: the job is gone, and bob's status is green everywhere."""
    await world.make_queue()
    first = await opened(world, "a.txt")
    await world.comment("/merge", on=first)
    await world.settle()
    await to_main(world, TARGET + OTHER)
    post(world, str(world.repository.git.branch("main")))
    await world.settle()
    second = await world.open(by="alice", files={"b.txt": "x"}, fresh=True)
    await world.settle()
    pull = world.repository.issues[second].pull
    assert pull is not None
    post(world, pull.head_sha)
    await world.comment("/merge", on=second)
    for _ in range(6):
        for run in (await world.value()).runs.values():
            if run.sha:
                post(world, run.sha)
        await world.rest(120)
    assert await world.merged() == [first]
