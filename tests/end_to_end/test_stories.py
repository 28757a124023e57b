"""Stories of one queue, as people see them: comments in, states and commits out."""

import pytest

from service.mergequeue.engine.states import QueueState
from service.vocabulary import Sha
from tests.harness.world import REPO, World


async def test_pull_requests_land_in_the_order_they_came_each_tested_on_those_ahead(
    world: World,
) -> None:
    numbers = [await world.open() for _ in range(3)]
    await world.settle()
    for number in numbers:
        await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == numbers
    assert [await world.state(number) for number in numbers] == ["MERGED"] * 3


async def test_what_fails_on_its_own_head_waits_outside_and_holds_up_nobody(world: World) -> None:
    good, bad, behind = (
        await world.open(),
        await world.open(files={"broken.txt": "x\n"}, body="breaks the build"),
        await world.open(),
    )
    await world.settle()
    for number in (good, bad, behind):
        await world.comment("/merge", on=number)
    await world.settle()
    entry = await world.entry(bad)
    assert await world.merged() == [good, behind]
    assert (entry.state.value, [one.value for one in entry.unmet]) == (
        "NOT_READY",
        ["check_failing"],
    )


async def test_what_passes_alone_but_not_on_main_fails_with_the_check_named(world: World) -> None:
    breaker = await world.open(files={"a.txt": "x\n"})
    second = await world.open(files={"b.txt": "x\n"})
    await world.settle()
    await world.comment("/merge", on=breaker)
    await world.comment("/merge", on=second)
    await world.settle()
    entry = await world.entry(second)
    assert await world.merged() == [breaker]
    assert (entry.state.value, entry.reason.value) == ("FAILED", "required_status_failed")
    assert [named.name for named in entry.detail.checks] == ["unit"]


async def test_what_conflicts_with_the_one_ahead_waits_and_then_is_told_why(world: World) -> None:
    first = await world.open(files={"README.md": "# One\n"})
    second = await world.open(files={"README.md": "# Two\n"})
    await world.settle()
    await world.comment("/merge", on=first)
    await world.comment("/merge", on=second)
    await world.settle()
    entry = await world.entry(second)
    assert await world.merged() == [first]
    assert (entry.state.value, entry.reason.value) == ("FAILED", "conflict_target")


def own_checks(world: World, head: Sha) -> list[str]:
    """The states of our check runs on a head."""
    repository = world.sandbox.world.repository(REPO)
    assert repository is not None
    return [run.status for run in repository.check_runs(head) if run.name == "Headgate (main)"]


async def test_a_push_takes_a_queued_pull_request_out(world: World) -> None:
    number = await world.open()
    await world.make_queue(state=QueueState.PAUSED)
    await world.comment("/merge", on=number)
    await world.settle()
    old_head = (await world.entry(number)).head
    assert own_checks(world, old_head) == ["queued"]
    await world.act("push", number=number, files={"more.txt": "x\n"})
    await world.settle()
    entry = await world.entry(number)
    assert (entry.state.value, entry.reason.value) == ("CANCELLED", "head_changed")
    assert own_checks(world, old_head) == ["completed"]
    assert await world.merged() == []


async def test_cancel_by_comment_takes_it_out_and_says_so(world: World) -> None:
    number = await world.open()
    await world.make_queue(state=QueueState.PAUSED)
    await world.comment("/merge", on=number)
    await world.settle()
    await world.comment("/merge cancel", on=number)
    await world.settle()
    entry = await world.entry(number)
    assert (entry.state.value, entry.reason.value) == ("CANCELLED", "user_requested")


async def test_a_reader_may_not_submit(world: World) -> None:
    number = await world.open()
    await world.comment("/merge", on=number, by="carol")
    await world.settle()
    assert await world.reactions(number) == ["-1"]
    assert await world.merged() == []


async def test_nothing_of_ours_is_left_in_the_repository(world: World) -> None:
    numbers = [await world.open() for _ in range(2)]
    for number in numbers:
        await world.comment("/merge", on=number)
    await world.settle()
    assert [name for name in world.branches() if name.startswith("headgate/")] == []
    assert world.open_pulls() == []


@pytest.mark.parametrize("method", ["MERGE_COMMIT", "SQUASH", "REBASE"])
async def test_each_merge_method_lands_exactly_the_tested_tree(method: str, world: World) -> None:
    numbers = [await world.open() for _ in range(2)]
    await world.settle()
    await world.make_queue(merge_method=method)
    for number in numbers:
        await world.comment("/merge", on=number)
    await world.settle()
    shown = [number for number in await world.merged() if number in numbers]
    assert shown == numbers
    assert await world.landed_trees() == await world.tested_trees(numbers)


async def test_push_mode_opens_no_draft(world: World) -> None:
    number = await world.open()
    await world.make_queue(create_prs_for_testing_branches=False)
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [number]
    assert list(world.repository.issues) == [number]


async def test_draft_mode_opens_one_draft_and_closes_it(world: World) -> None:
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.settle()
    draft = max(world.repository.issues)
    assert draft != number
    assert not world.repository.issues[draft].open
    assert world.repository.full_name == REPO


async def test_the_queues_label_submits_and_taken_off_it_cancels(world: World) -> None:
    number = await world.open()
    await world.make_queue(state=QueueState.PAUSED)
    await world.act("label", number=number, label="headgate-submit")
    await world.settle()
    assert await world.state(number) == "PENDING"
    await world.act("unlabel", number=number, label="headgate-submit")
    await world.settle()
    assert await world.state(number) == "CANCELLED"


@pytest.mark.parametrize(
    ("acts", "is_queued"),
    [
        (("label", "unlabel", "label"), True),
        (("label", "unlabel", "label", "unlabel"), False),
    ],
)
async def test_the_last_change_of_a_label_counts_although_all_are_of_one_second(
    world: World, acts: tuple[str, ...], is_queued: bool
) -> None:
    number = await world.open()
    await world.make_queue(state=QueueState.PAUSED)
    await world.settle()
    twice = {"kind": "duplicate", "n": 1}
    await world.sandbox.control.add_fault({"match": {"event": "pull_request"}, "fault": twice})
    for act in acts:
        await world.act(act, number=number, label="headgate-submit")
    await world.settle()
    assert (number in (await world.value()).entries) is is_queued


async def test_any_other_label_costs_no_call(world: World) -> None:
    number = await world.open()
    await world.make_queue(state=QueueState.PAUSED)
    await world.settle()
    before = len(world.sandbox.world.calls)
    await world.act("label", number=number, label="bug")
    await world.settle()
    assert len(world.sandbox.world.calls) == before
