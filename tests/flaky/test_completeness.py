"""A report excuses failures only if nothing is missing in it; what is missing has a sentence."""

from dataclasses import replace

import pytest

from service.provenance import Proof
from service.testhealth.detector import completeness
from service.testhealth.detector.completeness import (
    NO_HISTORY,
    UNPROVED,
    Account,
    Expectation,
    JobReport,
    MissingTest,
    Part,
)

MAIL = MissingTest("mail", "tests/mail.py", "Cart")
WHOLE = JobReport("unit", (Part(Account(exit_code=1), failed=1),), Expectation(expected=200))
FIRST = Account(session="s", session_uploads=2)


def gaps_of(report: JobReport, *changed: MissingTest) -> tuple[str, ...]:
    return completeness.gaps_of(report, lambda test: test in changed)


def lacking(missing: int, *named: MissingTest, expected: int = 200) -> JobReport:
    return replace(WHOLE, expectation=Expectation(expected, missing, named))


def of_parts(*parts: Part) -> JobReport:
    return replace(WHOLE, parts=parts)


def ended(code: int | None, runner: str = "", failed: int = 1) -> JobReport:
    return of_parts(Part(Account(exit_code=code, runner=runner), failed))


def test_a_report_without_a_gap_is_complete():
    assert gaps_of(WHOLE) == ()


def test_a_repository_that_has_never_reported_excuses_nothing():
    assert gaps_of(replace(WHOLE, expectation=None)) == (NO_HISTORY,)


@pytest.mark.parametrize(("missing", "is_complete"), [(2, True), (3, False), (200, False)])
def test_one_expected_test_of_a_hundred_may_be_missing(missing, is_complete):
    assert (gaps_of(lacking(missing)) == ()) is is_complete


def test_a_test_in_a_changed_file_may_be_missing():
    report = lacking(1, MAIL, expected=2)
    assert gaps_of(report, MAIL) == ()
    assert gaps_of(report) == (
        "1 of 2 tests that `unit` reported on the target branch is missing,"
        " such as `tests/mail.py::mail`",
    )


def test_a_missing_test_without_a_file_is_named_by_its_class():
    (gap,) = gaps_of(lacking(1, MissingTest("mail", "", "Cart"), expected=1))
    assert gap.endswith("such as `Cart::mail`")


def test_names_of_strangers_stay_in_their_code_span():
    odd = MissingTest("a` @octo\n# b", "", "")
    (gap,) = gaps_of(lacking(1, odd, expected=1))
    assert gap.endswith("such as `a' @octo # b`")


def test_a_job_that_is_new_excuses_nothing():
    (gap,) = gaps_of(replace(WHOLE, expectation=Expectation(0)))
    assert gap.startswith("`unit` has not reported on the target branch yet")


@pytest.mark.parametrize(
    ("code", "runner", "failed"),
    [
        (None, "", 1),
        (0, "", 1),
        (1, "", 1),
        (1, "pytest", 3),
        (2, "phpunit", 1),
        (1, "pest", 1),
        (2, "pest", 1),
        (101, "cargo", 1),
        (100, "cargo", 1),
        (3, "bazel", 1),
        (4, "mocha", 4),
        (140, "mocha", 140),
        (1, "mocha", 4),
        (250, "robot", 400),
    ],
)
def test_codes_by_which_runners_say_that_tests_failed(code, runner, failed):
    assert gaps_of(ended(code, runner, failed)) == ()


@pytest.mark.parametrize(
    ("code", "runner", "failed", "said"),
    [
        (2, "pytest", 1, "the command ended with 2, but failed tests alone end with 1"),
        (2, "make", 1, "the command ended with 2, but failed tests alone end with 1"),
        (3, "phpunit", 1, "the command ended with 3, but failed tests alone end with 1 or 2"),
        (7, "mocha", 4, "the command ended with 7, but failed tests alone end with 4"),
        (139, "sh", 1, "the command was ended by signal 11 (exit code 139)"),
        (128, "sh", 1, "the command ended with 128, but failed tests alone end with 1"),
    ],
)
def test_codes_that_say_more_than_that_tests_failed(code, runner, failed, said):
    assert gaps_of(ended(code, runner, failed)) == (said,)


def test_failures_of_one_command_are_counted_over_all_its_uploads():
    account = replace(FIRST, exit_code=5, runner="mocha")
    assert gaps_of(of_parts(Part(account, 2), Part(account, 3))) == ()


def test_an_exit_code_that_the_job_has_never_sent_is_not_missing():
    assert gaps_of(replace(ended(None), expectation=Expectation(200))) == ()


def test_an_exit_code_that_the_job_used_to_send_must_be_sent():
    report = replace(ended(None), expectation=Expectation(200, has_exit_code=True))
    assert gaps_of(report) == (
        "the exit code of the command is missing, which earlier uploads of this job sent",
    )
    assert gaps_of(replace(ended(1), expectation=Expectation(200, has_exit_code=True))) == ()


def test_uploads_that_were_announced_must_arrive():
    assert gaps_of(of_parts(Part(FIRST, 1))) == ("1 of 2 uploads has not arrived",)
    assert gaps_of(of_parts(Part(FIRST, 1), Part(FIRST, 0))) == ()
    other = replace(FIRST, session="t")
    assert len(gaps_of(of_parts(Part(FIRST, 1), Part(other, 0)))) == 2
    assert not completeness.is_sealed([Part(FIRST, 1)])
    assert completeness.is_sealed([Part(FIRST, 1), Part(FIRST, 0)])


@pytest.mark.parametrize(
    "account", [replace(FIRST, session=""), replace(FIRST, session_uploads=None)]
)
def test_uploads_that_no_session_announces_are_not_awaited(account):
    assert completeness.is_sealed([Part(account, 1)])
    assert gaps_of(of_parts(Part(account, 1))) == ()


def test_failures_of_commands_without_a_session_are_counted_apart():
    account = Account(exit_code=2, runner="mocha")
    assert gaps_of(of_parts(Part(account, 2), Part(account, 2))) == ()


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (Part(Account(), 1, is_partial=True), "a report file could not be read to its end"),
        (Part(Account(undelivered=2), 1), "its files declare 2 tests more than they hold"),
        (
            Part(Account(is_interrupted=True), 1),
            "a report file shows that its runner was stopped before its end",
        ),
        (Part(Account(unsent_files=1), 1), "1 report file could not be sent"),
    ],
)
def test_files_must_be_whole(part, said):
    assert gaps_of(of_parts(part)) == (said,)


def test_the_ci_job_must_have_ended_by_a_failure_that_was_not_excused_before():
    for failed in ("failure", "failed", "error"):
        assert gaps_of(replace(WHOLE, conclusion=failed)) == ()
    # A command that passed was never excused.
    assert gaps_of(replace(ended(0), conclusion="failure")) == ()
    assert gaps_of(replace(WHOLE, conclusion="timed_out")) == (
        "the CI job ended as `timed_out`, not as `failure`",
    )
    excused = of_parts(Part(Account(exit_code=1, answered=0), 1))
    assert gaps_of(excused) == ()
    assert gaps_of(replace(excused, conclusion="failure")) == (
        "the command has ended with 0 already, so something else failed the CI job",
    )


def test_jobs_that_report_beside_it_must_report():
    assert gaps_of(replace(WHOLE, jobs_missing=("ci / e2e",))) == (
        "`ci / e2e` reported on the target branch and not in this CI run",
    )


@pytest.mark.parametrize(
    ("proof", "needs", "said"),
    [
        (Proof.NONE, Proof.JOB, (UNPROVED,)),
        (Proof.TOKEN, Proof.JOB, (UNPROVED,)),
        (Proof.RUN, Proof.JOB, (UNPROVED,)),
        (Proof.JOB, Proof.JOB, ()),
        (Proof.TOKEN, Proof.RUN, (UNPROVED,)),
        (Proof.RUN, Proof.RUN, ()),
        (Proof.JOB, Proof.RUN, ()),
        (Proof.NONE, Proof.TOKEN, (UNPROVED,)),
        (Proof.TOKEN, Proof.TOKEN, ()),
        (Proof.NONE, Proof.NONE, ()),
    ],
)
def test_results_of_a_test_run_excuse_only_when_they_are_proved_as_needed(proof, needs, said):
    proved = Part(Account(exit_code=1, proof=Proof.JOB), 0, needs=Proof.JOB)
    part = Part(Account(exit_code=1, proof=proof), 1, needs=needs)
    assert gaps_of(of_parts(proved, part)) == said
