"""A failed test that its job reports ends the run once the queue has seen what such tests do."""

import pytest

from service.mergequeue.engine.states import RunStatus
from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions

WORKFLOW = """\
on: {pull_request: }
jobs:
  unit:
    runs-on: ubuntu-latest
    steps: [{run: pytest}]
"""


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    script = f"workflow: .github/workflows/ci.yml\n{gates.CI}"
    return WorldOptions(ci=script, permissions={"actions": "write"})


@pytest.fixture
async def ask(world: World) -> Asker:
    """An admin of a repository whose workflow has one job."""
    asking = await asker(world)
    files = {".github/workflows/ci.yml": WORKFLOW}
    await world.act("push", by="alice", branch="main", files=files, bypass=True)
    await world.make_queue(confirm_failures="OFF")
    return asking


async def submitted(world: World) -> gates.Gate:
    """The run of a pull request that was asked to merge."""
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    return await gates.under_test(world, number)


async def tell(ask: Asker, gate: gates.Gate, **more: bool) -> bool:
    """Report the test of the run's job as its job; whether it counts."""
    by = ci.token_of(ask.world, gate.check)
    body = ci.about(sha=gate.run.sha, name="test_total", final=True, **more)
    return bool((await ci.done(ask, "report-early-failure", data=body, by=by))["counts"])


async def fails(ask: Asker, gate: gates.Gate) -> None:
    """End the run by the failure of its job."""
    await gates.fails(ask.world, *gate.run.prs)
    await ask.world.settle()


async def taught(ask: Asker) -> None:
    """Two runs in which a reported test failed the job, and one that passed."""
    for _ in range(2):
        gate = await submitted(ask.world)
        assert await tell(ask, gate)
        # One such failure may be chance: the job goes on.
        assert (await ask.world.value()).runs[gate.run.id].status is RunStatus.IN_PROGRESS
        await fails(ask, gate)
    gate = await submitted(ask.world)
    await gates.ends(ask.world, *gate.run.prs)
    await ask.world.settle()


async def test_a_reported_test_ends_the_run_while_its_job_goes_on(world: World, ask: Asker) -> None:
    await taught(ask)
    gate = await submitted(world)
    assert await tell(ask, gate)

    async def has_failed() -> bool:
        run = (await world.value()).runs.get(gate.run.id)
        return run is None or run.status is RunStatus.FAILED

    # 10 s in which other reports may come, and a look or two.
    await world.until(has_failed, within_s=30)
    assert gate.check.status != "completed" or gate.check.conclusion == "cancelled"


async def test_a_test_that_passes_after_all_ends_no_run(world: World, ask: Asker) -> None:
    await taught(ask)
    gate = await submitted(world)
    assert await tell(ask, gate)
    await tell(ask, gate, passed=True)
    assert (await world.value()).runs[gate.run.id].doomed == ()
    await gates.ends(world, *gate.run.prs)
    await world.settle()
    assert set(gate.run.prs) <= set(await world.merged())
