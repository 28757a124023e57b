"""A failed check is shown at once, before it counts."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.mergequeue.engine import inputs
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.culprits import failing, verdict
from service.mergequeue.engine.explaining import eta, explain
from service.mergequeue.engine.explaining.conditions import Next
from service.mergequeue.engine.reported import Evidence
from service.mergequeue.engine.states import EntryState, RunStatus
from service.vocabulary import CheckOutcome, Explanation
from tests.mergequeue.sound_times import DURATIONS
from tests.mergequeue.stage import Stage, a_check

FAILED, PASSED, RUNNING = CheckOutcome.FAILED, CheckOutcome.PASSED, CheckOutcome.RUNNING


def a_stage(*prs: int, sends_results: bool = False, **settings) -> Stage:
    stage = Stage(QueueConfig(**{"concurrency": 3, **settings}))
    if sends_results:
        stage.tell(inputs.RepositoryChanged(available=True, sends_results=True))
    for pr in prs:
        stage.tell(stage.submit(pr))
    return stage


def report(stage: Stage, number: int, outcome: CheckOutcome, attempt: int = 1) -> None:
    run = stage.run(number)
    assert run.sha is not None
    checks = (a_check("unit", outcome, attempt),)
    stage.tell(inputs.ChecksReported(run.id, run.sha, checks, True))


def shown(stage: Stage, number: int) -> tuple[RunStatus, timedelta | None]:
    run = stage.run(number)
    found = failing.failing_of(run)
    return failing.status_of(run), None if found is None else found.wait


def test_a_failed_check_shows_before_the_run_is_decided():
    stage = a_stage(1)
    report(stage, 1, RUNNING)
    assert shown(stage, 1) == (RunStatus.IN_PROGRESS, None)
    report(stage, 1, FAILED)
    assert stage.queue.entries[1].state is EntryState.TESTING
    assert shown(stage, 1) == (RunStatus.FAILED, verdict.SETTLE)
    stage.passes(verdict.SETTLE)
    assert stage.run(1).status is RunStatus.FAILED
    assert failing.failing_of(stage.run(1)) is None


def test_a_newer_attempt_that_runs_or_passes_takes_the_failure_away():
    stage = a_stage(1, 2)
    for number, newer in ((1, RUNNING), (2, PASSED)):
        report(stage, number, FAILED)
        report(stage, number, newer, attempt=2)
        assert failing.failing_of(stage.run(number)) is None


def test_while_test_results_are_awaited_the_wait_is_theirs():
    stage = a_stage(1, sends_results=True)
    report(stage, 1, FAILED)
    assert shown(stage, 1) == (RunStatus.FAILED, verdict.SETTLE)
    stage.passes(verdict.SETTLE)
    assert shown(stage, 1) == (RunStatus.FAILED, verdict.EVIDENCE_WAIT)


@pytest.mark.parametrize(
    ("explanation", "is_failing"),
    [(Explanation.QUARANTINED, False), (Explanation.FLAKY, True)],
)
def test_a_failure_that_is_known_to_be_quarantined_is_none(explanation, is_failing):
    stage = a_stage(1)
    report(stage, 1, FAILED)
    run = stage.run(1)
    told = replace(run, evidence=Evidence(run.attempt, {"unit": explanation}))
    assert (failing.failing_of(told) is not None) is is_failing


def test_no_time_of_landing_is_given_for_any_of_a_batch_whose_check_failed():
    stage = a_stage(1, 2, 3, batch=True, batching_min_size=2, batching_max_wait_time_minutes=60)
    stage.tell(stage.submit(4))
    report(stage, 1, FAILED)
    assert set(eta.etas(stage.queue, DURATIONS, stage.now)) == {3, 4}
    report(stage, 1, PASSED, attempt=2)
    assert 1 not in stage.queue.entries or stage.queue.entries[1].state is not EntryState.TESTING


def test_the_failed_check_is_the_first_open_condition():
    stage = a_stage(1)
    run = stage.run(1)
    assert run.sha is not None
    report(stage, 1, FAILED)
    explained = explain.explain(stage.queue, 1, stage.now)
    assert explained.next is not None
    assert (explained.next.what, explained.next.at) == (
        Next.FAILURE_COUNTS,
        stage.now + verdict.SETTLE,
    )
