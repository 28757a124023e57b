"""Which failed checks of a run results are looked for, and when they are explained."""

from dataclasses import replace

import pytest

from service.evidence import failed_checks
from service.mergequeue.engine import config
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.reported import Doomed, Evidence
from service.vocabulary import Check, CheckOutcome, Explanation, RequiredName
from tests.mergequeue.stage import Stage, a_check

PASSED, FAILED, RUNNING = CheckOutcome.PASSED, CheckOutcome.FAILED, CheckOutcome.RUNNING
UNIT, E2E = RequiredName("unit"), RequiredName("e2e", "7")


def a_run(*checks: Check, reruns: tuple[str, ...] = ()) -> Run:
    """A run in tests that must pass `unit` of any App, and `e2e` of one."""
    stage = Stage(config.QueueConfig())
    stage.tell(stage.submit(1))
    (run,) = stage.queue.runs.values()
    return replace(run, checks=checks, required=(UNIT, E2E), rerun_ids=reruns)


def beside(check: Check, number: int, source_id: str) -> Check:
    """Another check of the same name, in a suite of its own."""
    return replace(check, id=str(number), group=f"g{number}", source_id=source_id)


FAILING = a_check("unit", FAILED)


@pytest.mark.parametrize(
    ("checks", "failing"),
    [
        ((), {}),
        ((FAILING,), {"unit": {"1"}}),
        ((a_check("unit", PASSED),), {}),
        ((a_check("unit", RUNNING),), {}),
        ((a_check("docs", FAILED),), {}),
        ((FAILING, a_check("unit", PASSED, 2)), {}),
        ((FAILING, a_check("unit", FAILED, 2)), {"unit": {"2"}}),
        ((FAILING, beside(FAILING, 2, "9")), {"unit": {"1", "2"}}),
        ((a_check("e2e", FAILED, 1, "9"),), {}),
        ((a_check("e2e", FAILED), a_check("e2e", FAILED, 2, "9")), {"e2e": {"1"}}),
        ((FAILING, a_check("e2e", FAILED, 2)), {"unit": {"1"}, "e2e": {"2"}}),
    ],
)
def test_the_newest_failed_reports_of_required_checks_are_explained(
    checks: tuple[Check, ...], failing: dict[str, set[str]]
) -> None:
    assert failed_checks.failing_of(a_run(*checks)) == failing


def test_the_failed_job_of_a_check_that_cannot_pass_any_more_is_explained() -> None:
    doomed = (Doomed("unit", "leg", "7", "g1"),)
    run = replace(a_run(a_check("unit", RUNNING), a_check("e2e", FAILED, 2)), doomed=doomed)
    assert failed_checks.failing_of(run) == {"unit": {"7"}, "e2e": {"2"}}


def test_a_check_that_has_ended_is_judged_by_its_end_and_not_by_what_was_foreseen() -> None:
    doomed, leg = (Doomed("unit", "leg", "7", "g1"),), replace(a_check("leg", FAILED, 7), raw="red")
    for outcome, conclusion in ((RUNNING, "red"), (FAILED, "timed_out")):
        unit = replace(a_check("unit", outcome), raw="timed_out")
        run = replace(a_run(unit, leg), doomed=doomed)
        assert failed_checks.conclusions_of(run)["unit"] == conclusion
    assert failed_checks.conclusions_of(replace(run, checks=(leg,)))["unit"] == "red"
    assert failed_checks.conclusions_of(a_run(FAILING))["unit"] == FAILING.raw


def test_a_report_that_is_run_again_is_not_explained() -> None:
    other = beside(FAILING, 2, "9")
    assert failed_checks.failing_of(a_run(FAILING, other, reruns=("1",))) == {"unit": {"2"}}


def test_a_run_is_explained_when_each_of_its_failures_is() -> None:
    run = a_run(FAILING, a_check("e2e", FAILED, 2))
    assert not failed_checks.is_explained(run)
    for names, is_explained in ((("unit",), False), (("unit", "e2e", "docs"), True)):
        said = Evidence(run.attempt, dict.fromkeys(names, Explanation.UNEXPLAINED))
        assert failed_checks.is_explained(replace(run, evidence=said)) is is_explained


def test_a_check_that_two_apps_must_report_fails_by_both() -> None:
    both = (RequiredName("unit", "7"), RequiredName("unit", "9"))
    run = replace(a_run(FAILING, beside(FAILING, 2, "9")), required=both)
    assert failed_checks.failing_of(run) == {"unit": {"1", "2"}}
