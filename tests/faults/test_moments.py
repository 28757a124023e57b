"""What happens at the worst moment of a landing: between its judgement and its call."""

import pytest

from service.errors import Conflict
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.operations import pull_requests, queues
from service.mergequeue.operations.pull_requests import Requester
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import queues as stored_queues
from service.vocabulary import SYSTEM
from tests.harness.world import REPO, World, WorldOptions

PATIENT = {
    "period_queues_s": 3600,
    "period_run_checks_s": 3600,
    "period_idle_s": 3600,
    "period_orphans_s": 3600,
    "period_redelivery_s": 3600,
}
"""No sweep comes to help: what is told here is told by the landing itself."""
MERGE = {"method": "PUT", "path": "*/pulls/*/merge"}
STRANGER = {"branch": "main", "files": {"stranger.txt": "x\n"}, "bypass": True}


@pytest.fixture
def world_options() -> WorldOptions:
    """A world in which only what a landing reads itself can save it."""
    return WorldOptions(settings=dict(PATIENT))


async def ready(world: World) -> int:
    """A pull request whose own checks have passed, and a queue that squashes."""
    number = await world.open()
    await world.settle()
    await world.make_queue(merge_method="SQUASH")
    return number


async def reasons(world: World) -> list[HoldReason]:
    """Why the queue stands still."""
    return [hold.reason for hold in (await world.value()).holds]


def merge_calls(world: World) -> int:
    """How many merge calls the sandbox has seen."""
    calls = world.sandbox.world.calls
    return sum(call["method"] == "PUT" and str(call["path"]).endswith("/merge") for call in calls)


async def is_under_test(world: World) -> bool:
    """Whether a run has its test commit."""
    return any(run.sha for run in (await world.value()).runs.values())


@pytest.mark.fault(
    "a push to the target of which no webhook tells",
    holds="the landing itself notices; tested anew",
    within="20 min",
)
async def test_a_push_to_main_of_which_no_webhook_told_restarts_the_line_and_holds_nothing(
    world: World,
) -> None:
    number = await ready(world)
    await world.fault({"event": "push"}, "drop")
    await world.comment("/merge", on=number)
    await world.until(lambda: is_under_test(world))
    await world.act("push", by="alice", **STRANGER)
    await world.settle()
    assert await world.state(number) == "MERGED"
    assert await reasons(world) == []


@pytest.mark.fault(
    "a check becomes required while a landing waits",
    holds="nothing lands without it",
    within="2 min",
)
async def test_a_status_that_becomes_required_while_a_landing_waits_keeps_it_from_landing(
    world: World,
) -> None:
    number = await ready(world)
    await world.fault(MERGE, "fail_before", status=503)
    await world.comment("/merge", on=number)

    async def has_tried() -> bool:
        return merge_calls(world) > 0

    await world.until(has_tried)
    wish = QueueRequest({"required_statuses": ("unit", "security")})
    await queues.update(world.runtime, await world.queue(), wish, SYSTEM)
    world.sandbox.world.faults.clear()
    await world.rest(120)
    assert await world.merged() == []
    assert await world.state(number) == "TESTING"
    (run,) = (await world.value()).runs.values()
    assert [one.name for one in run.required] == ["unit", "security"]


@pytest.mark.fault(
    "a person merges while the provider is away",
    holds="told as merged by hand",
    within="20 min",
)
async def test_a_merge_by_hand_while_a_landing_could_not_be_judged_is_no_landing_of_ours(
    world: World,
) -> None:
    number = await ready(world)
    await world.comment("/merge", on=number)
    await world.until(lambda: is_under_test(world))
    await world.fault({"graphql": "pullRequest"}, "fail_before", status=503)

    async def has_tried() -> bool:
        return (await world.value()).landing is not None

    await world.until(has_tried)
    await world.act("push", by="alice", **STRANGER)
    await world.act("merge", by="alice", number=number, method="squash", bypass=True)
    world.sandbox.world.faults.clear()
    await world.settle()
    assert (await world.entry(number)).reason is Reason.MERGED_BY_HAND
    assert await reasons(world) == []


@pytest.mark.parametrize("method", ["merge", "squash"])
@pytest.mark.fault(
    "a person merges while the outcome of a landing is unknown",
    holds="told as merged by hand, and the queue goes on",
    within="20 min",
)
async def test_a_merge_by_hand_while_the_outcome_of_a_landing_is_unknown_is_no_landing_of_ours(
    world: World, method: str
) -> None:
    number, other = await ready(world), await world.open()
    by_alice = {"act": "merge", "as": "alice", "repo": REPO, "number": number, "method": method}
    await world.fault({**MERGE, "nth": 1}, "before", act={**by_alice, "bypass": True})
    await world.fault({**MERGE, "nth": 1}, "reset_before")
    await world.comment("/merge", on=number)
    await world.comment("/merge", on=other)
    await world.settle()
    assert (await world.entry(number)).reason is Reason.MERGED_BY_HAND
    assert await world.state(other) == "MERGED"
    assert await reasons(world) == []


@pytest.mark.fault(
    "the answer of a landing is lost in an outage of 90 s",
    holds="read back and recorded once",
    within="20 min",
)
async def test_a_landing_whose_answer_is_lost_in_a_long_outage_is_read_back_after_it(
    world: World,
) -> None:
    number = await ready(world)
    await world.fault({**MERGE, "nth": 1}, "fail_after", status=502)
    await world.comment("/merge", on=number)

    async def has_landed() -> bool:
        return await world.merged() == [number]

    await world.until(has_landed)
    await world.fault({"path": "*"}, "fail_before", status=503)
    await world.rest(90)
    assert await world.state(number) != "MERGED"
    world.sandbox.world.faults.clear()
    await world.settle()
    assert await world.state(number) == "MERGED"
    assert len(await world.landed_trees()) == 1
    assert await reasons(world) == []


@pytest.mark.fault(
    "comments and check runs fail for an hour",
    holds="it lands, and is told after the outage",
    within="20 min",
)
async def test_a_landing_is_told_although_nothing_could_be_said_for_an_hour(world: World) -> None:
    number = await ready(world)
    for path in ("*/check-runs*", "*/comments*"):
        await world.fault({"path": path}, "fail_before", status=503)
    await world.comment("/merge", on=number)
    await world.rest(3600)
    assert await world.state(number) == "MERGED"
    world.sandbox.world.faults.clear()
    await world.rest(20 * 60)
    assert world.check_on(number).endswith("(success)")
    assert "Merged" in world.comment_on(number)


async def test_a_check_run_that_is_refused_keeps_no_comment_from_being_written(
    world: World,
) -> None:
    number = await ready(world)
    lost = {"status": 403, "message": "Resource not accessible by integration"}
    for method in ("POST", "PATCH"):
        await world.fault({"method": method, "path": "*/check-runs*"}, "refuse", **lost)
    await world.comment("/merge", on=number)
    await world.rest(300)
    assert await world.state(number) == "MERGED"
    assert "Merged" in world.comment_on(number)
    world.sandbox.world.faults.clear()
    await world.rest(20 * 60)
    assert world.check_on(number).endswith("(success)")


@pytest.mark.fault(
    "a command is given while the provider answers nothing",
    holds="it is heard after the outage",
    within="20 min",
)
async def test_what_is_said_in_an_outage_is_heard_soon_after_its_end(world: World) -> None:
    number = await ready(world)
    await world.fault({**MERGE, "nth": 1}, "fail_after", status=502)
    await world.comment("/merge", on=number)

    async def has_landed() -> bool:
        return await world.merged() == [number]

    await world.until(has_landed)
    other = await world.open()
    await world.fault({"path": "*"}, "fail_before", status=503)
    await world.rest(60)
    await world.comment("/merge", on=other)
    await world.rest(60)
    world.sandbox.world.faults.clear()
    await world.settle()
    assert await world.merged() == [number, other]


@pytest.mark.fault(
    "a merge call hangs while the queue is paused",
    holds="nothing lands after the answer to the pause",
    within="1 min",
)
async def test_no_landing_takes_effect_after_the_pause_was_answered(world: World) -> None:
    first = await ready(world)
    second = await world.open()
    await world.fault({**MERGE, "nth": 1}, "hang", s=6)
    await world.comment("/merge", on=first)

    async def has_tried() -> bool:
        return merge_calls(world) > 0

    async def is_answered() -> bool:
        return await world.reactions(second) != []

    await world.until(has_tried)
    await world.comment("/merge pause Release day", on=second, by="alice")
    await world.until(is_answered)
    landed = await world.merged()
    await world.rest(60)
    assert (await world.value()).state is QueueState.PAUSED
    assert await world.merged() == landed


@pytest.mark.fault(
    "a cancellation while the outcome of a landing is unknown",
    holds="it is kept, and takes effect",
    within="20 min",
)
async def test_a_cancellation_refused_while_a_landing_is_open_is_kept_and_says_so(
    world: World,
) -> None:
    number = await ready(world)
    await world.fault({**MERGE, "nth": 1}, "fail_before", status=502)
    await world.comment("/merge", on=number)

    async def has_tried() -> bool:
        return merge_calls(world) > 0

    await world.until(has_tried)
    # The landing stays open: its outcome cannot be read back.
    await world.fault({"path": "*"}, "fail_before", status=503)
    with pytest.raises(Conflict) as refused:
        await pull_requests.cancel(world.runtime, await world.queue(), number, SYSTEM)
    assert refused.value.code == "landing_in_progress"
    assert "The cancellation is kept" in refused.value.detail
    world.sandbox.world.faults.clear()
    await world.settle()
    assert await world.merged() == []
    assert await world.state(number) == "CANCELLED"


@pytest.mark.parametrize("lands", [True, False])
async def test_a_cancellation_during_a_landing_is_answered_when_the_landing_ends(
    world: World, lands: bool
) -> None:
    number = await ready(world)
    await world.fault({**MERGE, "nth": 1}, "hang", s=5.0)
    if not lands:
        await world.fault({**MERGE, "nth": 1}, "fail_before", status=405)
    await world.comment("/merge", on=number)

    async def is_landing() -> bool:
        return (await world.value()).landing is not None

    await world.until(is_landing)
    await world.rest(1)
    began = world.runtime.clock.now()
    if lands:
        with pytest.raises(Conflict) as refused:
            await pull_requests.cancel(world.runtime, await world.queue(), number, SYSTEM)
        assert refused.value.code == "already_landed"
    else:
        view = await pull_requests.cancel(world.runtime, await world.queue(), number, SYSTEM)
        assert view.entry.state is EntryState.CANCELLED
    waited_s = (world.runtime.clock.now() - began).total_seconds()
    assert 0 < waited_s < pull_requests.LANDING_WAIT_S


async def test_a_queue_paused_while_its_landing_waits_asks_for_no_wake_that_lies_behind(
    world: World,
) -> None:
    number = await ready(world)
    await world.fault(MERGE, "fail_before", status=503)
    await world.comment("/merge", on=number)

    async def has_tried() -> bool:
        return merge_calls(world) > 0

    await world.until(has_tried)
    await queues.set_state(
        world.runtime, await world.queue(), QueueState.PAUSED, "x", Requester(SYSTEM)
    )
    world.sandbox.world.faults.clear()
    await world.rest(60)
    wake = await world.runtime.store.read(stored_queues.next_wake)
    assert wake is None or wake > world.clock.now()
    assert await world.merged() == []
