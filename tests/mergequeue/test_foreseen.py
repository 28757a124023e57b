"""A required check that cannot pass any more: when it counts as failed, and what it decides."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.errors import InvariantBroken
from service.mergequeue.engine import checked, engine, inputs
from service.mergequeue.engine.checked import Ended
from service.mergequeue.engine.config import ConfirmFailures, QueueConfig
from service.mergequeue.engine.culprits import failing, verdict
from service.mergequeue.engine.explaining import explain
from service.mergequeue.engine.explaining.conditions import ConditionCode
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.outputs import EntryPlaced, RetireRun, Tell
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Doomed, Evidence
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus
from service.vocabulary import CheckOutcome, Explanation, Sha
from tests.mergequeue.stage import Stage, a_check

PASSED, FAILED, RUNNING = CheckOutcome.PASSED, CheckOutcome.FAILED, CheckOutcome.RUNNING
INTERRUPTED, SKIPPED = CheckOutcome.INTERRUPTED, CheckOutcome.SKIPPED

LEG = Doomed("unit", "leg", "50", "g1", step="Test", url="https://ci.example/50")


def a_stage(*prs: int, sends_results: bool = False, **settings: object) -> Stage:
    known: dict[str, object] = {"concurrency": 3, "confirm_failures": ConfirmFailures.BISECTION}
    stage = Stage(QueueConfig(**(known | settings)))  # type: ignore[arg-type]
    if sends_results:
        stage.tell(inputs.RepositoryChanged(available=True, sends_results=True))
    for pr in prs:
        stage.tell(stage.submit(pr))
    return stage


def report(stage: Stage, number: int, outcome: CheckOutcome, place: int = 1) -> None:
    run = stage.run(number)
    checks = (a_check("unit", outcome, place), replace(a_check("leg", FAILED, 50), attempt=1))
    stage.tell(inputs.ChecksReported(run.id, run.sha or Sha(""), checks, True))


def foresee(stage: Stage, number: int, *dooms: Doomed) -> None:
    run = stage.run(number)
    stage.tell(inputs.FailureForeseen(run.id, run.attempt, dooms))


def a_run(outcome: CheckOutcome | None = RUNNING, leg: CheckOutcome | None = FAILED) -> Run:
    """A doomed run in tests, with the reports of its required check and of the failed part."""
    stage = a_stage(1)
    said = [("unit", outcome, 1), ("leg", leg, 50)]
    checks = tuple(a_check(name, one, place) for name, one, place in said if one is not None)
    return replace(stage.run(1), checks=checks, doomed=(LEG,))


def is_doomed(run: Run) -> bool:
    (one,) = verdict.standings_of(run)
    return one.doom is not None and one.outcome is FAILED


@pytest.mark.parametrize("outcome", [None, RUNNING, CheckOutcome.BLOCKED, CheckOutcome.UNKNOWN])
@pytest.mark.parametrize("leg", [None, FAILED, RUNNING, INTERRUPTED])
def test_a_check_without_an_end_counts_as_failed(
    outcome: CheckOutcome | None, leg: CheckOutcome | None
) -> None:
    assert is_doomed(a_run(outcome, leg))


@pytest.mark.parametrize("outcome", [PASSED, FAILED, SKIPPED])
@pytest.mark.parametrize("status", [RunStatus.IN_PROGRESS, RunStatus.FAILED])
def test_its_own_end_wins(outcome: CheckOutcome, status: RunStatus) -> None:
    run = replace(a_run(outcome), status=status)
    assert verdict.standings_of(run) == verdict.standings_of(replace(run, doomed=()))


def test_an_interruption_is_an_end_until_the_run_has_failed() -> None:
    run = a_run(INTERRUPTED)
    assert not is_doomed(run)
    assert is_doomed(replace(run, status=RunStatus.FAILED))


@pytest.mark.parametrize("leg", [PASSED, SKIPPED])
def test_a_part_that_did_not_fail_after_all_dooms_nothing(leg: CheckOutcome) -> None:
    assert not is_doomed(a_run(leg=leg))


@pytest.mark.parametrize("newer", [RUNNING, FAILED])
def test_a_part_that_ran_again_dooms_nothing(newer: CheckOutcome) -> None:
    run = a_run(leg=None)
    both = (*run.checks, a_check("leg", FAILED, 50), a_check("leg", newer, 51))
    assert not is_doomed(replace(run, checks=both))
    assert not is_doomed(replace(run, checks=(*run.checks, a_check("leg", newer, 51))))
    other = replace(a_check("leg", newer, 51), group="another suite")
    assert is_doomed(replace(run, checks=(*run.checks, other)))
    assert not is_doomed(replace(run, rerun_ids=(LEG.check,)))


@pytest.mark.parametrize("why", list(Explanation))
def test_test_results_that_explain_the_part_void_it(why: Explanation) -> None:
    run = replace(a_run(), evidence=Evidence(1, {"unit": why}))
    assert is_doomed(run) is (why is Explanation.UNEXPLAINED)


def test_an_answer_that_voids_it_is_not_asked_for_again() -> None:
    stage = a_stage(1, sends_results=True)
    report(stage, 1, RUNNING)
    foresee(stage, 1, LEG)
    stage.passes(verdict.SETTLE)
    asked = stage.run(1).asked_evidence
    stage.tell(inputs.EvidenceReported(stage.run(1).id, Evidence(1, {"unit": Explanation.FLAKY})))
    assert failing.failing_of(stage.run(1)) is None
    report(stage, 1, RUNNING, place=2)
    foresee(stage, 1, LEG)
    stage.passes(timedelta(minutes=5))
    assert (stage.run(1).asked_evidence, stage.run(1).status) == (asked, RunStatus.IN_PROGRESS)
    report(stage, 1, FAILED, place=2)
    assert stage.run(1).evidence is None


def test_the_clock_of_the_failure_runs_on_when_the_check_reports_it() -> None:
    stage = a_stage(1)
    foresee(stage, 1, LEG)
    stage.passes(timedelta(seconds=8))
    report(stage, 1, FAILED)
    stage.passes(timedelta(seconds=2))
    assert stage.run(1).status is RunStatus.FAILED


def test_it_is_shown_at_once_with_the_part_that_failed() -> None:
    stage = a_stage(1)
    report(stage, 1, RUNNING)
    foresee(stage, 1, LEG)
    run = stage.run(1)
    assert failing.status_of(run) is RunStatus.FAILED
    assert any(isinstance(one, Tell) and one.is_refresh for one in stage.told)
    (shown,) = checked.checked_of(run)
    assert (shown.ended, shown.url) == (Ended.FAILED, LEG.url)
    assert shown.because == "it cannot pass any more, because step `Test` of job `leg` failed"
    why = explain.explain(stage.queue, 1, stage.now)
    (status,) = [one for one in why.conditions if one.code is ConditionCode.STATUS_PASSED]
    assert status.doom == LEG


def test_the_parts_of_a_failure_have_words() -> None:
    assert replace(LEG, step="").part == "job `leg` failed"
    assert replace(LEG, test="t1").part == "test `t1` of job `leg` failed"


def test_a_tip_and_a_direct_merge_are_judged_by_their_ends_alone() -> None:
    stage = a_stage(1)
    for kind in (RunKind.TIP, RunKind.DIRECT):
        run = replace(stage.run(1), kind=kind)
        queue = replace(stage.queue, runs={run.id: run})
        step = engine.step(queue, inputs.FailureForeseen(run.id, 1, (LEG,)), stage.now)
        assert step.queue.runs[run.id].doomed == ()


@pytest.mark.parametrize("confirm", list(ConfirmFailures))
def test_one_run_in_which_it_is_only_foreseen_blames_nobody(confirm: ConfirmFailures) -> None:
    stage = a_stage(1, confirm_failures=confirm)
    foresee(stage, 1, LEG)
    stage.passes(verdict.SETTLE)
    assert stage.run(1).is_foreseen
    assert stage.queue.entries[1].state is EntryState.PENDING_FAILURE
    stage.passes(timedelta(minutes=1))
    assert 1 in stage.queue.entries
    foresee(stage, 2, LEG)
    stage.passes(verdict.SETTLE)
    assert 1 not in stage.queue.entries


def test_nor_does_it_with_a_head_that_fails_the_check_itself() -> None:
    stage = a_stage(1, confirm_failures=ConfirmFailures.ALWAYS)
    stage.tell(inputs.FactsChanged(replace(stage.facts[1], own_failed=("unit",))))
    foresee(stage, 1, LEG)
    stage.passes(verdict.SETTLE)
    assert stage.queue.entries[1].state is EntryState.PENDING_FAILURE
    report(stage, 1, FAILED)
    stage.passes(verdict.SETTLE)
    assert 1 not in stage.queue.entries


def test_its_rest_is_stopped_when_it_is_over_and_not_before() -> None:
    stage = a_stage(1)
    foresee(stage, 1, LEG)
    stage.passes(verdict.SETTLE)
    assert not [one for one in stage.told if isinstance(one, RetireRun)]
    foresee(stage, 2, LEG)
    stage.passes(verdict.SETTLE)
    stops = {one.run: one.stop_ci for one in stage.told if isinstance(one, RetireRun)}
    assert stops == {stage.run_id(1): True, stage.run_id(2): True}


@pytest.mark.parametrize("how", ["the check passes", "it is withdrawn", "it is explained"])
def test_a_failure_that_does_not_come_costs_nobody_a_place(how: str) -> None:
    stage = a_stage(1, 2, 3, sends_results=True)
    ranks = {pr: entry.rank for pr, entry in stage.queue.entries.items()}
    report(stage, 1, RUNNING)
    foresee(stage, 1, LEG)
    stage.passes(verdict.SETTLE)
    stage.passes(verdict.EVIDENCE_WAIT)
    assert stage.queue.entries[1].state is EntryState.PENDING_FAILURE
    match how:
        case "the check passes":
            report(stage, 1, PASSED)
        case "it is withdrawn":
            foresee(stage, 1)
        case _:
            said = Evidence(1, {"unit": Explanation.QUARANTINED})
            stage.tell(inputs.EvidenceReported(stage.run(1).id, said))
    moved = [line for _, step in stage.steps for line in step.events]
    assert not [one for one in moved if isinstance(one.event, EntryPlaced)]
    reasons = {getattr(one.event, "reason", None) for one in moved}
    assert {Reason.FAILURE_TAKEN_BACK, Reason.AHEAD_RETURNED} <= reasons
    left = stage.queue.entries
    assert {pr: entry.rank for pr, entry in left.items()} == {pr: ranks[pr] for pr in left}
    if 1 in left:
        assert left[1].state is EntryState.TESTING
        report(stage, 1, PASSED)
    assert 1 not in stage.queue.entries
    assert stage.queue.breaker.failures == ()


def test_a_flake_that_the_check_reports_is_run_again_like_any_other() -> None:
    stage = a_stage(1, sends_results=True)
    foresee(stage, 1, LEG)
    stage.passes(verdict.SETTLE)
    stage.passes(verdict.EVIDENCE_WAIT)
    report(stage, 1, FAILED)
    assert stage.run(1).asked_evidence == stage.now
    stage.tell(inputs.EvidenceReported(stage.run(1).id, Evidence(1, {"unit": Explanation.FLAKY})))
    run = stage.run(1)
    assert (run.status, run.attempt, run.doomed) == (RunStatus.IN_PROGRESS, 2, ())


def test_blame_without_a_report_or_a_second_run_is_a_mistake_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = a_stage(1)
    foresee(stage, 1, LEG)
    monkeypatch.setattr(
        "service.mergequeue.engine.culprits.verdict.shows_failure", lambda run: True
    )
    with pytest.raises(InvariantBroken, match="no check shows"):
        stage.passes(verdict.SETTLE)
