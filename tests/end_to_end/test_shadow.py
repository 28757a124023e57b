"""A queue in shadow beside another one: it decides, writes nothing, and its report is right."""

from typing import Any

import pytest

from bot.sandbox.rest import door
from service.mergequeue.operations import reconcile, shadow_report
from service.mergequeue.operations.shadow_report import ShadowReport, Verdict
from service.provider.values import Vehicle
from tests.harness.world import REPO, World, WorldOptions

BROKEN = "broken.txt"
CI = f"""
triggers: {{push: ["headgate/merge/**", main]}}
checks:
  - name: unit
    seconds: 2
    rules:
      - {{path: {BROKEN}, conclusion: failure}}
"""


@pytest.fixture
def world_options() -> WorldOptions:
    return WorldOptions(ci=CI, required=())


def written(world: World) -> list[str]:
    """What our App has written, but for test branches: method and path."""
    bot = world.sandbox.app.bot.login
    own = [one for one in world.sandbox.world.calls if one["by"] == bot]
    return [f"{one['method']} {one['path']}" for one in own if one["method"] != "GET"]


async def merged_by_the_other(world: World, number: int) -> None:
    """The other queue merges through GitHub's API."""
    await world.act("merge", number=number, by="alice", bypass=True)
    await world.settle()


async def the_report(world: World) -> ShadowReport:
    queue = await world.queue()
    await reconcile.read_all_queues(world.runtime)
    await world.settle()
    return await shadow_report.load_report(world.runtime, queue)


async def test_it_decides_beside_another_queue_and_writes_nothing(world: World) -> None:
    await world.make_queue(shadow=True, required_statuses=("unit",), create_prs_for_testing_branches=False)
    good, broken = await world.open(), await world.open(files={BROKEN: "x\n"})
    await world.comment("bors r+", on=good)
    await world.comment("bors r+", on=broken)
    await world.settle()
    print(await world.state(good), await world.state(broken), await world.merged())
    await merged_by_the_other(world, good)
    await merged_by_the_other(world, broken)
    report = await the_report(world)
    print(report)
    print("\n".join(written(world)))
    assert 0
