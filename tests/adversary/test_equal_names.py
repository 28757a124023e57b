"""Check runs of one name in one suite: every job of an attempt counts, and the worst decides."""

import pytest

from bot.sandbox import ci, reports
from bot.sandbox.records import Actor, CheckRun
from tests.adversary.judge import landed_on
from tests.adversary.test_untested import merge, opened
from tests.harness import gates
from tests.harness.world import World, WorldOptions

TRIGGERS = "triggers: {pull_request: true}\nchecks:\n"
BAD = '{exists: [bad.txt], branch: "headgate/**", conclusion: failure}'
REAL = f"  - {{name: unit, seconds: 3, rules: [{BAD}]}}\n"
STUB = "  - {name: unit, seconds: 1, rules: [{exists: [README.md], conclusion: skipped}]}\n"
GREEN = "  - {name: unit, seconds: 1}\n"
LINT = "  - {name: lint, seconds: 1}\n"
ELSEWHERE = "  - {name: unit, seconds: 1, app: other-ci}\n"


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    found: WorldOptions = getattr(request, "param", WorldOptions(ci=gates.CI))
    return found


def of(*checks: str, required: str = "unit") -> pytest.MarkDecorator:
    """Give a test a world with these checks and required names."""
    made = WorldOptions(required=tuple(required.split()), ci=TRIGGERS + "".join(checks))
    return pytest.mark.parametrize("world_options", [made], indirect=True)


def end(world: World, check: CheckRun, conclusion: str) -> None:
    """End a check run as its App would."""
    actor = Actor(check.suite.app.bot, check.suite.app)
    reports.change_run(
        world.repository, check, actor, {"status": "completed", "conclusion": conclusion}
    )


async def test_a_failed_job_is_not_hidden_by_a_later_check_run(world: World) -> None:
    """Hurts everybody who builds main: a newer green `unit` stands beside the red one."""
    await world.make_queue()
    number = await opened(world, "a.txt")
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    actor = Actor(gate.check.suite.app.bot, gate.check.suite.app)
    fields = {"name": "unit", "status": "in_progress"}
    second = reports.add_run(world.repository, gate.check.suite, actor, fields)
    end(world, gate.check, "failure")
    end(world, second, "success")
    await world.rest(60)
    assert await landed_on(world) == []


@of(LINT, REAL, STUB, required="lint unit")
async def test_a_skipped_stub_does_not_hide_a_failure(world: World) -> None:
    """Hurts everybody who builds main: the real job and its stub have one name."""
    await merge(world, await opened(world, "bad.txt"))
    assert await landed_on(world) == []


@of(REAL, STUB)
async def test_a_skipped_stub_does_not_hide_a_success(world: World) -> None:
    """Hurts the author: the real job is green, and nothing lands."""
    number = await opened(world, "a.txt")
    await merge(world, number)
    assert await world.merged() == [number]


@of(REAL, GREEN)
@pytest.mark.parametrize("name", ["bad.txt"])
async def test_a_green_leg_of_a_matrix_does_not_hide_a_red_one(world: World, name: str) -> None:
    """Hurts everybody who builds main: two legs of a matrix without `matrix` in their name."""
    await merge(world, await opened(world, name))
    assert await landed_on(world) == []


@of(GREEN, REAL.replace("unit, seconds", "unit, app: other-ci, seconds"))
async def test_a_green_check_of_one_app_does_not_hide_a_red_one_of_another(world: World) -> None:
    """Hurts everybody who builds main: two Apps report one name, and one of them is red."""
    await merge(world, await opened(world, "bad.txt"))
    assert await landed_on(world) == []


async def run_again(world: World, number: int) -> None:
    """The job of a test run is stopped, run again as a second attempt, and passes."""
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    [run] = [one for one in world.repository.workflow_runs if one.suite is gate.check.suite]
    end(world, gate.check, "cancelled")
    ci.close_when_done(world.repository, run)
    ci.rerun(world.repository, run, failed_only=True)
    [again] = run.jobs[2]
    end(world, again, "success")
    await world.rest(60)


async def test_a_later_attempt_of_the_same_job_counts_alone(world: World) -> None:
    """Hurts the author: the job was run again, passed, and its first attempt counts for ever."""
    await world.make_queue()
    number = await opened(world, "a.txt")
    await run_again(world, number)
    assert await world.merged() == [number]


async def test_one_of_two_equal_names_run_again_does_not_stand_for_both(world: World) -> None:
    """Hurts everybody who builds main: the green leg of two is run again, the red one is hidden."""
    await world.make_queue()
    number = await opened(world, "a.txt")
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    [run] = [one for one in world.repository.workflow_runs if one.suite is gate.check.suite]
    actor = Actor(gate.check.suite.app.bot, gate.check.suite.app)
    for attempt, conclusion in ((1, "success"), (2, "success")):
        leg = reports.add_run(world.repository, run.suite, actor, {"name": "unit"})
        leg.attempt = attempt
        run.jobs.setdefault(attempt, []).append(leg)
        end(world, leg, conclusion)
    end(world, gate.check, "failure")
    await world.rest(60)
    assert await landed_on(world) == []


async def test_without_the_right_to_read_jobs_no_attempt_replaces_another(world: World) -> None:
    """Hurts everybody who builds main: GitHub does not show the jobs, and the newest name wins."""
    await world.make_queue()
    number = await opened(world, "a.txt")
    words = "Resource not accessible by integration"
    await world.fault({"path": "*/actions/runs*"}, "refuse", status=403, message=words)
    await run_again(world, number)
    assert await landed_on(world) == []
