"""Faults around the merge call: it lands once, or the queue holds itself and says why."""

import pytest

from bot.sandbox.acts import seeds
from bot.sandbox.app import PERMISSIONS
from service.mergequeue.engine.reasons import HoldReason
from tests.harness.world import REPO, World

S_TXT = {"files": {"stranger.txt": "x\n"}}
MERGE = {"method": "PUT", "path": "*/pulls/*/merge"}


async def submitted(world: World) -> int:
    """A pull request whose own checks have passed, asked to merge."""
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    return number


async def holds(world: World) -> list[HoldReason]:
    """Reasons for which the queue stands still."""
    return [hold.reason for hold in (await world.value()).holds]


@pytest.mark.parametrize(
    "kind",
    [
        *("fail_before", "reset_after"),
        *(pytest.param(kind, marks=pytest.mark.soak) for kind in ("fail_after", "reset_before")),
    ],
)
@pytest.mark.fault(
    "the answer of a merge call is lost, before or after it is served",
    holds="it lands once",
    within="20 min",
)
async def test_a_merge_call_whose_answer_is_lost_lands_once(kind: str, world: World) -> None:
    await world.fault({**MERGE, "nth": 1}, kind, status=502)
    number = await submitted(world)
    await world.settle()
    assert await world.state(number) == "MERGED"
    assert len(await world.landed_trees()) == 1


@pytest.mark.parametrize("kind", ["truncate", pytest.param("html", marks=pytest.mark.soak)])
@pytest.mark.fault(
    "a merge call is answered by half an answer or an HTML page",
    holds="the landing is read back",
    within="20 min",
)
async def test_a_merge_call_with_an_unreadable_answer_is_read_back(kind: str, world: World) -> None:
    await world.fault({**MERGE, "nth": 1}, kind)
    number = await submitted(world)
    await world.settle()
    assert await world.state(number) == "MERGED"


@pytest.mark.breaks_promises
@pytest.mark.fault(
    "the provider lands another tree than the tested one",
    holds="the queue is held, with both trees; nothing else lands",
    within="20 min",
)
async def test_another_tree_than_was_tested_holds_the_queue(world: World) -> None:
    await world.fault({**MERGE, "nth": 1}, "other_tree")
    first = await submitted(world)
    second = await submitted(world)
    await world.settle()
    assert await holds(world) == [HoldReason.LANDING_MISMATCH]
    assert await world.state(first) == "MERGED"
    assert await world.state(second) in {"TESTS_PASSED", "TESTING", "PENDING"}
    assert "other_tree" in ((await world.value()).holds[0].evidence or "")


@pytest.mark.breaks_promises
@pytest.mark.fault(
    "a foreign push between the last read and the merge call",
    holds="the queue is held and the push named",
    within="20 min",
)
async def test_a_push_between_our_read_and_the_merge_call_holds_the_queue(world: World) -> None:
    stranger = {"act": "push", "as": "alice", "repo": REPO, "branch": "main"}
    await world.fault({**MERGE, "nth": 1}, "before", act={**stranger, **S_TXT, "bypass": True})
    await submitted(world)
    await world.settle()
    assert await holds(world) == [HoldReason.LANDING_MISMATCH]
    assert "foreign_push" in ((await world.value()).holds[0].evidence or "")


@pytest.mark.fault(
    "a push to the pull request in the moment of its landing",
    holds="nothing lands",
    within="20 min",
)
async def test_a_push_to_the_pull_request_at_that_moment_lands_nothing(world: World) -> None:
    number = await world.open()
    await world.settle()
    late = {"act": "push", "as": "bob", "repo": REPO, "number": number, **S_TXT}
    await world.fault({**MERGE, "nth": 1}, "before", act=late)
    await world.comment("/merge", on=number)
    await world.settle()
    entry = await world.entry(number)
    assert (entry.state.value, entry.reason.value) == ("CANCELLED", "head_changed")
    assert await world.merged() == []


@pytest.mark.fault(
    "the App loses the right to push",
    holds="the queue is held; it lands once the right is back",
    within="20 min",
)
async def test_a_right_taken_away_holds_the_queue_and_given_back_lets_it_go_on(
    world: World,
) -> None:
    number = await world.open()
    await world.settle()
    await world.make_queue()
    await world.act("permissions", by="alice", permissions={**PERMISSIONS, "contents": "read"})
    await world.comment("/merge", on=number)
    await world.rest(120)
    assert HoldReason.PERMISSION_LOST in await holds(world)
    assert await world.merged() == []
    await world.act("permissions", by="alice", permissions=dict(PERMISSIONS))
    await world.settle()
    assert await world.state(number) == "MERGED"


@pytest.mark.fault(
    "the target moves under a test run",
    holds="tested anew, nobody is blamed",
    within="20 min",
)
async def test_a_push_to_main_by_a_person_restarts_those_in_the_line_and_blames_nobody(
    world: World,
) -> None:
    number = await submitted(world)
    await world.act("push", by="alice", branch="main", files={"m.txt": "x\n"}, bypass=True)
    await world.settle()
    assert await world.state(number) == "MERGED"


@pytest.mark.fault(
    "events of CI come four times and out of order",
    holds="it lands once",
    within="20 min",
)
async def test_deliveries_doubled_and_out_of_order_change_nothing(world: World) -> None:
    for event in ("check_run", "check_suite", "workflow_run"):
        await world.fault({"event": event}, "duplicate", n=3)
        await world.fault({"event": event}, "reorder", window=4)
    number = await submitted(world)
    await world.settle()
    assert await world.state(number) == "MERGED"
    assert len(await world.landed_trees()) == 1


async def test_our_own_check_that_rules_require_does_not_stay_passed_after_a_refusal(
    world: World,
) -> None:
    seeds.set_rules(world.repository, {"required_checks": ["unit", "Headgate (main)"]})
    await world.fault(MERGE, "refuse", status=405, message="Something new")
    number = await submitted(world)

    async def was_refused_again() -> bool:
        calls = [call for call in world.sandbox.world.calls if call["method"] == "PUT"]
        return len(calls) == 2

    await world.until(was_refused_again, within_s=3600)
    await world.rest(20)
    assert await world.state(number) == "NOT_READY"
    assert world.check_on(number).endswith("(queued)")
    world.sandbox.world.faults.clear()

    async def has_landed() -> bool:
        return await world.state(number) == "MERGED"

    await world.until(has_landed, within_s=3600)
    await world.settle()
    assert world.check_on(number).endswith("(success)")
