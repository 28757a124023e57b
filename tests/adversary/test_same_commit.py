"""Strangers let CI test the commit of a test branch as the head of their own pull request."""

import pytest

from bot.sandbox.acts import repositories
from bot.sandbox.git import ZERO
from bot.sandbox.records import CheckRun
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Run
from tests.adversary.test_untested import opened
from tests.harness import gates
from tests.harness.world import World, WorldOptions

CI = f"""\
{gates.CI}
      - {{branch: evil-failure, conclusion: failure}}
      - {{branch: evil-hang, conclusion: hang}}
"""
SILENT = gates.CI.replace("hang", "never")
"""The check of a test branch is not there yet, as while CI is late or its run waits for others."""


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    return WorldOptions(ci=getattr(request, "param", CI))


async def taken_by_a_stranger(world: World, run: Run, branch: str) -> list[CheckRun]:
    """Dave opens a pull request whose head is the commit under test; CI tests that, too."""
    dave = world.sandbox.world.account("dave")
    assert dave is not None
    assert run.sha is not None
    fork = repositories.fork(world.repository, dave)
    fork.git.move([(f"refs/heads/{branch}", ZERO, run.sha)])
    await world.act("open", by="dave", fork=True, head=branch)
    await world.rest(60)
    reports = world.repository.check_runs(run.sha)
    return [one for one in reports if one.name == gates.CHECK]


@pytest.mark.parametrize("conclusion", ["failure", "hang"])
async def test_ci_of_a_stranger_on_the_tested_commit_stops_nobody(
    world: World, conclusion: str
) -> None:
    """Hurts the author: an outsider has the tests of an innocent pull request fail, or not end."""
    await world.make_queue()
    number = await opened(world, "a.txt")
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    assert len(await taken_by_a_stranger(world, gate.run, f"evil-{conclusion}")) == 2
    assert await world.state(number) == "TESTING"
    await gates.ends(world, number)
    await world.settle()
    assert await world.merged() == [number]


@pytest.mark.parametrize("world_options", [SILENT], indirect=True)
async def test_ci_of_a_stranger_on_the_tested_commit_lands_nothing(world: World) -> None:
    """Hurts the users of main: it lands before its tests, as CI tested another merge."""
    await world.make_queue()
    number = await opened(world, "a.txt")
    await world.comment("/merge", on=number)
    await world.rest(30)
    (run,) = (await world.value()).runs.values()
    (report,) = await taken_by_a_stranger(world, run, "evil")
    assert report.conclusion == "success"
    await world.rest(verdict.EMPTY_SUITE_WAIT.total_seconds() + 60)
    assert (await world.merged(), await world.state(number)) == ([], "TESTING")
