"""Stories of failures that are known early: skipped gates, flakes, pauses, and second requests."""

from collections.abc import Awaitable, Callable

import pytest

from service.mergequeue.early_rules import Ending
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.states import QueueState, RunStatus
from service.mergequeue.operations import queues
from service.mergequeue.operations.pull_requests import Requester
from service.vocabulary import SYSTEM
from tests.end_to_end import test_early_failures as early
from tests.harness import gates, reporting_ci
from tests.harness.asking import asker
from tests.harness.world import World, WorldOptions

NEEDS = """\
workflow: .github/workflows/ci.yml
triggers: {push: ["headgate/merge/**"], pull_request: true}
checks:
  - {name: test (1), seconds: 10,
     rules: [{branch: "headgate/**", exists: [broken.txt], conclusion: failure}]}
  - {name: test (2), seconds: 100}
  - {name: package, seconds: 2, needs: [test]}
"""
NEEDS_FILE = """\
on: {push: {branches: ["headgate/merge/**"]}}
jobs:
  test:
    strategy: {fail-fast: false, matrix: {shard: [1, 2]}}
    runs-on: ubuntu-latest
    steps: [{run: make test}]
  package:
    needs: [test]
    runs-on: ubuntu-latest
    steps: [{run: make package}]
"""
FAST = """\
workflow: .github/workflows/ci.yml
triggers: {push: ["headgate/merge/**"], pull_request: true}
checks:
  - {name: test (1), seconds: 10, fail-fast: true,
     rules: [{branch: "headgate/**", exists: [broken.txt], conclusion: failure}]}
  - {name: test (2), seconds: 60, fail-fast: true}
  - {name: scan, seconds: 100}
  - {name: all-green, seconds: 2, needs: [test, scan], if: always(),
     rules: [{needs_failed: true, conclusion: failure}]}
"""
FAST_FILE = """\
on: {push: {branches: ["headgate/merge/**"]}}
jobs:
  test:
    strategy: {matrix: {shard: [1, 2]}}
    runs-on: ubuntu-latest
    steps: [{run: make test}]
  scan:
    runs-on: ubuntu-latest
    steps: [{run: make scan}]
  all-green:
    needs: [test, scan]
    if: always()
    runs-on: ubuntu-latest
    steps: [{run: "exit ${{ contains(needs.*.result, 'failure') && 1 || 0 }}"}]
"""
FLAKY = early.STEPS.replace("exists: [broken.txt]", "exists: [flaky.txt], attempt: 1")
BY_CI = {
    NEEDS: ("package", NEEDS_FILE),
    FAST: ("all-green", FAST_FILE),
    FLAKY: ("unit", early.STEPS_FILE),
    early.GATE: ("all-green", early.GATE_FILE),
    early.TOLERANT: ("all-green", early.GATE_FILE),
}
"""The required check and the workflow file of each CI."""


@pytest.fixture
def ci() -> str:
    """A story may name another one."""
    return early.GATE


@pytest.fixture
def world_options(ci: str) -> WorldOptions:
    rights = {"actions": "write", "workflows": "write"}
    return WorldOptions(ci=ci, required=(BY_CI[ci][0],), permissions=rights, speed=4.0)


async def begin(world: World, ci: str, **settings: str) -> None:
    """Make the queue of a target whose history has shown what a failed job of the matrix does."""
    required, workflow = BY_CI[ci]
    await early.begin(world, required, workflow, **settings)
    await early.know(world, required, workflow)


async def submitted(world: World, name: str) -> tuple[int, Run]:
    """A pull request that adds a file, with its run once CI has begun on it."""
    [number] = await early.opened(world, name)
    await early.submit(world, number)
    return number, await early.under_test(world, number)


def is_in(world: World, number: int, state: str) -> Callable[[], Awaitable[bool]]:
    """Ask whether a pull request has come to a state."""

    async def ask() -> bool:
        return await world.state(number) == state

    return ask


def ends_of_jobs(world: World) -> list[dict[str, str | None]]:
    """The conclusions of the jobs of each CI run on a test branch, in order."""
    return [
        {job.name: job.conclusion for job in run.jobs[run.attempt]}
        for run in world.repository.workflow_runs
        if run.head_branch.startswith("headgate/merge/")
    ]


async def set_state(world: World, state: QueueState) -> None:
    await queues.set_state(world.runtime, await world.queue(), state, None, Requester(SYSTEM))


@pytest.mark.parametrize("ci", [NEEDS])
async def test_a_gate_that_ci_itself_skips_is_awaited_by_no_run_of_the_tree(
    world: World, ci: str
) -> None:
    await begin(world, ci, confirm_failures="ALWAYS")
    number, _ = await submitted(world, "broken.txt")
    await world.until(is_in(world, number, "FAILED"))
    await world.settle()
    entry = await world.entry(number)
    assert entry.detail.is_confirmed
    assert ends_of_jobs(world) == [{"test (1)": "failure", "test (2)": "cancelled"}] * 2
    assert "test (1)" in world.comment_on(number)


@pytest.mark.parametrize("ci", [FAST])
async def test_a_matrix_that_fails_fast_teaches_and_dooms_by_the_job_that_failed(
    world: World, ci: str
) -> None:
    await early.begin(world, *BY_CI[ci], confirm_failures="OFF")
    known, broken = await early.opened(world, "broken.txt", "broken.txt")
    await early.submit(world, known)
    await world.settle()
    assert await early.endings(world) == [Ending.HELD]
    (ended,) = ends_of_jobs(world)
    assert (ended["test (1)"], ended["test (2)"]) == ("failure", "cancelled")
    await early.know(world, *BY_CI[ci])
    await early.submit(world, broken)
    run = await early.under_test(world, broken)
    await world.until(is_in(world, broken, "PENDING_FAILURE"))
    found = (await world.value()).runs[run.id]
    assert [doom.job for doom in found.doomed] == ["test (1)"]
    scan = early.reported(world, run, "scan")
    assert scan is not None
    assert scan.status != "completed"
    await world.settle()
    assert await world.state(broken) == "FAILED"


@pytest.mark.parametrize("ci", [FLAKY])
async def test_a_step_that_failed_by_a_known_flaky_test_blames_nobody(
    world: World, ci: str
) -> None:
    await early.begin(world, *BY_CI[ci])
    await early.know(world, *BY_CI[ci])
    ask = await asker(world)
    wrong = "AssertionError: 1 != 2"
    await reporting_ci.on_main(ask, {"total": "", "mail": ""}, "1")
    seen = await reporting_ci.upload(
        ask, {"total": wrong}, sha="b" * 40, branch="topic", run_id="9", job="unit"
    )
    flag = {"flag": "FLAKY", "reason": "waits on the clock"}
    test_id = seen["failures"][0]["test_id"]
    await reporting_ci.settle_tests(ask, "flag-test", test_id=test_id, **flag)
    number, run = await submitted(world, "flaky.txt")
    unit = early.reported(world, run, "unit")
    assert unit is not None
    gate = gates.Gate(run, unit)
    await reporting_ci.of_gate(ask, gate, {"total": wrong, "mail": ""})

    async def is_doomed() -> bool:
        return bool((await world.value()).runs[run.id].doomed)

    await world.until(is_doomed)
    began = (await world.value()).next_run
    await world.settle()
    assert await world.state(number) == "MERGED"
    # The job ran again in place. No other run was begun, so nothing counted as failed.
    assert (await world.value()).next_run == began
    ran = gates.workflow_run_of(world, unit)
    assert [[job.conclusion for job in ran.jobs[at]] for at in (1, 2)] == [["failure"], ["success"]]


async def test_a_paused_queue_stops_nothing_and_confirms_a_foreseen_failure_after_the_pause(
    world: World, ci: str
) -> None:
    await begin(world, ci)
    number, run = await submitted(world, "broken.txt")
    await set_state(world, QueueState.PAUSED)
    await world.until(is_in(world, number, "PENDING_FAILURE"))
    assert (await world.value()).runs[run.id].is_foreseen
    await world.settle()
    assert await world.state(number) == "PENDING_FAILURE"
    assert not (await world.value()).runs[run.id].is_foreseen
    (ended,) = ends_of_jobs(world)
    assert ended["all-green"] == "failure"
    assert "cancelled" not in ended.values()
    await set_state(world, QueueState.RUNNING)
    await world.settle()
    assert await world.state(number) == "FAILED"


@pytest.mark.parametrize("ci", [early.TOLERANT])
async def test_a_failure_that_is_taken_back_in_a_pause_lands_after_it(
    world: World, ci: str
) -> None:
    await begin(world, ci)
    number, run = await submitted(world, "broken.txt")
    await set_state(world, QueueState.PAUSED)
    await world.until(is_in(world, number, "PENDING_FAILURE"))
    await world.settle()
    assert await world.state(number) == "TESTS_PASSED"
    assert (await world.value()).runs[run.id].status is RunStatus.SUCCEEDED
    await set_state(world, QueueState.RUNNING)
    await world.settle()
    assert await world.state(number) == "MERGED"


async def test_merge_again_while_a_failure_is_foreseen_changes_nothing(
    world: World, ci: str
) -> None:
    await begin(world, ci)
    number, _ = await submitted(world, "broken.txt")
    await world.until(is_in(world, number, "PENDING_FAILURE"))
    before = await world.entry(number)
    await early.submit(world, number)
    await world.rest(5.0)
    again = await world.entry(number)
    assert (again.id, again.state.value) == (before.id, "PENDING_FAILURE")
    await world.settle()
    assert await world.state(number) == "FAILED"


@pytest.mark.parametrize("ci", [NEEDS])
async def test_merge_again_after_two_foreseen_failures_wants_another_commit(
    world: World, ci: str
) -> None:
    await begin(world, ci, confirm_failures="ALWAYS")
    number, _ = await submitted(world, "broken.txt")
    await world.settle()
    failed = await world.entry(number)
    await early.submit(world, number)
    await world.settle()
    # The head was blamed with confirmation, so it is not tested once more.
    assert (await world.entry(number)).id == failed.id
    assert len(ends_of_jobs(world)) == 2
    await world.act("push", number=number, files={"broken.txt": None})
    await world.settle()
    await early.submit(world, number)
    await world.settle()
    assert await world.state(number) == "MERGED"
