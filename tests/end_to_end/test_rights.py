"""What our App may do changes while it runs: it counts at the next look, whoever heard of it."""

import pytest

from service.accounts import installations
from service.mergequeue.operations import reconcile
from tests.harness.world import World

WORKFLOW = {".github/workflows/unit.yml": "on: push\n"}


async def grant_workflows(world: World) -> None:
    (installation,) = world.sandbox.world.installations.values()
    granted = {**installation.permissions, "workflows": "write"}
    await world.act("permissions", by="alice", permissions=granted)


@pytest.mark.parametrize("told", [True, False], ids=["told", "found by the sweep"])
async def test_a_right_that_was_granted_lets_a_pull_request_in(world: World, told: bool):
    number = await world.open(files=WORKFLOW)
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.state(number) == "NOT_READY"
    if not told:
        await world.fault({"event": "installation"}, "drop")
    await grant_workflows(world)
    await world.settle()
    if not told:
        await reconcile.read_live_queues(world.runtime)
        assert await world.state(number) == "NOT_READY"
        await installations.read_all(world.runtime)
    await reconcile.read_live_queues(world.runtime)
    await world.settle()
    assert await world.merged() == [number]
