"""The queue's label: what is on the pull request decides, in whatever order GitHub reports it."""

from typing import Any

import pytest

from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import queues, reconcile
from service.mergequeue.operations.queues import QueueRequest
from service.vocabulary import SYSTEM
from tests.harness import gates
from tests.harness.world import HEARD_S, World, WorldOptions

LABEL = "headgate-submit"
PERIOD_S = 20
LATE_S = 5
SWEEPS_S = 3 * PERIOD_S
ON, OFF = ("label", LABEL), ("unlabel", LABEL)


@pytest.fixture
def world_options() -> WorldOptions:
    """A redelivery comes sooner than in a real service, a sweep of comments, too."""
    periods = {"period_comments_s": PERIOD_S, "period_redelivery_s": 2 * PERIOD_S}
    return WorldOptions(ci=gates.CI, settings=periods)


async def ready(world: World, **settings: Any) -> int:
    """A paused queue, and a pull request onto its branch that is not queued."""
    await world.make_queue(state=QueueState.PAUSED, **settings)
    number = await world.open()
    await world.settle()
    return number


async def change(world: World, number: int, *acts: tuple[str, str], by: str = "bob") -> None:
    """Add and remove labels, one after the other."""
    for act, label in acts:
        await world.act(act, by=by, number=number, label=label)


async def is_queued(world: World, number: int, branch: str = "main") -> bool:
    return number in (await world.value(branch)).entries


def has_label(world: World, number: int, label: str = LABEL) -> bool:
    return label in world.repository.issues[number].labels


def queries(world: World) -> list[str]:
    """The GraphQL documents that were asked for, by name."""
    calls = [one for one in world.sandbox.world.calls if one["path"].endswith("/graphql")]
    return [str(one["body"]["query"]).split("(")[0].removeprefix("\nquery ") for one in calls]


@pytest.mark.fault(
    "events of a label arrive late and swapped",
    holds="the label on the pull request decides",
    within="-",
)
@pytest.mark.parametrize("gap_s", [0, 2])
@pytest.mark.parametrize(
    ("acts", "late"),
    [
        ((ON, OFF), "labeled"),
        ((ON, OFF, ON), "unlabeled"),
        ((ON, OFF, ON, OFF), "labeled"),
        ((ON, OFF, ON, OFF, ON), "unlabeled"),
    ],
)
async def test_a_late_event_of_the_label_changes_nothing_that_is_over(
    world: World, acts: tuple[tuple[str, str], ...], late: str, gap_s: int
) -> None:
    number = await ready(world)
    delay_s = LATE_S + 2 * gap_s
    await world.fault({"event": "pull_request", "action": late, "times": 1}, "delay", s=delay_s)
    for act in acts:
        await change(world, number, act)
        await world.rest(gap_s)
    await world.rest(delay_s)
    await world.settle()
    assert await is_queued(world, number) is has_label(world, number) is (acts[-1] is ON)


@pytest.mark.fault(
    "a label is removed before its lost event is delivered again",
    holds="the pull request is not submitted",
    within="-",
)
async def test_a_label_removed_before_its_redelivery_submits_nothing(world: World) -> None:
    number = await ready(world)
    address = world.sandbox.world.webhook_url
    world.sandbox.world.webhook_url = "http://127.0.0.1:9/down"
    await change(world, number, ON)
    await world.rest(HEARD_S)
    world.sandbox.world.webhook_url = address
    await change(world, number, OFF)
    await world.rest(6 * PERIOD_S)
    await world.settle()
    attempts = world.sandbox.world.attempts
    assert [one.redelivery for one in attempts if one.action == "labeled"] == [False, True]
    assert not await is_queued(world, number)


@pytest.mark.fault(
    "events of a label arrive in random order",
    holds="the label on the pull request decides",
    within="-",
)
@pytest.mark.parametrize("reorders", [0, 1])
async def test_events_in_random_order_end_as_the_label_is(world: World, reorders: int) -> None:
    number = await ready(world)
    await world.fault({"event": "pull_request"}, "reorder", window=LATE_S)
    await change(world, number, *[ON, OFF] * 3, *[ON] * reorders)
    await world.rest(LATE_S)
    await world.settle()
    assert await is_queued(world, number) is bool(reorders)


@pytest.mark.fault(
    "the event of an added label is lost",
    holds="it submits in the name of who added it",
    within="3 sweeps",
)
async def test_a_lost_label_is_found_and_submits_in_the_name_of_its_author(world: World) -> None:
    number = await ready(world)
    await world.fault({"event": "pull_request", "action": "labeled"}, "drop")
    await change(world, number, ON, by="alice")
    await world.rest(SWEEPS_S)
    await world.settle()
    assert (await world.entry(number)).submitted_by.login == "alice"


@pytest.mark.fault(
    "the event of a removed label is lost",
    holds="it cancels",
    within="3 sweeps",
)
async def test_a_lost_removal_of_the_label_is_found_and_cancels(world: World) -> None:
    number = await ready(world)
    await world.fault({"event": "pull_request", "action": "unlabeled"}, "drop")
    await change(world, number, ON)
    await world.rest(HEARD_S)
    await change(world, number, OFF)
    await world.rest(SWEEPS_S)
    await world.settle()
    assert await world.state(number) == "CANCELLED"


@pytest.mark.fault(
    "a label is removed while the service cannot be reached",
    holds="it cancels",
    within="3 sweeps",
)
async def test_a_label_removed_while_the_service_was_down_cancels(world: World) -> None:
    number = await ready(world)
    await change(world, number, ON)
    await world.settle()
    world.sandbox.world.webhook_url, address = (
        "http://127.0.0.1:9/down",
        (world.sandbox.world.webhook_url),
    )
    await change(world, number, OFF)
    await world.rest(HEARD_S)
    world.sandbox.world.webhook_url = address
    await world.rest(SWEEPS_S)
    await world.settle()
    assert await world.state(number) == "CANCELLED"


async def test_a_lost_label_of_a_person_without_the_right_is_refused_once(world: World) -> None:
    number = await ready(world)
    await world.act("role", by="alice", login="carol", role="triage")
    await world.fault({"event": "pull_request", "action": "labeled"}, "drop")
    await change(world, number, ON, by="carol")
    await world.rest(SWEEPS_S)
    await world.settle()
    assert not await is_queued(world, number)
    assert not has_label(world, number)
    comments = [one.body for one in world.repository.issues[number].comments]
    assert len(comments) == 1
    assert "carol" in comments[0]


async def test_the_last_author_of_a_label_needs_the_right(world: World) -> None:
    """An event of a person with the right says nothing about who added the label again."""
    number = await ready(world)
    await world.act("role", by="alice", login="carol", role="triage")
    await world.fault({"event": "pull_request", "action": "labeled"}, "delay", s=LATE_S)
    await change(world, number, ON, OFF)
    await change(world, number, ON, by="carol")
    await world.rest(LATE_S)
    await world.settle()
    assert not await is_queued(world, number)


async def test_a_label_that_got_its_meaning_later_submits_nothing(world: World) -> None:
    number = await ready(world, enqueueing_label="other")
    await change(world, number, ON)
    await world.rest(6 * PERIOD_S)
    wish = QueueRequest({"enqueueing_label": LABEL})
    await queues.update(world.runtime, await world.queue(), wish, SYSTEM)
    await world.comment("Nice.", on=number)
    await world.rest(SWEEPS_S)
    await world.settle()
    assert not await is_queued(world, number)


async def test_a_sweep_reads_a_label_that_was_answered_no_more(world: World) -> None:
    number = await ready(world)
    await change(world, number, ON)
    await world.settle()
    world.sandbox.world.calls.clear()
    for _ in range(4):
        await world.comment("Nice.", on=number)
        await world.rest(PERIOD_S)
    assert "Activity" in queries(world)
    assert "LabelChanges" not in queries(world)


async def test_two_queues_take_their_own_labels(world: World) -> None:
    await world.act("push", by="alice", branch="release", files={"r.txt": "r\n"})
    await world.make_queue(state=QueueState.PAUSED)
    wish: dict[str, Any] = {"required_statuses": ("unit",), "enqueueing_label": "ship"}
    await world.make_queue(branch="release", state=QueueState.PAUSED, **wish)
    one, other = await world.open(), await world.open(base="release")
    await world.settle()
    await world.fault({"event": "pull_request", "action": "labeled"}, "drop")
    for number in (one, other):
        await change(world, number, ON, ("label", "ship"))
        await change(world, number, OFF)
    await world.rest(SWEEPS_S)
    await world.settle()
    assert not await is_queued(world, one)
    assert await is_queued(world, other, "release")


@pytest.mark.fault(
    "an event about a draft, a closed pull request or a base arrives when it is over",
    holds="the submission stays",
    within="-",
)
@pytest.mark.parametrize(
    ("acts", "late"),
    [
        ((("draft", {}), ("draft", {"draft": False})), "converted_to_draft"),
        ((("close", {}), ("reopen", {})), "closed"),
        ((("retarget", {"base": "release"}), ("retarget", {"base": "main"})), "edited"),
    ],
    ids=["draft", "closed", "base"],
)
async def test_a_late_event_of_what_was_taken_back_removes_nothing(
    world: World, acts: tuple[tuple[str, dict[str, Any]], ...], late: str
) -> None:
    await world.act("push", by="alice", branch="release", files={"r.txt": "r\n"})
    number = await ready(world)
    await change(world, number, ON)
    await world.settle()
    await world.fault({"event": "pull_request", "action": late, "times": 1}, "delay", s=LATE_S)
    for act, fields in acts:
        await world.act(act, by="alice", number=number, **fields)
    await world.rest(LATE_S)
    await world.settle()
    facts = (await world.value()).entries[number].facts
    assert (facts.draft, facts.base, facts.state.value) == (False, "main", "open")
    assert await world.state(number) == "PENDING"


async def test_the_label_goes_with_a_submission_that_a_push_removed(world: World) -> None:
    await world.make_queue()
    number = await world.open()
    await world.settle()
    await change(world, number, ON)
    await gates.under_test(world, number)
    await world.act("push", by="bob", number=number, files={"more.txt": "x\n"})
    await world.settle()
    assert await world.state(number) == "CANCELLED"
    assert not has_label(world, number)
    await change(world, number, ON)
    await world.settle()
    assert await is_queued(world, number)


async def test_the_label_goes_with_a_failure(world: World) -> None:
    await world.make_queue()
    number = await world.open()
    await world.settle()
    await change(world, number, ON)
    for _ in range(2):
        await gates.fails(world, number)
    await world.settle()
    assert await world.state(number) == "FAILED"
    assert not has_label(world, number)


@pytest.mark.parametrize("command", ["/merge cancel", "close"])
async def test_the_label_goes_with_a_cancellation(world: World, command: str) -> None:
    number = await ready(world)
    await change(world, number, ON)
    await world.settle()
    if command == "close":
        await world.act("close", by="bob", number=number)
    else:
        await world.comment(command, on=number)
    await world.settle()
    assert await world.state(number) == "CANCELLED"
    assert not has_label(world, number)


async def test_a_label_beside_a_command_goes_too(world: World) -> None:
    number = await ready(world)
    await world.comment("/merge", on=number)
    await world.settle()
    await change(world, number, ON)
    await world.settle()
    await world.comment("/merge cancel", on=number)
    await world.settle()
    assert not has_label(world, number)


async def test_a_cancellation_by_a_removed_label_costs_no_further_call(world: World) -> None:
    number = await ready(world)
    await change(world, number, ON)
    await world.settle()
    await change(world, number, OFF)
    await world.settle()
    assert await world.state(number) == "CANCELLED"
    assert not [one for one in world.sandbox.world.calls if one["method"] == "DELETE"]


async def test_the_label_stays_after_the_landing(world: World) -> None:
    await world.make_queue()
    number = await world.open()
    await world.settle()
    await change(world, number, ON)
    await gates.ends(world, number)
    await world.settle()
    assert await world.merged() == [number]
    assert has_label(world, number)


async def test_a_label_that_may_not_be_removed_stops_nothing(world: World) -> None:
    number = await ready(world)
    await change(world, number, ON)
    await world.settle()
    refused = {"status": 403, "message": "Resource not accessible by integration"}
    await world.fault({"method": "DELETE", "path": "*/labels/*"}, "refuse", **refused)
    await world.comment("/merge cancel", on=number)
    await world.settle()
    assert has_label(world, number)
    await change(world, number, OFF, ON)
    await world.settle()
    assert await is_queued(world, number)


@pytest.mark.parametrize(
    ("setting", "label"), [("Merge-Queue", "merge-queue"), ("ready", "READY"), ("Über/x", "über/X")]
)
async def test_upper_and_lower_case_of_the_label_are_the_same(
    world: World, setting: str, label: str
) -> None:
    number = await ready(world, enqueueing_label=setting)
    await change(world, number, ("label", label))
    await world.settle()
    assert await is_queued(world, number)
    await world.comment("/merge cancel", on=number)
    await world.settle()
    assert not has_label(world, number, label)
    await change(world, number, ("label", label))
    await world.settle()
    await change(world, number, ("unlabel", label))
    await reconcile.read_live_queues(world.runtime)
    await world.settle()
    assert not await is_queued(world, number)
