"""Lanes by impacted targets, and a queue that changes between one line and lanes."""

from typing import Any

import pytest

from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.states import QueueState
from tests.harness import gates
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions

STILL_RUNNING = f"""\
{gates.CI}\
  - name: targets
    seconds: 1
    rules:
      - {{branch: "headgate/merge/**", conclusion: success}}
      - {{conclusion: hang}}
"""
"""CI of a pull request that goes on after the required check, to say what it found out."""


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI)


@pytest.fixture
async def ask(world: World) -> Asker:
    """An admin of the organization."""
    return await asker(world)


async def in_lane(world: World, ask: Asker, *targets: str, **more: Any) -> int:
    """A pull request that touches these targets, asked to merge; its number."""
    number = await world.open(**more)
    await world.settle()
    await ask.done("setImpactedTargets", number, impactedTargets=list(targets))
    await world.comment("/merge", on=number)
    return number


async def test_a_lane_lands_beside_another_by_the_change_that_was_tested(
    world: World, ask: Asker
) -> None:
    await world.make_queue(mode=Mode.PARALLEL)
    slower = await in_lane(world, ask, "//api")
    quicker = await in_lane(world, ask, "//web")
    await gates.under_test(world, slower)
    await gates.ends(world, quicker)
    await world.settle()
    assert await world.merged() == [quicker]
    assert await world.state(slower) == "TESTING"
    await gates.ends(world, slower)
    await world.settle()
    assert await world.merged() == [quicker, slower]
    first, second = await world.landed_trees()
    tested = await world.tested_trees([quicker, slower])
    assert (first, second != tested[1]) == (tested[0], True)


async def test_the_ci_run_of_a_fork_says_itself_what_its_head_touches(
    world: World, ask: Asker
) -> None:
    await world.make_queue(mode=Mode.PARALLEL)
    number = await world.open(by="dave", fork=True, files={".sandbox/ci.yml": STILL_RUNNING})

    def ci_runs() -> list[int]:
        found = world.repository.workflow_runs
        return [one.id for one in found if one.pulls == [number] and one.status != "completed"]

    async def has_begun() -> bool:
        return ci_runs() != []

    await world.until(has_begun)
    pull = world.repository.issues[number].pull
    assert pull is not None
    answer = await ask.done(
        "setImpactedTargets",
        number,
        sha=pull.head_sha,
        impactedTargets=["//api", "//web"],
        headers={"x-forked-workflow-run-id": str(ci_runs()[0])},
    )
    assert answer["targetCount"] == 2
    await world.settle()
    await world.comment("/merge", on=number, by="alice")
    await gates.ends(world, number)
    await world.settle()
    assert await world.merged() == [number]


async def test_lanes_whose_claim_is_false_meet_before_the_landing_and_are_built_anew(
    world: World, ask: Asker
) -> None:
    lines = [f"{place}\n" for place in range(30)]
    await world.act("push", by="alice", branch="main", bypass=True, files={"app": "".join(lines)})
    world.older = str(world.repository.git.branch("main"))
    await world.make_queue(mode=Mode.PARALLEL)
    above = {"app": "".join(["first\n", *lines[1:]])}
    below = {"app": "".join([*lines[:-1], "last\n"])}
    one = await in_lane(world, ask, "//api", files=above)
    other = await in_lane(world, ask, "//web", files=below)
    await gates.under_test(world, one)
    early = await gates.under_test(world, other)
    await gates.ends(world, one)
    await world.settle()
    await gates.ends(world, other)
    late = await gates.under_test(world, other)
    assert early.run.id != late.run.id
    (why,) = await world.landings_refused()
    assert why == f"Pull request {other} and what landed beside it both change app."
    assert await world.merged() == [one]
    await gates.ends(world, other)
    await world.settle()
    assert await world.merged() == [one, other]
    assert await world.landed_trees() == await world.tested_trees([one, other])


async def test_targets_that_grow_while_a_run_is_tested_join_the_lanes(
    world: World, ask: Asker
) -> None:
    await world.make_queue(mode=Mode.PARALLEL)
    ahead = await in_lane(world, ask, "//api")
    grown = await in_lane(world, ask, "//web")
    await gates.under_test(world, ahead)
    early = await gates.under_test(world, grown)
    await ask.done("setImpactedTargets", grown, impactedTargets=["//web", "//api"])
    await world.settle()
    late = await gates.under_test(world, grown)
    assert early.run.base == ()
    assert [member.pr for member in late.run.base] == [ahead]
    await gates.ends(world, grown)
    await world.settle()
    assert await world.merged() == []
    await gates.ends(world, ahead)
    await world.settle()
    assert await world.merged() == [ahead, grown]
    assert await world.landed_trees() == await world.tested_trees([ahead, grown])


async def test_the_mode_changes_once_what_is_tested_has_landed_and_back_again(
    world: World, ask: Asker
) -> None:
    await world.make_queue(mode=Mode.SINGLE)
    first = await in_lane(world, ask, "//api")
    await gates.under_test(world, first)
    await ask.done("updateQueue", mode="PARALLEL")
    shown = await ask.done("getQueue")
    assert (shown["state"], shown["mode"], shown["targetMode"]) == (
        "SWITCHING_MODES",
        "SINGLE",
        "PARALLEL",
    )
    status, refusal = await ask.post("updateQueue", state="PAUSED")
    assert (status, refusal["code"]) == (409, "mode_switch_in_progress")
    waiting = await in_lane(world, ask, "//web")
    await world.settle()
    assert await world.state(waiting) == "PENDING"
    await gates.ends(world, first)
    await gates.under_test(world, waiting)
    shown = await ask.done("getQueue")
    assert (shown["state"], shown["mode"], shown["targetMode"]) == ("RUNNING", "PARALLEL", None)
    await ask.done("updateQueue", mode="SINGLE")
    assert (await world.value()).state is QueueState.SWITCHING_MODES
    await gates.ends(world, waiting)
    await world.settle()
    shown = await ask.done("getQueue")
    assert (shown["state"], shown["mode"]) == ("RUNNING", "SINGLE")
    assert await world.merged() == [first, waiting]
