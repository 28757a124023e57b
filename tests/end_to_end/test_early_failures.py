"""A required check that can no longer pass counts as failed before its CI has ended."""

from datetime import datetime
from typing import Any

import pytest

from bot.github import ci_plans
from bot.sandbox import reports
from bot.sandbox.records import Actor, CheckRun
from service.mergequeue.early_rules import Ending
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.states import RunStatus
from service.mergequeue.operations import early_failures, early_lessons, early_memory
from service.mergequeue.store import failed_parts as store
from service.mergequeue.store.failed_parts import SeenPart
from service.provider.ci import FailedPart
from service.provider.ci_plans import CiPlan
from service.vocabulary import Sha
from tests.harness import gates, reporting_ci
from tests.harness.asking import asker
from tests.harness.world import World, WorldOptions

WITHIN_S = 15.0
"""The time from a failed step or job until its followers are tested without it."""

STEPS = """\
workflow: .github/workflows/ci.yml
triggers: {push: ["headgate/merge/**"], pull_request: true}
checks:
  - name: unit
    steps:
      - {name: Run tests, seconds: 10,
         rules: [{branch: "headgate/**", exists: [broken.txt], conclusion: failure}]}
      - {name: Try the new compiler, seconds: 10, if: always(), continue-on-error: true,
         rules: [{exists: [odd.txt], conclusion: failure}]}
      - {name: Measure, seconds: 80, if: always()}
"""
STEPS_FILE = """\
on: {push: {branches: ["headgate/merge/**"]}}
jobs:
  unit:
    runs-on: ubuntu-latest
    steps:
      - name: Run tests
        run: make test
      - name: Try the new compiler
        if: always()
        continue-on-error: true
        run: make new
      - name: Measure
        if: always()
        run: make measure
"""
GATE = """\
workflow: .github/workflows/ci.yml
triggers: {push: ["headgate/merge/**"], pull_request: true}
checks:
  - {name: test (1), seconds: 10,
     rules: [{branch: "headgate/**", exists: [broken.txt], conclusion: failure}]}
  - {name: test (2), seconds: 100}
  - {name: beta, seconds: 10, continue-on-error: true,
     rules: [{exists: [odd.txt], conclusion: failure}]}
  - {name: all-green, seconds: 2, needs: [test, beta], if: always(),
     rules: [{needs_failed: true, conclusion: failure}]}
"""
GATE_FILE = """\
on: {push: {branches: ["headgate/merge/**"]}}
jobs:
  test:
    strategy: {fail-fast: false, matrix: {shard: [1, 2]}}
    runs-on: ubuntu-latest
    steps: [{run: make test}]
  beta:
    continue-on-error: true
    runs-on: ubuntu-latest
    steps: [{run: make beta}]
  all-green:
    needs: [test, beta]
    if: always()
    runs-on: ubuntu-latest
    steps: [{run: "exit ${{ contains(needs.*.result, 'failure') && 1 || 0 }}"}]
"""
TOLERANT = GATE.replace(
    """, if: always(),
     rules: [{needs_failed: true, conclusion: failure}]}""",
    ", if: always()}",
)
SHAPES = {"unit": (STEPS, STEPS_FILE), "all-green": (GATE, GATE_FILE)}
CHAIN = """\
workflow: .github/workflows/ci.yml
triggers: {push: ["headgate/merge/**"], pull_request: true}
checks:
  - {name: test (1), seconds: 10, rules:
     [{branch: "headgate/**", exists: [flaky.txt], attempt: 1, conclusion: failure}]}
  - {name: package, seconds: 2, needs: [test]}
"""
CHAIN_FILE = """\
on: {push: {branches: ["headgate/merge/**"]}}
jobs:
  test:
    strategy: {matrix: {shard: [1]}}
    runs-on: ubuntu-latest
    steps: [{run: make test}]
  package:
    needs: [test]
    runs-on: ubuntu-latest
    steps: [{run: make package}]
"""


WORKFLOWS = {**SHAPES, "package": (CHAIN, CHAIN_FILE)}


@pytest.fixture(params=SHAPES)
def required(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def ci() -> str:
    """Another CI than that of the shape."""
    return ""


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str | None:
    """The address of a database of a kind that a story names; None: any."""
    kind = getattr(request, "param", None)
    return None if kind is None else request.getfixturevalue(f"{kind}_url")


@pytest.fixture
def world_options(required: str, ci: str, database: str | None) -> WorldOptions:
    return WorldOptions(
        database_url=database,
        ci=ci or WORKFLOWS[required][0],
        required=(required,),
        permissions={"actions": "write", "workflows": "write"},
        # Where a test measures: a slow machine must not make seconds of its computing.
        speed=4.0,
    )


async def begin(world: World, required: str, workflow: str = "", **settings: Any) -> None:
    """Make the queue of a target that has the workflow file, by default that of the shape."""
    files = {".github/workflows/ci.yml": workflow or WORKFLOWS[required][1]}
    push = {"branch": "main", "files": files, "message": "Add CI", "bypass": True}
    await world.act("push", by="alice", **push)
    await world.make_queue(create_prs_for_testing_branches=False, concurrency=3, **settings)


async def opened(world: World, *names: str) -> list[int]:
    """Pull requests that add a file each and whose heads have passed; their numbers."""
    numbers = [await world.open(files={name: f"{place}"}) for place, name in enumerate(names)]
    await world.settle()
    return numbers


async def submit(world: World, number: int) -> None:
    await world.comment("/merge", on=number)


async def teach(world: World, number: int) -> None:
    """Let a broken pull request fail to the end, which confirms the rule twice."""
    await submit(world, number)
    await world.settle()
    assert await world.state(number) == "FAILED"
    assert await endings(world) == [Ending.HELD] * 2


async def know(world: World, required: str, workflow: str = "") -> None:
    """Let the history of the queue confirm the rule of the workflow file by two runs."""
    files = {"ci.yml": (workflow or WORKFLOWS[required][1]).encode()}
    plan = CiPlan(tuple(ci_plans.pieces(files, ".github/workflows")))
    part = FailedPart("1", "unit", step="Run tests")
    if required != "unit":
        part = FailedPart("1", "test (1)")
    rule = early_lessons.rule_of(plan, ".github/workflows/ci.yml", required, part)
    assert rule is not None
    now = world.runtime.clock.now()
    held = [
        SeenPart(rule, run, 1, Sha("1" * 40), part, "1", now, ending=Ending.HELD, early_s=90)
        for run in ("a", "b")
    ]
    await world.runtime.store.run(store.note, await world.queue(), held)
    world.runtime.memory.of(early_memory.Looks).rules.clear()


async def endings(world: World) -> list[Ending | None]:
    """How the required checks ended after failed parts, the newest first."""
    seen = await world.runtime.store.read(store.newest, (await world.queue()).id)
    return [one.ending for one in seen]


def reported(world: World, run: Run, name: str) -> CheckRun | None:
    """The newest check run of a name on a run's commit."""
    assert run.sha is not None
    found = [one for one in world.repository.check_runs(run.sha) if one.name == name]
    return found[-1] if found else None


async def run_of(world: World, *numbers: int) -> Run | None:
    """The live run whose test branch contains exactly these pull requests."""
    runs = (await world.value()).runs.values()
    found = [run for run in runs if tuple(one.pr for one in run.members) == numbers]
    return found[-1] if found else None


async def under_test(world: World, *numbers: int) -> Run:
    """The same, once CI has begun on it."""

    async def has_begun() -> bool:
        run = await run_of(world, *numbers)
        return run is not None and run.sha is not None and bool(run.checks)

    await world.until(has_begun)
    run = await run_of(world, *numbers)
    assert run is not None
    return run


def failed_at(world: World, run: Run) -> datetime:
    """When the step or the job of a broken pull request failed."""
    unit, leg = reported(world, run, "unit"), reported(world, run, "test (1)")
    if unit is not None:
        return unit.steps[0].ends_at
    assert leg is not None
    assert leg.completed_at is not None
    return leg.completed_at


# Each database hears the main story of one shape; in `make soak` of both.
@pytest.mark.parametrize(
    ("required", "database"),
    [
        ("unit", "postgres"),
        ("all-green", "sqlite"),
        pytest.param("unit", "sqlite", marks=pytest.mark.soak),
        pytest.param("all-green", "postgres", marks=pytest.mark.soak),
    ],
    indirect=True,
)
async def test_followers_run_again_within_seconds_of_the_failed_part(
    world: World, required: str
) -> None:
    await begin(world, required)
    known, broken, follower = await opened(world, "broken.txt", "broken.txt", "fine.txt")
    await teach(world, known)
    await submit(world, broken)
    first = await under_test(world, broken)
    await submit(world, follower)

    async def is_alone() -> bool:
        run = await run_of(world, follower)
        return run is not None and run.sha is not None

    await world.until(is_alone)
    moved = await run_of(world, follower)
    assert moved is not None
    assert moved.built_at is not None
    took_s = (moved.built_at - failed_at(world, first)).total_seconds()
    print(f"figure: {required}: followers run again {took_s:.1f} s after the failed part")
    assert 0 < took_s <= WITHIN_S
    ended = reported(world, first, required)
    assert ended is None or ended.conclusion in (None, "cancelled")
    await world.settle()
    assert await world.state(broken) == "FAILED"
    assert await world.state(follower) == "MERGED"


async def has_ended_late(world: World, run: Run, required: str) -> bool:
    """Wait until the required check of a run has ended; whether nothing was foreseen before."""

    async def is_over() -> bool:
        check = reported(world, run, required)
        return check is not None and check.status == "completed"

    await world.until(is_over)
    check = reported(world, run, required)
    assert check is not None
    seen = await world.runtime.store.read(store.newest, (await world.queue()).id)
    of_run = [one for one in seen if one.run == run.id]
    return check.conclusion != "cancelled" and not any(one.is_foreseen for one in of_run)


async def test_a_step_or_job_that_may_fail_dooms_nothing(world: World, required: str) -> None:
    await begin(world, required)
    await know(world, required)
    [number] = await opened(world, "odd.txt")
    await submit(world, number)
    run = await under_test(world, number)
    assert await has_ended_late(world, run, required)
    await world.settle()
    assert await world.state(number) == "MERGED"


@pytest.mark.parametrize("required", ["all-green"], indirect=True)
async def test_a_change_of_the_workflow_files_is_awaited_to_its_end(
    world: World, required: str
) -> None:
    await begin(world, required)
    await know(world, required)
    files = {"broken.txt": "x", ".github/workflows/more.yml": "on: push\njobs: {}\n"}
    number = await world.open(files=files, fresh=True)
    await world.settle()
    await submit(world, number)
    run = await under_test(world, number)
    assert await has_ended_late(world, run, required)
    await world.settle()
    assert await world.state(number) == "FAILED"


@pytest.mark.parametrize("required", ["all-green"], indirect=True)
@pytest.mark.parametrize("app", ["sandbox-ci", "other-ci"])
async def test_a_check_run_that_is_no_job_of_the_run_dooms_nothing(
    world: World, required: str, app: str
) -> None:
    await begin(world, required)
    await know(world, required)
    [number] = await opened(world, "fine.txt")
    await submit(world, number)
    run = await under_test(world, number)
    forger = world.sandbox.world.apps.get(app) or world.sandbox.world.add_app(
        app, {"checks": "write"}, []
    )
    assert run.sha is not None
    suite = reports.suite_of(world.repository, forger, run.sha, run.branch)
    fields = {"name": "test (1)", "status": "completed", "conclusion": "failure"}
    forged = reports.add_run(world.repository, suite, Actor(forger.bot, forger), fields)
    assert (forged.suite.app.slug, forged.conclusion) == (app, "failure")
    assert await has_ended_late(world, run, required)
    await world.settle()
    assert await world.state(number) == "MERGED"


@pytest.mark.parametrize("required", ["all-green"], indirect=True)
@pytest.mark.parametrize("ci", [TOLERANT])
async def test_a_wrong_rule_is_taken_back_and_foresees_nothing_more(
    world: World, required: str
) -> None:
    await begin(world, required)
    await know(world, required)
    # What lands first makes the job fail for all that follow.
    first, second = await opened(world, "broken.txt", "fine.txt")
    await submit(world, first)
    run = await under_test(world, first)

    async def is_doomed() -> bool:
        found = (await world.value()).runs.get(run.id)
        return found is not None and found.status is RunStatus.FAILED

    await world.until(is_doomed)
    await world.settle()
    assert await world.state(first) == "MERGED"
    assert Ending.REFUTED in await endings(world)
    await submit(world, second)
    again = await under_test(world, second)
    assert await has_ended_late(world, again, required)
    await world.settle()
    assert await world.state(second) == "MERGED"


@pytest.mark.parametrize("required", ["all-green"], indirect=True)
@pytest.mark.parametrize("ci", [TOLERANT])
async def test_a_job_that_failed_by_quarantined_tests_alone_dooms_nothing(
    world: World, required: str
) -> None:
    await begin(world, required)
    await know(world, required)
    ask = await asker(world)
    tests, wrong = {"total": "AssertionError: 1 != 2", "mail": ""}, "AssertionError: 1 != 2"
    sha = str(world.repository.git.branch("main"))
    main = {"sha": sha, "branch": "main", "run_id": "1", "job": "test (1)"}
    token = reporting_ci.token_on_main(world, "1")
    await reporting_ci.upload(ask, {"total": "", "mail": ""}, by=token, **main)
    await reporting_ci.quarantine(ask, "total", wrong)
    [number] = await opened(world, "broken.txt")
    await submit(world, number)
    run = await under_test(world, number)
    leg = reported(world, run, "test (1)")
    assert leg is not None
    ran = gates.workflow_run_of(world, leg)
    about = {"sha": run.sha, "branch": run.branch, "run_id": str(ran.id), "run_attempt": 1}
    token = reporting_ci.token_of(world, leg)
    await reporting_ci.upload(ask, tests, by=token, job="test (1)", **about)
    began = (await world.value()).next_run
    await world.settle()
    assert await world.state(number) == "MERGED"
    # No other run was begun: nothing counted as failed at any time.
    assert (await world.value()).next_run == began


@pytest.mark.parametrize("required", ["package"], indirect=True)
async def test_what_failed_before_a_second_attempt_says_nothing_of_it(
    world: World, required: str
) -> None:
    await begin(world, required, confirm_failures="ALWAYS")
    await know(world, required)
    [number] = await opened(world, "flaky.txt")
    # GitHub takes its time: the failed job is still the newest of its name.
    await world.fault({"method": "POST", "path": "*/rerun*", "nth": 1}, "hang", s=60.0)
    await submit(world, number)

    async def second() -> Run | None:
        runs = (await world.value()).runs.values()
        return next((run for run in runs if run.repeats is not None), None)

    async def has_asked() -> bool:
        again = await second()
        return again is not None and again.rerun_at is not None

    await world.until(has_asked)
    again = await second()
    assert again is not None
    await early_failures.look(world.runtime, await world.queue(), again.id)
    assert (await world.value()).runs[again.id].doomed == ()
    await world.settle()
    assert await world.state(number) == "MERGED"
