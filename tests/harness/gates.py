"""CI whose test runs end when the story says so, and what was tested in them.

The heads of pull requests pass by themselves; a test branch is tested until `ends` is called.
"""

from dataclasses import dataclass

from bot.sandbox import ci, reports
from bot.sandbox.records import Actor, CheckRun
from bot.sandbox.world import WorkflowRun
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.states import RunKind, RunStatus
from tests.harness.world import World

CHECK = "unit"
CI = """\
triggers: {pull_request: true}
checks:
  - name: unit
    seconds: 1
    rules:
      - {branch: "headgate/merge/**", conclusion: hang}
"""


@dataclass(frozen=True, slots=True)
class Gate:
    """A test run that waits for its end."""

    run: Run
    check: CheckRun


async def under_test(world: World, *numbers: int, kind: RunKind | None = None) -> Gate:
    """The live run that tests exactly these pull requests, once CI has begun with it.

    A witness is only meant if its kind is named: its pull requests have another run as well.
    """
    found: list[Gate] = []

    async def is_there() -> bool:
        for run in (await world.value()).runs.values():
            waiting = _waiting(world, run)
            is_kind = run.kind is kind if kind else run.kind is not RunKind.WITNESS
            is_meant = is_kind and run.prs == numbers
            if is_meant and run.status is RunStatus.IN_PROGRESS and waiting is not None:
                found.append(Gate(run, waiting))
        return bool(found)

    await world.until(is_there, within_s=SOON_S)
    return found[0]


SOON_S = 300.0
"""Within so much world time a run that was asked for is under test."""


def _waiting(world: World, run: Run) -> CheckRun | None:
    """The check of a run's commit that has not ended."""
    checks = world.repository.check_runs(run.sha or "")
    return next((one for one in checks if one.name == CHECK and one.status != "completed"), None)


async def ends(
    world: World, *numbers: int, conclusion: str = "success", kind: RunKind | None = None
) -> Run:
    """End the tests of the run of exactly these pull requests; the run."""
    gate = await under_test(world, *numbers, kind=kind)
    app = gate.check.suite.app
    fields = {"status": "completed", "conclusion": conclusion}
    actor = Actor(app.bot, app)
    ran = workflow_run_of(world, gate.check)
    reports.change_run(world.repository, gate.check, actor, fields)
    ci.close_when_done(world.repository, ran)
    return gate.run


def workflow_run_of(world: World, check: CheckRun) -> WorkflowRun:
    """The CI run whose job a check is."""
    every = world.repository.workflow_runs
    return next(run for run in every if any(check in jobs for jobs in run.jobs.values()))


async def fails(world: World, *numbers: int) -> Run:
    """The same with a failure."""
    return await ends(world, *numbers, conclusion="failure")
