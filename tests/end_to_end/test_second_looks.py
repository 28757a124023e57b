"""A failure is confirmed by the failed job alone: the other jobs of the run do not run again."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from service.database.database import Tx
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.inputs import EstimateChanged, SetState
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.states import QueueState, RunKind
from service.mergequeue.operations import turn
from service.mergequeue.store import runs
from service.mergequeue.store.tables_queues import RunRow
from service.vocabulary import SYSTEM
from tests.harness.asking import asker
from tests.harness.world import World, WorldOptions

JOBS = ("build", "lint", "unit", "e2e", "docs")
CI = """\
triggers: {pull_request: true}
checks:
  - {name: build, seconds: 60}
  - {name: lint, seconds: 30}
  - name: unit
    seconds: 60
    rules:
      - {exists: [broken.txt], branch: "headgate/merge/**", conclusion: failure}
      - {exists: [flaky.txt], branch: "headgate/merge/**", attempt: 1, conclusion: failure}
  - {name: e2e, seconds: 90}
  - {name: docs, seconds: 10}
"""
ALWAYS: dict[str, Any] = {"confirm_failures": "ALWAYS"}


GATE = """\
triggers: {pull_request: true}
checks:
  - name: test (1)
    seconds: 30
    rules:
      - {exists: [broken.txt], branch: "headgate/merge/**", conclusion: failure}
      - {exists: [flaky.txt], branch: "headgate/merge/**", attempt: 1, conclusion: failure}
  - {name: test (2), seconds: 60}
  - {name: all-green, seconds: 5, needs: [test], if: always(),
     rules: [{needs_failed: true, conclusion: failure}]}
"""
ALL = ("test (1)", "test (2)", "all-green")


@pytest.fixture
def ci() -> str:
    """The CI of the repository; one with a gate requires that alone."""
    return CI


@pytest.fixture
def world_options(database_url: str, ci: str) -> WorldOptions:
    """Five required jobs, and an App that may run failed ones again."""
    required = JOBS if ci is CI else ("all-green",)
    return WorldOptions(
        required=required, ci=ci, permissions={"actions": "write"}, database_url=database_url
    )


async def merging(world: World, *names: str, title: str = "A change") -> int:
    """A pull request with these files that was asked to merge; its number."""
    number = await world.open(files=dict.fromkeys(names, "x\n"), title=title)
    await world.settle()
    await world.comment("/merge", on=number)
    return number


def attempts(world: World) -> list[list[list[str]]]:
    """The jobs of each attempt of each run on a test branch, in order."""
    return [
        [[job.name for job in run.jobs[attempt]] for attempt in sorted(run.jobs)]
        for run in world.repository.workflow_runs
        if run.head_branch.startswith("headgate/merge/")
    ]


async def runs_with(world: World, number: int) -> list[Run]:
    """All test runs of a pull request, in order."""
    queue = await world.queue()
    ids = await world.runtime.store.read(_ids, queue.id)
    found = await world.runtime.store.read(runs.runs_of, queue.id, ids)
    return [run for run in found if number in run.prs]


def _ids(session: Tx, queue_id: int) -> list[str]:
    table = RunRow.__table__
    rows = select(table.c.id).where(table.c.queue_id == queue_id)
    return list(session.execute(rows).scalars())


async def test_a_flake_is_cleared_by_the_failed_job_of_five_alone(world: World) -> None:
    await world.make_queue(**ALWAYS)
    number = await merging(world, "flaky.txt")
    await world.settle()
    entry = await world.entry(number)
    first, second = await runs_with(world, number)
    assert (entry.state.value, entry.restarts) == ("MERGED", {})
    assert attempts(world) == [[list(JOBS), ["unit"]]]
    assert (second.kind, second.repeats, second.attempt) == (RunKind.CONFIRMATION, first.id, 2)
    assert (first.sha, first.branch) == (second.sha, second.branch)
    assert second.finished_at is not None
    assert second.built_at is not None
    assert second.finished_at - second.built_at < timedelta(seconds=80)
    assert second.share == pytest.approx(60 / 90, abs=0.05)
    assert [name for name in world.branches() if name.startswith("headgate/")] == []


async def test_a_culprit_is_confirmed_by_its_failed_job_and_nobody_waits_for_a_build(
    world: World,
) -> None:
    await world.make_queue(**ALWAYS)
    number = await merging(world, "broken.txt")
    await world.settle()
    entry = await world.entry(number)
    assert (entry.state.value, entry.reason.value) == ("FAILED", "required_status_failed")
    assert entry.detail.is_confirmed
    assert attempts(world) == [[list(JOBS), ["unit"]]]
    timeline = await (await asker(world)).done("getPullRequestTimeline", number)
    told = [one["message"] for one in timeline["events"]]
    assert any(text.startswith("Only its failed checks run again, at ") for text in told)
    assert told.count("Test run ended, another one uses its test branch.") == 1
    assert [name for name in world.branches() if name.startswith("headgate/")] == []


async def test_the_culprit_of_a_batch_is_confirmed_in_the_run_that_has_its_tree(
    world: World,
) -> None:
    await world.make_queue(batch=True, batching_min_size=2, **ALWAYS)
    good = await world.open(files={"good.txt": "x\n"})
    bad = await world.open(files={"broken.txt": "x\n"})
    await world.settle()
    for number in (good, bad):
        await world.comment("/merge", on=number)
    await world.settle()
    assert (await world.state(good), await world.state(bad)) == ("MERGED", "FAILED")
    whole, part, again = await runs_with(world, good)
    assert (whole.prs, part.prs, again.prs) == ((good, bad), (good,), (good, bad))
    assert (part.kind, again.kind, again.repeats) == (
        RunKind.PROBE,
        RunKind.CONFIRMATION,
        whole.id,
    )
    assert attempts(world) == [[list(JOBS), ["unit"]], [list(JOBS)]]


async def test_lanes_confirm_each_their_own_failure(world: World) -> None:
    ask = await asker(world)
    await world.make_queue(mode=Mode.PARALLEL, **ALWAYS)
    flaky = await world.open(files={"flaky.txt": "x\n"})
    bad = await world.open(files={"broken.txt": "x\n"})
    good = await world.open(files={"good.txt": "x\n"})
    await world.settle()
    for number, lane in ((flaky, "//api"), (bad, "//web"), (good, "//docs")):
        await ask.done("setImpactedTargets", number, impactedTargets=[lane])
        await world.comment("/merge", on=number)
    await world.settle()
    states = [await world.state(number) for number in (flaky, bad, good)]
    assert states == ["MERGED", "FAILED", "MERGED"]
    assert attempts(world) == [[list(JOBS), ["unit"]], [list(JOBS), ["unit"]], [list(JOBS)]]


@pytest.mark.parametrize(("name", "state"), [("flaky.txt", "MERGED"), ("broken.txt", "FAILED")])
async def test_one_that_fails_apart_from_the_line_is_tested_again_by_its_failed_job(
    world: World, name: str, state: str
) -> None:
    await world.make_queue(
        batch=True, batch_sizing="ADAPTIVE", state=QueueState.PAUSED, concurrency=1, **ALWAYS
    )
    number = await merging(world, name)
    await world.settle()
    queue = await world.queue()
    resume = SetState(QueueState.RUNNING, None, SYSTEM)
    await turn.take(world.runtime, queue.id, [EstimateChanged(number, 0.2), resume])
    await world.settle()
    first, second = await runs_with(world, number)
    assert await world.state(number) == state
    assert attempts(world) == [[list(JOBS), ["unit"]]]
    assert (second.repeats, second.branch) == (first.id, first.branch)


async def permit(world: World, **levels: str) -> None:
    """Other permissions for our App, from now on."""
    installed = next(iter(world.sandbox.world.installations.values()))
    await world.act("permissions", by="alice", permissions={**installed.permissions, **levels})
    await world.settle()


async def is_confirmed_anew(world: World, number: int) -> bool:
    """Whether a pull request failed by two whole runs, each on a branch of its own."""
    tested = await runs_with(world, number)
    whole = [run for run in tested if run.repeats is None]
    is_failed = await world.state(number) == "FAILED"
    return is_failed and len({run.branch for run in whole}) == len(whole) == 2


async def test_without_the_right_a_new_test_branch_confirms(world: World) -> None:
    await permit(world, actions="read")
    await world.make_queue(**ALWAYS)
    number = await merging(world, "broken.txt")
    await world.settle()
    assert await is_confirmed_anew(world, number)
    assert attempts(world) == [[list(JOBS)], [list(JOBS)]]


async def test_a_right_that_is_taken_away_is_noticed(world: World) -> None:
    await world.make_queue(**ALWAYS)
    assert (await world.value()).reruns_from is not None
    await permit(world, actions="read")
    assert (await world.value()).reruns_from is None
    await permit(world, actions="write")
    assert (await world.value()).reruns_from is not None


async def test_a_refusal_of_the_provider_leads_to_a_new_test_branch(world: World) -> None:
    await world.make_queue(**ALWAYS)
    refusal = "Unable to retry this workflow run because it was created over a month ago"
    match = {"method": "POST", "path": "*/rerun*"}
    await world.fault(match, "refuse", status=403, message=refusal)
    number = await merging(world, "broken.txt")
    await world.settle()
    assert await is_confirmed_anew(world, number)
    assert attempts(world) == [[list(JOBS)], [list(JOBS)]]
    assert (await world.value()).reruns_from is not None


async def test_a_branch_that_points_elsewhere_is_not_tested_again(world: World) -> None:
    await world.make_queue(**ALWAYS)
    await world.fault({"event": "push"}, "drop")
    number = await merging(world, "broken.txt")

    async def is_waiting() -> bool:
        return any(run.repeats is not None for run in (await world.value()).runs.values())

    await world.until(is_waiting)
    (branch,) = [name for name in world.branches() if name.startswith("headgate/")]
    await world.act("push", by="alice", branch=branch, files={"more.txt": "x\n"})
    await world.settle()
    assert await is_confirmed_anew(world, number)
    assert [jobs for jobs in attempts(world) if len(jobs) > 1] == []


async def test_a_failed_job_that_is_not_required_does_not_run_again(world: World) -> None:
    extra = "  - {name: spelling, seconds: 5, rules: [{conclusion: failure}]}\n"
    files = {".sandbox/ci.yml": CI + extra, "flaky.txt": "x\n"}
    await world.make_queue(**ALWAYS)
    number = await world.open(files=files)
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.state(number) == "MERGED"
    assert [jobs[1] for jobs in attempts(world)] == [["unit"]]


@pytest.mark.parametrize("ci", [GATE])
@pytest.mark.parametrize(("name", "state"), [("flaky.txt", "MERGED"), ("broken.txt", "FAILED")])
async def test_what_a_failed_gate_needs_runs_again_with_it(
    world: World, name: str, state: str
) -> None:
    await world.make_queue(**ALWAYS)
    number = await merging(world, name)
    await world.settle()
    assert await world.state(number) == state
    assert attempts(world) == [[list(ALL), ["test (1)", "all-green"]]]
    _, second = await runs_with(world, number)
    # The leg takes 30 s and the gate behind it 5 s, of the 65 s of a whole test.
    assert second.share == pytest.approx(35 / 65, abs=0.05)
