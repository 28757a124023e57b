"""Strangers let CI test the commit of a test branch as the head of their own pull request."""

import pytest

from bot.sandbox.acts import repositories
from bot.sandbox.git import ZERO
from tests.adversary.test_untested import opened
from tests.harness import gates
from tests.harness.gates import Gate
from tests.harness.world import World, WorldOptions

CI = f"""\
{gates.CI}
      - {{branch: evil-failure, conclusion: failure}}
      - {{branch: evil-hang, conclusion: hang}}
"""


@pytest.fixture
def world_options() -> WorldOptions:
    return WorldOptions(ci=CI)


async def taken_by_a_stranger(world: World, gate: Gate, branch: str) -> None:
    """Dave opens a pull request whose head is the commit under test, and CI tests that, too."""
    dave = world.sandbox.world.account("dave")
    assert dave is not None
    assert gate.run.sha is not None
    fork = repositories.fork(world.repository, dave)
    fork.git.move([(f"refs/heads/{branch}", ZERO, gate.run.sha)])
    await world.act("open", by="dave", fork=True, head=branch)
    await world.rest(60)
    reports = world.repository.check_runs(gate.run.sha)
    assert len([one for one in reports if one.name == gates.CHECK]) == 2


@pytest.mark.parametrize("conclusion", ["failure", "hang"])
async def test_ci_of_a_stranger_on_the_tested_commit_stops_nobody(
    world: World, conclusion: str
) -> None:
    """Hurts the author: an outsider has the tests of an innocent pull request fail, or not end."""
    await world.make_queue()
    number = await opened(world, "a.txt")
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    await taken_by_a_stranger(world, gate, f"evil-{conclusion}")
    assert await world.state(number) == "TESTING"
    await gates.ends(world, number)
    await world.settle()
    assert await world.merged() == [number]
