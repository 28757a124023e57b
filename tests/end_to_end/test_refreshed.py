"""The comment and the check of a pull request stay true while its state stays the same."""

from collections.abc import Callable

import pytest

from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import queues as queue_operations
from service.mergequeue.operations.pull_requests import Requester
from service.vocabulary import SYSTEM
from tests.harness import gates
from tests.harness.world import World, WorldOptions

CI = """\
triggers: {push: ["headgate/merge/**"], pull_request: true}
checks:
  - name: lint
    seconds: 1
  - name: unit
    seconds: 1
    rules:
      - {branch: "headgate/merge/**", conclusion: hang}
"""
SILENT = """\
triggers: {push: ["topic-*"]}
checks:
  - name: unit
    seconds: 1
"""


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    """CI with one check that passes and one that hangs, or what the test names."""
    ci = getattr(request, "param", CI)
    if isinstance(ci, WorldOptions):
        return ci
    required = ("lint", "unit") if ci is CI else ("unit",)
    return WorldOptions(ci=ci, required=required)


async def submitted(world: World) -> int:
    """A pull request whose own checks have passed, in the queue; its number."""
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    return number


async def shows(
    world: World, number: int, words: str, place: Callable[[int], str] | None = None
) -> None:
    """Wait until the status comment, or another text about it, contains the words."""
    text = place or world.comment_on

    async def is_shown() -> bool:
        return words in text(number)

    await world.until(is_shown)


async def test_a_result_shows_in_the_check_run_while_another_check_runs(world: World) -> None:
    """The comment is not edited for it."""
    await world.make_queue()
    number = await submitted(world)
    await shows(world, number, "| ✓ passed |", world.check_summary)
    assert await world.state(number) == "TESTING"
    assert "| ⏳ running |" in world.check_summary(number)
    assert "Required checks: `lint` and `unit`" in world.comment_on(number)
    written = [one for one in world.sandbox.world.calls if "/comments" in one["path"]]
    assert sum("### 🧪 Testing" in str(one["body"]) for one in written) == 1


async def test_a_result_shows_in_the_comment_of_a_queue_without_check_run(world: World) -> None:
    await world.make_queue(status_check_enabled=False)
    number = await submitted(world)
    await shows(world, number, "| ✓ passed |")
    assert await world.state(number) == "TESTING"
    assert "| ⏳ running |" in world.comment_on(number)


@pytest.mark.parametrize("world_options", [gates.CI], indirect=True)
async def test_a_pause_and_its_end_show_on_what_waits_for_a_slot(world: World) -> None:
    await world.make_queue(concurrency=1)
    await submitted(world)
    waiting = await submitted(world)
    queue = await world.queue()
    by = Requester(SYSTEM)
    await queue_operations.set_state(world.runtime, queue, QueueState.PAUSED, "freeze", by)
    await shows(world, waiting, "`freeze`")
    await shows(world, waiting, "queue paused", world.check_on)
    await queue_operations.set_state(world.runtime, queue, QueueState.RUNNING, None, by)
    await world.settle()
    assert "freeze" not in world.comment_on(waiting).split("<details>")[0]
    assert "queue paused" not in world.check_on(waiting)


async def under_test_and_paused(world: World) -> int:
    """A pull request that is under test while its queue is paused."""
    await world.make_queue()
    number = await submitted(world)
    await gates.under_test(world, number)
    queue, by = await world.queue(), Requester(SYSTEM)
    await queue_operations.set_state(world.runtime, queue, QueueState.PAUSED, "freeze", by)
    return number


@pytest.mark.parametrize("world_options", [gates.CI], indirect=True)
async def test_a_pause_and_its_end_show_on_what_is_under_test(world: World) -> None:
    number = await under_test_and_paused(world)
    await shows(world, number, "`freeze`")
    await shows(world, number, "`freeze`", world.check_summary)
    assert "if the checks pass and the queue continues." in world.comment_on(number)
    queue, by = await world.queue(), Requester(SYSTEM)
    await queue_operations.set_state(world.runtime, queue, QueueState.RUNNING, None, by)
    await world.settle()
    assert "It merges automatically if the checks pass." in world.comment_on(number)


@pytest.mark.parametrize("world_options", [gates.CI], indirect=True)
async def test_a_pause_shows_on_a_failure_whose_second_test_it_stops(world: World) -> None:
    number = await under_test_and_paused(world)
    await gates.fails(world, number)
    await shows(world, number, "finding the cause")
    await shows(world, number, "`freeze`")


@pytest.mark.parametrize("world_options", [WorldOptions()], indirect=True)
async def test_a_landing_is_a_reaction_where_no_comment_tells_it(world: World) -> None:
    await world.make_queue(comments_enabled=False)
    number = await submitted(world)
    await world.settle()
    assert await world.merged() == [number]
    assert await world.reactions(number) == ["+1", "hooray"]


@pytest.mark.parametrize("world_options", [SILENT], indirect=True)
async def test_ci_that_starts_nothing_is_named_before_the_run_is_given_up(world: World) -> None:
    await world.make_queue()
    number = await submitted(world)
    await shows(world, number, "No check has started on the test branch.")
    assert await world.state(number) == "TESTING"
    run = (await world.value()).runs[(await world.entry(number)).run or ""]
    assert run.number == 1
