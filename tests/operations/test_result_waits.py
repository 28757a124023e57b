"""Uploads and the test runs of a queue that they belong to, and how long a queue waits for them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from service.evidence import failed_tests
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.outputs import Step
from service.mergequeue.engine.reported import Evidence
from service.mergequeue.engine.states import QueueState, RunPhase, RunStatus
from service.mergequeue.operations import naming, queues, turn
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import queues as stored_queues
from service.mergequeue.store.cache import QueueCache
from service.testhealth.store import uploads
from service.vocabulary import SYSTEM, CheckOutcome, Explanation, QueueRef, RequiredName, Sha
from tests.harness.values import ValuesProvider
from tests.operations import upload_stage
from tests.operations.upload_stage import HOST, NOW, Stage
from tests.store.builders import a_check, a_run

RUN_ID = "0b6f9ad4-7f0e-5f5b-9f3e-2f0c7f3f2b11"
RUN_SHA = Sha("d" * 40)
WHOLE_S = verdict.EVIDENCE_WAIT.total_seconds()
MARGIN_S = failed_tests.MARGIN.total_seconds()


@pytest.fixture
async def stage(store) -> Stage:
    """A repository with a paused queue, whose CI uploads."""
    staged = await upload_stage.staged(store)
    staged.runtime = replace(staged.runtime, providers={HOST: ValuesProvider(HOST)})
    wish = QueueRequest({}, QueueState.PAUSED)
    await queues.create(staged.runtime, staged.repository, "main", wish, SYSTEM)
    return staged


async def queue_of(stage: Stage) -> QueueRef:
    (queue,) = await stage.runtime.store.read(stored_queues.all_queues)
    return queue


async def keep(stage: Stage, *runs: Run) -> None:
    """Give the queue these runs besides those that it has."""
    queue = await queue_of(stage)
    before = await turn.value(stage.runtime, queue.id)
    after = replace(before, runs=dict(before.runs) | {run.id: run for run in runs})
    step = Step(after, (), (), None, None)
    await stage.runtime.store.run(stored_queues.save, before, step)
    stage.runtime.store.caches.of(QueueCache).drop(queue.id)


@pytest.mark.parametrize("has_pull_request", [True, False])
async def test_results_that_come_before_the_build_has_reported_are_of_its_run(
    stage, has_pull_request
):
    being_built = a_run(RUN_ID, phase=RunPhase.BUILDING, checks=(), created_at=NOW)
    await keep(stage, being_built)
    meta = {"pr_number": 7} if has_pull_request else {}
    branch = naming.test_branch(being_built)
    sent = await stage.ran({"total": "F"}, sha=RUN_SHA, branch=branch, run_id="77", **meta)
    here = stage.repository.id
    (upload,) = await stage.runtime.store.read(uploads.of_test_run, here, RUN_SHA, NOW)
    assert (upload.id, upload.kind, upload.prs) == (sent.upload_id, "queue", being_built.prs)


@pytest.mark.parametrize("branch", ["headgate/merge/pr-3/0b6f", "headgate/temp/pr-3/0b6f", "topic"])
async def test_results_of_another_branch_are_of_no_run_that_is_being_built(stage, branch):
    await keep(stage, a_run(RUN_ID, phase=RunPhase.BUILDING, checks=(), created_at=NOW))
    sent = await stage.ran({"total": "F"}, sha=RUN_SHA, branch=branch, run_id="77")
    (upload,) = await stage.runtime.store.read(uploads.newest, stage.repository.id, 9)
    assert (upload.id, upload.kind) == (sent.upload_id, "other")


def failed(number: int, names: Sequence[str], silent: Sequence[str] = ()) -> Run:
    """A run in which these checks failed; of those in `silent` no results came."""
    explanations = dict.fromkeys(names, Explanation.UNEXPLAINED)
    return a_run(
        f"run {number}",
        prs=(number,),
        sha=Sha(f"{number:x}" * 40),
        status=RunStatus.FAILED,
        required=tuple(RequiredName(name) for name in ("unit", "lint")),
        checks=tuple(
            a_check(name, CheckOutcome.FAILED if name in names else CheckOutcome.PASSED)
            for name in ("unit", "lint")
        ),
        created_at=NOW - timedelta(minutes=1),
        asked_evidence=NOW,
        finished_at=NOW + timedelta(seconds=40),
        evidence=Evidence(1, explanations, silent=tuple(silent)),
    )


async def waits_s(stage: Stage) -> dict[str, float]:
    """Name of each check → for how many seconds its results are awaited, if that is known."""
    queue = await queue_of(stage)
    waits = await stage.runtime.store.read(failed_tests.waits_of, queue.id)
    return {name: wait.total_seconds() for name, wait in waits.items()}


async def came(stage: Stage, seconds: Sequence[float]) -> None:
    """`unit` has failed so often, and its last results came so long after the question."""
    for number, needed in enumerate(seconds, 1):
        run = failed(number, ["unit"])
        await keep(stage, run)
        for at in (-20, needed):
            stage.clock.present = NOW + timedelta(seconds=at)
            await stage.ran({"total": "F"}, sha=run.sha, run_id=f"{number}{at}")


@pytest.mark.parametrize(
    ("seconds", "awaited_s"),
    [
        ([4, 30, 8], 30 + MARGIN_S),
        ([-5, -3, -9], MARGIN_S),
        ([4, 8, 80], WHOLE_S),
        ([4, 8, 300], WHOLE_S),
    ],
)
async def test_results_are_awaited_for_the_longest_time_that_they_have_needed(
    stage, seconds, awaited_s
):
    await came(stage, seconds)
    assert await waits_s(stage) == {"unit": awaited_s}


async def test_two_failures_do_not_show_how_long_results_need(stage):
    await came(stage, [4, 8])
    assert await waits_s(stage) == {}


async def test_a_check_that_never_has_results_is_not_awaited_whatever_others_need(stage):
    await came(stage, [4, 8, 30])
    for number in (4, 5, 6):
        run = failed(number, ["unit", "lint"], silent=["lint"])
        await keep(stage, run)
        stage.clock.present = NOW + timedelta(seconds=50)
        await stage.ran({"total": "F"}, sha=run.sha, run_id=str(number))
    assert await waits_s(stage) == {"unit": 50 + MARGIN_S, "lint": 0}


async def test_a_failure_without_results_does_not_show_how_long_they_need(stage):
    await came(stage, [4, 30, 8])
    await keep(stage, failed(4, ["unit"]))
    assert await waits_s(stage) == {"unit": 30 + MARGIN_S}


async def test_a_check_whose_pass_was_revoked_does_not_show_how_long_its_results_need(stage):
    await came(stage, [4, 30, 8])
    for number in (1, 2, 3):
        await keep(stage, replace(failed(number, ["unit"]), revoked=("id-lint",)))
    assert await waits_s(stage) == {"unit": 30 + MARGIN_S}


@pytest.mark.parametrize(("judged_s", "waits"), [(WHOLE_S, {"unit": 0}), (WHOLE_S - 1, {})])
async def test_a_check_is_silent_only_if_its_results_were_awaited_for_the_whole_time(
    stage, judged_s, waits
):
    for number in (1, 2):
        run = replace(failed(number, ["unit"]), evidence=None)
        await keep(stage, replace(run, finished_at=NOW + timedelta(seconds=judged_s)))
    assert await waits_s(stage) == waits
