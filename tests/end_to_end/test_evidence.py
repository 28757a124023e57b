"""What test results spare a pull request: failures that are not its own."""

import pytest

from bot.github import limits
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.store import runs
from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions

WRONG = "AssertionError: 10.0 != 10.01"
GREEN = {"total": "", "mail": ""}
RED = {"total": WRONG, "mail": ""}


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so, and that we may start again."""
    return WorldOptions(ci=gates.CI, permissions={"actions": "write"})


@pytest.fixture
async def ask(world: World) -> Asker:
    """An admin of the organization, by whose token CI uploads too."""
    asking = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    return asking


async def merging(world: World, files: dict[str, str] | None = None) -> int:
    """A pull request that was asked to merge; its number."""
    number = await world.open(files=files)
    await world.settle()
    await world.comment("/merge", on=number)
    return number


async def ending(world: World, number: int) -> tuple[str, str]:
    """State and reason of a pull request once all is quiet."""
    await world.settle()
    entry = await world.entry(number)
    return entry.state.value, entry.reason.value


async def test_a_run_in_which_only_quarantined_tests_fail_lands_excused(
    world: World, ask: Asker
) -> None:
    await ci.on_main(ask, GREEN, "1")
    await ci.quarantine(ask, "total", WRONG)
    number = await merging(world)
    run = await ci.ends(ask, number, RED)
    assert await ending(world, number) == ("MERGED", "landed")
    kept = await world.runtime.store.read(runs.run, (await world.queue()).id, run.id)
    assert kept is not None
    assert kept.excused == ("unit",)
    shown = await ask.done("getMergeQueueTestingDetails", testRunId=run.id)
    assert (shown["verdict"], [(one["name"], one["excused"]) for one in shown["failedTests"]]) == (
        "quarantined_only",
        [("total", True)],
    )
    assert Reason.PASSED_EXCUSED.value in [
        one["reason"].lower()
        for one in (await ask.done("getPullRequestTimeline", number))["events"]
        if one.get("reason")
    ]


async def test_a_known_flake_is_run_again_in_place_and_lands(world: World, ask: Asker) -> None:
    await ci.on_main(ask, RED, "1")
    await ci.on_main(ask, GREEN, "2")
    number = await merging(world)
    first = await ci.ends(ask, number, RED)

    async def is_tried_again() -> bool:
        run = (await world.value()).runs.get(first.id)
        return run is not None and run.attempt == 2

    await world.until(is_tried_again)
    second = await ci.ends(ask, number, GREEN)
    assert await ending(world, number) == ("MERGED", "landed")
    assert (second.id, second.attempt) == (first.id, 2)


async def test_a_healthy_test_that_the_pull_request_breaks_fails_it(
    world: World, ask: Asker
) -> None:
    await ci.on_main(ask, GREEN, "1")
    await ci.quarantine(ask, "mail", WRONG)
    number = await merging(world)
    await ci.ends(ask, number, {"total": WRONG, "mail": WRONG})
    assert await ending(world, number) == ("FAILED", "required_status_failed")


async def test_a_quarantined_test_does_not_excuse_who_changes_it(world: World, ask: Asker) -> None:
    await ci.on_main(ask, GREEN, "1")
    await ci.quarantine(ask, "total", WRONG)
    number = await merging(world, files={"tests/total.py": "x\n"})
    await ci.ends(ask, number, RED)
    assert await ending(world, number) == ("FAILED", "required_status_failed")


async def test_results_that_come_after_the_wait_change_nothing(world: World, ask: Asker) -> None:
    await ci.on_main(ask, GREEN, "1")
    await ci.quarantine(ask, "total", WRONG)
    number = await merging(world)
    gate = await gates.under_test(world, number)
    await ci.ends(ask, number, RED, sends=False)
    assert await ending(world, number) == ("FAILED", "required_status_failed")
    await ci.of_gate(ask, gate, RED)
    assert await ending(world, number) == ("FAILED", "required_status_failed")


async def test_results_that_come_while_the_queue_waits_are_heard(world: World, ask: Asker) -> None:
    await ci.on_main(ask, GREEN, "1")
    await ci.quarantine(ask, "total", WRONG)
    number = await merging(world)
    gate = await gates.under_test(world, number)
    await ci.ends(ask, number, RED, sends=False)

    async def has_asked() -> bool:
        run = (await world.value()).runs.get(gate.run.id)
        return run is not None and run.asked_evidence is not None

    await world.until(has_asked)
    await ci.of_gate(ask, gate, RED)
    assert await ending(world, number) == ("MERGED", "landed")


async def seconds_to_a_verdict(world: World, ask: Asker, *, sends: bool) -> float:
    """Let a test of another pull request fail; the time from its failure to the verdict."""
    number = await merging(world)
    run = await ci.ends(ask, number, GREEN | {f"of {number}": WRONG}, sends=sends)
    assert await ending(world, number) == ("FAILED", "required_status_failed")
    kept = await world.runtime.store.read(runs.run, (await world.queue()).id, run.id)
    assert kept is not None
    assert kept.failed_at is not None
    assert kept.finished_at is not None
    return (kept.finished_at - kept.failed_at).total_seconds()


async def one_passes(world: World, ask: Asker) -> None:
    """Land a pull request, so that not every run fails."""
    number = await merging(world)
    await ci.ends(ask, number, GREEN, sends=False)
    assert await ending(world, number) == ("MERGED", "landed")


async def test_a_check_that_never_has_results_is_awaited_in_vain_twice_and_then_no_more(
    world: World, ask: Asker
) -> None:
    await ci.on_main(ask, GREEN, "1")
    for _ in range(2):
        assert await seconds_to_a_verdict(world, ask, sends=False) >= 100
        await one_passes(world, ask)
    assert await seconds_to_a_verdict(world, ask, sends=False) < 40
    await one_passes(world, ask)
    # Results that come after all are used, and are awaited from then on.
    assert await seconds_to_a_verdict(world, ask, sends=True) < 40
    assert await seconds_to_a_verdict(world, ask, sends=False) >= 100


async def test_results_that_are_late_are_awaited_little_longer_than_they_ever_needed(
    world: World, ask: Asker
) -> None:
    await ci.on_main(ask, GREEN, "1")
    for _ in range(3):
        assert await seconds_to_a_verdict(world, ask, sends=True) < 40
    assert await seconds_to_a_verdict(world, ask, sends=False) < 70


async def test_results_that_came_in_time_count_though_they_are_read_after_the_wait(
    world: World, ask: Asker
) -> None:
    await ci.on_main(ask, GREEN, "1")
    await ci.quarantine(ask, "total", WRONG)
    number = await merging(world)
    await gates.under_test(world, number)
    # The answer is put off twice, the second time until the queue waits no longer.
    jobs = {"method": "GET", "path": "*/jobs*", "times": 2 * limits.READ_TRIES}
    await world.fault(jobs, "fail_before", status=503)
    await ci.ends(ask, number, RED)
    assert await ending(world, number) == ("MERGED", "landed")
