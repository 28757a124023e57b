"""Uploads and the test runs of a queue that they belong to."""

from dataclasses import replace

import pytest

from service.mergequeue.engine.model import Run
from service.mergequeue.engine.outputs import Step
from service.mergequeue.engine.states import QueueState, RunPhase
from service.mergequeue.operations import naming, queues, turn
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import queues as stored_queues
from service.mergequeue.store.cache import QueueCache
from service.testhealth.store import uploads
from service.vocabulary import SYSTEM, QueueRef, Sha
from tests.harness.values import ValuesProvider
from tests.operations import upload_stage
from tests.operations.upload_stage import HOST, NOW, Stage
from tests.store.builders import a_run

RUN_ID = "0b6f9ad4-7f0e-5f5b-9f3e-2f0c7f3f2b11"
RUN_SHA = Sha("d" * 40)


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
