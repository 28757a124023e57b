"""The evidence for each required check of a run says no more than was reported."""

from dataclasses import replace

import pytest

from service.mergequeue.engine import checked
from service.mergequeue.engine.checked import Ended, Place
from service.mergequeue.engine.model import Detail, Run
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Evidence
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus
from service.vocabulary import CheckKind, CheckOutcome, Explanation, RequiredName
from tests.wording import builders
from tests.wording.stories import RUN, a_check, a_passed_run

PASSED, FAILED, SKIPPED = CheckOutcome.PASSED, CheckOutcome.FAILED, CheckOutcome.SKIPPED


def a_run_of(outcomes: dict[str, CheckOutcome | None], **more: object) -> Run:
    """A run of these required names, each with one report or none."""
    checks = tuple(a_check(name, one) for name, one in outcomes.items() if one is not None)
    required = tuple(RequiredName(name) for name in outcomes)
    return a_passed_run(required=required, checks=checks, **more)


@pytest.mark.parametrize(
    ("outcome", "ended"),
    [
        (PASSED, Ended.PASSED),
        (SKIPPED, Ended.SKIPPED),
        (FAILED, Ended.FAILED),
        (CheckOutcome.RUNNING, Ended.OPEN),
        (CheckOutcome.INTERRUPTED, Ended.OPEN),
        (CheckOutcome.BLOCKED, Ended.OPEN),
        (CheckOutcome.UNKNOWN, Ended.OPEN),
        (None, Ended.OPEN),
    ],
)
def test_only_a_report_that_passed_is_told_as_passed(outcome, ended):
    (one,) = checked.checked_of(a_run_of({"unit": outcome}))
    assert one.ended is ended
    assert (one.reporter is None) == (outcome is None)


def test_a_check_names_its_report_its_commit_and_its_run():
    run = a_run_of({"unit": PASSED})
    (one,) = checked.checked_of(run)
    assert (one.run, one.sha, one.place) == (run.id, run.sha, Place.TEST_BRANCH)
    assert one.reporter is not None
    assert one.reporter.kind is CheckKind.SUITE_RUN
    assert (one.reporter.app_id, one.reporter.check_id) == ("15368", "1")
    assert one.url == run.checks[0].url


def test_the_checks_of_a_direct_merge_are_those_of_the_head():
    (one,) = checked.checked_of(a_run_of({"unit": PASSED}, kind=RunKind.DIRECT))
    assert (one.place, one.ended) == (Place.HEAD, Ended.PASSED)


def test_an_excused_failure_names_its_tests_and_is_not_told_as_passed():
    evidence = Evidence(
        1, {"unit": Explanation.QUARANTINED}, failed_tests={"unit": ("t1", "t2"), "lint": ("t3",)}
    )
    run = a_run_of({"unit": FAILED, "lint": PASSED}, excused=("unit",), evidence=evidence)
    unit, lint = checked.checked_of(run, names={"t1": "tests/cart.py::test_total"})
    assert (unit.ended, unit.tests) == (Ended.EXCUSED, ("tests/cart.py::test_total", "t2"))
    assert (lint.ended, lint.tests) == (Ended.PASSED, ())


def test_a_reused_result_names_the_run_that_has_the_report():
    origin = a_run_of({"unit": PASSED})
    run = a_run_of({"unit": None}, id="r2", reused_from=origin.id)
    (one,) = checked.checked_of(run, origin)
    assert (one.ended, one.run, one.sha) == (Ended.REUSED, RUN, origin.sha)
    assert one.reporter is not None
    (unknown,) = checked.checked_of(run)
    assert (unknown.ended, unknown.run, unknown.reporter) == (Ended.REUSED, RUN, None)


def test_a_report_that_was_taken_back_since_is_not_told_as_reused():
    origin = replace(a_run_of({"unit": PASSED}), revoked=("1",))
    run = a_run_of({"unit": None}, id="r2", reused_from=origin.id)
    (one,) = checked.checked_of(run, origin)
    assert (one.ended, one.because) == (Ended.FAILED, checked.REVOKED)


def test_a_run_without_a_change_of_its_own_has_no_checks():
    assert checked.checked_of(a_run_of({"unit": None}, contained=True)) == ()


def test_a_check_that_ci_skipped_because_of_another_names_that_one():
    skipped = replace(a_check("all-green", FAILED), raw="skipped")
    run = a_run_of({"all-green": None}, status=RunStatus.FAILED)
    (one,) = checked.checked_of(replace(run, checks=(skipped, a_check("unit", FAILED))))
    assert (one.ended, one.because) == (Ended.FAILED, "it was skipped because `unit` failed")


def test_a_check_that_was_skipped_and_counts_as_failed_says_so():
    skipped = replace(a_check("unit", FAILED), raw="skipped")
    run = replace(a_run_of({"unit": None}, status=RunStatus.FAILED), checks=(skipped,))
    (one,) = checked.checked_of(run)
    assert one.because == "it was skipped or neutral, which counts as failed"


def test_the_run_that_verified_an_entry_counts_and_not_its_own_that_failed():
    cleared = builders.an_entry(
        EntryState.TESTS_PASSED, Reason.SUCCESSOR_PASSED, run="own", verified_by="later"
    )
    assert checked.judging_run_of(cleared) == "later"
    convicted = builders.an_entry(
        EntryState.FAILED, Reason.REQUIRED_STATUS_FAILED, run="own", detail=Detail(run="again")
    )
    assert checked.judging_run_of(convicted) == "again"
