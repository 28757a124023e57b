"""Units that stop half-way: the target is tested, the queue waits, and each text says what is so.

A unit is a batch, or a chain. The judge of each story (tests/harness/tested_trees.py) asks on which
trees CI passed, and not which were planned.
"""

from typing import Any

import pytest

from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import queues
from service.mergequeue.operations.pull_requests import Requester
from service.mergequeue.operations.queues import HoldRequest
from service.mergequeue.reasons.record import HoldScope
from service.vocabulary import SYSTEM
from tests.end_to_end.test_chains import a_chain
from tests.end_to_end.test_lanes import in_lane
from tests.harness.asking import asker
from tests.harness.world import REPO, World, WorldOptions

METHODS = ("SQUASH", "REBASE", "MERGE_COMMIT")
ACTS: dict[str, dict[str, Any]] = {
    "closed": {"act": "close"},
    "pushed to": {"act": "push", "files": {"more.txt": "x\n"}},
    "a draft": {"act": "draft"},
}
CI = """\
triggers: {pull_request: true}
checks:
  - name: unit
    seconds: 3
    rules:
      - {exists: [broken.txt], conclusion: failure}
      - {exists: [half.txt, whole.txt], conclusion: success}
      - {exists: [half.txt], branch: "headgate/**", conclusion: failure}
"""
"""A tree with `half.txt` passes on test branches only together with `whole.txt`."""


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that fails the half of a change."""
    return WorldOptions(ci=CI)


async def a_unit(world: World, kind: str, *files: dict[str, str], **settings: Any) -> list[int]:
    """Pull requests that one run tests, asked to merge, from the bottom up."""
    size: dict[str, Any] = {}
    if kind == "batch":
        size = {"batch": True, "batching_min_size": len(files)}
    await world.make_queue(**size, **settings)
    if kind == "chain":
        numbers = await a_chain(world, *files)
        await world.comment("/merge", on=numbers[-1])
        return numbers
    numbers = [await world.open(files=content) for content in files]
    await world.settle()
    for number in numbers:
        await world.comment("/merge", on=number)
    return numbers


async def disturb(world: World, number: int, how: str) -> None:
    """Let something come between, just before the provider merges this pull request."""
    match = {"method": "PUT", "path": f"*/pulls/{number}/merge"}
    if how == "refused":
        words = "Base branch was modified. Review and try the merge again."
        await world.fault({**match, "times": 11}, "refuse", status=405, message=words)
        return
    act: dict[str, Any] = {"as": "bob", "repo": REPO, "number": number, **ACTS[how]}
    await world.fault({**match, "nth": 1}, "before", act=act)


def hold_reasons(world_value: Any) -> list[str]:
    """Reasons of the holds of a queue."""
    return [hold.reason.value for hold in world_value.holds]


@pytest.mark.fault(
    "the second of two that were tested together is refused at its landing",
    holds="the queue is held, and the target is tested",
    within="-",
)
@pytest.mark.parametrize("how", ["closed", "pushed to", "a draft", "refused"])
@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("SQUASH", "batch"),
        pytest.param("SQUASH", "chain", marks=pytest.mark.soak),
        pytest.param("REBASE", "batch", marks=pytest.mark.soak),
        ("REBASE", "chain"),
        ("MERGE_COMMIT", "chain"),
    ],
)
async def test_the_tip_is_tested_when_the_rest_of_a_unit_does_not_follow(
    world: World, method: str, kind: str, how: str
) -> None:
    files = ({"a1.txt": "x\n"}, {"a2.txt": "x\n"})
    first, second = await a_unit(world, kind, *files, merge_method=method)
    await disturb(world, second, how)
    await world.until(lambda: is_held(world))
    assert await world.state(first) == "MERGED"
    await world.until(lambda: is_free(world))
    await world.settle()
    said = world.comment_on(first)
    assert f"It was tested together with `#{second}`" in said
    assert "Proof:" not in said
    assert "so `main` was tested at this commit: it passed" in said or how == "refused"


async def is_held(world: World) -> bool:
    """Whether the queue is held by a tip without a test."""
    return "untested_tip" in hold_reasons(await world.value())


async def is_free(world: World) -> bool:
    """Whether nothing holds the queue."""
    return not (await world.value()).holds


@pytest.mark.parametrize("method", ["SQUASH", "REBASE"])
async def test_a_tip_that_fails_blames_no_pull_request_behind_it(world: World, method: str) -> None:
    first, second = await a_unit(
        world, "batch", {"half.txt": "x\n"}, {"whole.txt": "x\n"}, merge_method=method
    )
    await disturb(world, second, "a draft")
    innocent, other = await world.open(), await world.open()
    await world.comment("/merge", on=innocent)
    await world.comment("/merge", on=other)
    await world.until(lambda: is_held(world))

    await world.until(lambda: is_red(world))
    (hold,) = (await world.value()).holds
    assert hold.text == (
        f"the target fails unit, since #{first} landed without #{second}; they were tested together"
    )
    assert await world.state(innocent) == "PENDING"

    async def is_told() -> bool:
        return "did not pass its tests at this commit" in world.comment_on(first)

    await world.until(is_told)
    await world.act("draft", number=second, draft=False)
    await world.comment("/merge", on=second)
    await world.rest(3600)
    await world.settle()
    # The second one mends the branch: it goes first, by its own try.
    assert (await world.merged())[:2] == [first, second]
    assert await world.state(innocent) == "MERGED"


REFUSED = "Base branch was modified. Review and try the merge again."


async def is_red(world: World) -> bool:
    """Whether the queue is held because the target fails."""
    return "base_red" in hold_reasons(await world.value())


async def test_another_lane_lands_nothing_on_a_half_and_does_not_hide_it(world: World) -> None:
    """Both lanes have passed behind a freeze; released, one lands half, and the other follows."""
    ask = await asker(world)
    lanes: dict[str, Any] = {"mode": Mode.PARALLEL, "merge_method": "SQUASH", "batch": True}
    await world.make_queue(**lanes, batching_min_size=2, state=QueueState.PAUSED)
    queue = await world.queue()
    await queues.add_hold(world.runtime, queue, HoldRequest("wait", HoldScope.LAND), SYSTEM)
    files = [
        ("//api", "half.txt"),
        ("//api", "whole.txt"),
        ("//web", "w1.txt"),
        ("//web", "w2.txt"),
    ]
    numbers = [await in_lane(world, ask, lane, files={name: "x\n"}) for lane, name in files]
    await world.settle()
    await disturb(world, numbers[1], "a draft")
    await queues.set_state(world.runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))

    async def have_passed() -> bool:
        return [await world.state(number) for number in numbers] == ["TESTS_PASSED"] * 4

    await world.until(have_passed)
    (frozen,) = (await world.value()).holds
    await queues.release_hold(world.runtime, queue, frozen.id, "go", SYSTEM)
    await world.until(lambda: is_red(world))
    assert await world.merged() == numbers[:1]
    await world.act("draft", number=numbers[1], draft=False)
    await world.comment("/merge", on=numbers[1])
    await world.rest(3600)
    await world.settle()
    assert await world.merged() == numbers


async def test_a_target_that_fails_stays_held_while_the_rest_of_the_unit_waits(
    world: World,
) -> None:
    files = ({"half.txt": "x\n"}, {"whole.txt": "x\n"})
    first, second = await a_unit(world, "batch", *files, merge_method="SQUASH")
    merge = {"method": "PUT", "path": f"*/pulls/{second}/merge", "times": 22}
    await world.fault(merge, "refuse", status=405, message=REFUSED)
    await world.until(lambda: is_red(world))
    new = [await world.open(), await world.open()]
    for number in new:
        await world.comment("/merge", on=number)
    await world.rest(1800)
    await world.settle()
    assert (await world.merged())[:2] == [first, second]
    assert [await world.state(number) for number in new] == ["MERGED", "MERGED"]
    assert not await is_red(world)


async def test_the_target_is_held_again_if_what_mends_it_never_lands(world: World) -> None:
    files = ({"half.txt": "x\n"}, {"whole.txt": "x\n"})
    first, second = await a_unit(world, "batch", *files, merge_method="SQUASH")
    await disturb(world, second, "a draft")
    innocent = await world.open()
    await world.comment("/merge", on=innocent)
    await world.until(lambda: is_red(world))
    await world.act("draft", number=second, draft=False)
    await disturb(world, second, "closed")
    await world.comment("/merge", on=second)

    async def has_left() -> bool:
        return await world.state(second) == "CANCELLED"

    await world.until(has_left, within_s=7200)
    await world.rest(60)
    assert await is_red(world)
    assert await world.merged() == [first]
    assert await world.state(innocent) != "FAILED"
    await world.act("push", by="alice", branch="main", files={"half.txt": None}, bypass=True)
    await world.rest(3600)
    await world.settle()
    assert await is_free(world)
