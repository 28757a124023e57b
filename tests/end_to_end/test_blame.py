"""The tests that failed in each run say which pull request caused a failure."""

import pytest

from service.mergequeue.engine.states import EntryState, RunKind
from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions

WRONG = "AssertionError: 10.0 != 10.01"
GREEN = {"total": "", "mail": ""}
NO_TOTAL = {"total": WRONG, "mail": ""}
NO_MAIL = {"total": "", "mail": WRONG}


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI, permissions={"actions": "write"})


@pytest.fixture
async def ask(world: World) -> Asker:
    """An admin of the organization, by whose token CI uploads; batches are adaptive."""
    asking = await asker(world)
    await world.make_queue(
        batch=True,
        batch_sizing="ADAPTIVE",
        can_optimistically_merge=True,
        pending_failure_depth=0,
        full_suite=True,
    )
    await ci.on_main(asking, GREEN, "1")
    return asking


async def in_the_line(world: World) -> tuple[int, int, int]:
    """Three pull requests, each tested on those before it."""
    numbers = []
    for _ in range(3):
        number = await world.open()
        await world.settle()
        await world.comment("/merge", on=number)
        await gates.under_test(world, number)
        numbers.append(number)
    # Nearly as long as tests are expected to take: so a failed one waits for those on top of it.
    await world.rest(19 * 60)
    first, second, third = numbers
    return first, second, third


async def failing_with(world: World, ask: Asker, number: int, tests: dict[str, str]) -> None:
    """Let the tests of a pull request fail, and wait until the queue has seen it."""
    await ci.ends(ask, number, tests)

    async def has_failed() -> bool:
        return (await world.entry(number)).state is EntryState.PENDING_FAILURE

    await world.until(has_failed)


async def suspicion_of(ask: Asker, number: int) -> dict[str, int]:
    """What the queue believes of a pull request whose tests failed."""
    believed = (await ask.done("explainPullRequest", number))["suspicion"]
    return {name: believed[name] for name in ("percent", "failuresAlone", "failuresTogether")}


async def first_fails_with_the_second(world: World, ask: Asker) -> tuple[int, int, int]:
    """Three in the line, of which the first two fail the same test.

    Nothing has passed since: CI itself may be what fails, so the first one is tested once more.
    """
    first, second, third = await in_the_line(world)
    await failing_with(world, ask, first, NO_TOTAL)
    await ci.ends(ask, second, NO_TOTAL)
    await gates.under_test(world, first, kind=RunKind.SCREEN)
    return first, second, third


async def test_who_fails_by_the_tests_of_one_ahead_is_not_suspected(
    world: World, ask: Asker
) -> None:
    first, second, third = await first_fails_with_the_second(world, ask)
    assert (await suspicion_of(ask, first))["failuresAlone"] == 2
    # A new queue tests both alone as well, so they may share a run.
    await gates.under_test(world, second, third, kind=RunKind.MAIN)
    assert (await ask.done("explainPullRequest", second))["suspicion"] is None
    await gates.ends(world, second, third, kind=RunKind.MAIN)
    await ci.ends(ask, first, NO_TOTAL)
    await world.settle()
    assert [await world.state(each) for each in (first, second, third)] == [
        "FAILED",
        "MERGED",
        "MERGED",
    ]


async def test_one_is_rejected_by_its_own_run_when_one_that_contains_it_fails_as_well(
    world: World, ask: Asker
) -> None:
    first, second, third = await first_fails_with_the_second(world, ask)
    await ci.ends(ask, second, GREEN)
    await ci.ends(ask, third, NO_TOTAL, kind=RunKind.WITNESS)
    await world.settle()
    # Its test apart has not ended.
    assert await world.state(first) == "FAILED"


async def test_a_failure_by_another_test_is_laid_to_the_pull_request_behind(
    world: World, ask: Asker
) -> None:
    first, second, third = await in_the_line(world)
    await failing_with(world, ask, first, NO_TOTAL)
    before = await suspicion_of(ask, first)
    await failing_with(world, ask, second, NO_MAIL)
    assert await suspicion_of(ask, first) == before
    assert (await suspicion_of(ask, second))["percent"] > 75
    await ci.ends(ask, third, GREEN)
    await world.settle()
    assert [await world.state(each) for each in (first, second, third)] == ["MERGED"] * 3
