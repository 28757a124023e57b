"""Required checks that judge a pull request and not its tree: titles, labels, reviews."""

import pytest

from service.mergequeue.operations import queues
from service.mergequeue.operations.queues import QueueRequest
from service.vocabulary import SYSTEM
from tests.adversary.test_reporters import head_of, post
from tests.adversary.test_untested import opened
from tests.harness.world import World, WorldOptions

TRIGGERS = "triggers: {pull_request: true}\nchecks:\n  - {name: unit, seconds: 3}\n"
DRAFTS = '{branch: "headgate/**", conclusion: failure}'
BAD = "{exists: [bad.txt], conclusion: failure}"
TITLE = f"  - {{name: pr-title, seconds: 1, rules: [{DRAFTS}, {BAD}]}}\n"
NEVER = '  - {name: pr-title, seconds: 1, rules: [{branch: "headgate/**", conclusion: never}]}\n'
HEAD_ONLY = ("pr-title",)


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    found: WorldOptions = getattr(request, "param", WorldOptions(ci=TRIGGERS + TITLE))
    return found


def of(ci: str, *required: str) -> pytest.MarkDecorator:
    """Give a test a world with this CI and these required names."""
    return pytest.mark.parametrize(
        "world_options", [WorldOptions(ci=ci, required=required)], indirect=True
    )


async def unmet(world: World, number: int) -> list[str]:
    """What a pull request lacks to be tested."""
    return [reason.value for reason in (await world.entry(number)).unmet]


@of(TRIGGERS + TITLE, "unit", "pr-title")
async def test_a_check_of_the_title_is_asked_of_the_heads_only(world: World) -> None:
    """Hurts the authors: the queue's own drafts have another title, and innocents are out."""
    await world.make_queue(head_only_statuses=HEAD_ONLY)
    numbers = [await opened(world, f"{name}.txt") for name in "abc"]
    for number in numbers:
        await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == numbers


@of(TRIGGERS + NEVER, "unit", "pr-title")
async def test_it_is_not_awaited_on_a_test_branch(world: World) -> None:
    """Hurts the author: the check never runs there, and the run ends as never started."""
    await world.make_queue(head_only_statuses=HEAD_ONLY)
    number = await opened(world, "a.txt")
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [number]


@of(TRIGGERS + TITLE, "unit")
async def test_a_head_that_failed_it_does_not_land(world: World) -> None:
    """Hurts the maintainer: only the setting requires it, and GitHub would merge the head."""
    names = ("unit", "pr-title")
    await world.make_queue(required_statuses=names, head_only_statuses=HEAD_ONLY)
    number = await opened(world, "bad.txt")
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == []
    assert "check_failing" in await unmet(world, number)


@of(TRIGGERS, "unit")
async def test_a_head_without_a_report_of_it_does_not_land(world: World) -> None:
    """Hurts the maintainer: the workflow that judges the title was removed or never ran."""
    names = ("unit", "pr-title")
    await world.make_queue(required_statuses=names, head_only_statuses=HEAD_ONLY)
    number = await opened(world, "a.txt")
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == []
    assert "check_pending" in await unmet(world, number)


@of(TRIGGERS, "unit")
async def test_a_status_of_the_author_does_not_stand_for_it_on_the_head(world: World) -> None:
    """Hurts the maintainer: bob posts the name of the check on bob's own head."""
    names = ("unit", "pr-title")
    await world.make_queue(required_statuses=names, head_only_statuses=HEAD_ONLY)
    number = await opened(world, "a.txt")
    post(world, head_of(world, number), name="pr-title")
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == []


@of(TRIGGERS + TITLE, "pr-title")
async def test_a_queue_that_asks_only_the_heads_tests_nothing_and_holds(world: World) -> None:
    """Hurts everybody who builds main: no check is left that tests a tree."""
    await world.make_queue(head_only_statuses=HEAD_ONLY)
    number = await opened(world, "a.txt")
    await world.comment("/merge", on=number)
    await world.rest(120)
    assert await world.merged() == []
    assert [hold.reason.value for hold in (await world.value()).holds] == [
        "required_statuses_missing"
    ]


@of(TRIGGERS + TITLE, "unit", "pr-title")
async def test_the_queues_own_drafts_throw_nobody_out(world: World) -> None:
    """Hurts the authors: no setting names the check, and innocents are told to fix and push."""
    await world.make_queue()
    numbers = [await opened(world, f"{name}.txt") for name in "abcd"]
    for number in numbers:
        await world.comment("/merge", on=number)
    await world.rest(1200)
    assert "FAILED" not in [await world.state(number) for number in numbers]
    text = world.comment_on(numbers[0])
    assert "headOnlyStatuses" in text
    assert "passed on the PR itself and failed on the test branch" in text
    assert await world.merged() == []


@of(TRIGGERS + TITLE, "unit", "pr-title")
async def test_with_the_setting_they_are_tested_again_by_themselves(world: World) -> None:
    """Hurts the authors: the admin has set the name, and each must comment again."""
    await world.make_queue()
    number = await opened(world, "a.txt")
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.state(number) == "NOT_READY"
    queue = await world.queue()
    request = QueueRequest({"head_only_statuses": HEAD_ONLY})
    await queues.update(world.runtime, queue, request, SYSTEM)
    await world.settle()
    assert await world.merged() == [number]
