"""A report excuses failures only if nothing is missing in it; what is missing has a sentence."""

from dataclasses import replace
from typing import Any

import pytest

from service.provenance import Proof
from service.testhealth.detector import completeness
from service.testhealth.detector.completeness import (
    NO_CODES,
    NO_HISTORY,
    UNPROVED,
    UNPROVED_HISTORY,
    Account,
    Changes,
    ExitCodes,
    Expectation,
    JobReport,
    MissingTest,
    Part,
)

MAIL = MissingTest("mail", "tests/mail.py", "Cart")
NEAR = replace(MAIL, has_neighbors=True)
ENDED = Account(exit_code=1, runner="pytest")
WHOLE = JobReport("unit", (Part(ENDED, failed=1),), Expectation(expected=200))
FIRST = replace(ENDED, session="s", session_uploads=2)


def gaps_of(
    report: JobReport, *, deleted: MissingTest | None = None, touched: MissingTest | None = None
) -> tuple[str, ...]:
    changes = Changes(lambda test: test == deleted, lambda test: test in (deleted, touched))
    return completeness.gaps_of(report, changes)


def expecting(*missing: MissingTest, expected: int = 200, **more: Any) -> JobReport:
    return replace(WHOLE, expectation=Expectation(expected, missing, **more))


def of_parts(*parts: Part) -> JobReport:
    return replace(WHOLE, parts=parts)


def ended(
    code: int | None, runner: str = "", failed: int = 1, codes: ExitCodes = NO_CODES
) -> JobReport:
    report = of_parts(Part(Account(exit_code=code, runner=runner, command_key="k"), failed))
    return replace(report, codes=codes)


def test_a_report_without_a_gap_is_complete():
    assert gaps_of(WHOLE) == ()


def test_a_repository_that_has_never_reported_excuses_nothing():
    assert gaps_of(replace(WHOLE, expectation=None)) == (NO_HISTORY,)


GONE = (
    "1 of 200 tests that `unit` reported on the target branch is missing,"
    " such as `tests/mail.py::mail`"
)


def test_one_missing_test_of_many_is_a_gap():
    assert gaps_of(expecting(MAIL)) == (GONE,)


def test_a_missing_test_is_explained_by_the_deletion_of_its_file():
    assert gaps_of(expecting(MAIL), deleted=MAIL) == ()


def test_a_file_that_is_silent_is_not_explained_by_a_change_of_it():
    assert gaps_of(expecting(MAIL), touched=MAIL) == (GONE,)


def test_a_test_that_is_gone_from_a_file_with_others_is_explained_by_a_change_of_it():
    assert gaps_of(expecting(NEAR), touched=NEAR) == ()
    assert gaps_of(expecting(NEAR)) == (GONE,)


def test_tests_that_are_not_named_are_missing_all_the_same():
    (gap,) = gaps_of(expecting(MAIL, unnamed=40), deleted=MAIL)
    assert gap.startswith("40 of 200 tests")


def test_a_skip_of_a_test_that_passed_is_explained_by_a_change_of_its_file():
    report = expecting(skipped=(MAIL,))
    assert gaps_of(report, touched=MAIL) == ()
    assert gaps_of(report) == (
        "1 test that passed on the target branch is skipped, such as `tests/mail.py::mail`",
    )


def test_a_missing_test_without_a_file_is_named_by_its_class():
    (gap,) = gaps_of(expecting(MissingTest("mail", "", "Cart"), expected=1))
    assert gap.endswith("such as `Cart::mail`")


def test_names_of_strangers_stay_in_their_code_span():
    odd = MissingTest("a` @octo\n# b", "", "")
    (gap,) = gaps_of(expecting(odd, expected=1))
    assert gap.endswith("such as `a' @octo # b`")


def test_a_job_that_is_new_excuses_nothing():
    (gap,) = gaps_of(replace(WHOLE, expectation=Expectation(0)))
    assert gap.startswith("`unit` has not reported on the target branch yet")


@pytest.mark.parametrize(
    ("code", "runner", "failed"),
    [
        (0, "", 1),
        (1, "pytest", 3),
        (1, "gotestsum", 1),
        (100, "cargo nextest", 1),
        (3, "bazel test", 1),
        (8, "ctest", 2),
        (4, "mocha", 4),
        (140, "mocha", 140),
        (250, "robot", 400),
    ],
)
def test_codes_by_which_runners_say_that_tests_failed_and_nothing_else(code, runner, failed):
    assert gaps_of(ended(code, runner, failed)) == ()


LEARNED = frozenset({("k", 2)})
UNSHOWN = (
    "the command ended with {code}, and nothing shows that it does so for failed tests alone:"
    " see `test_failure_exit_codes`"
)


@pytest.mark.parametrize(
    "runner", ["", "jest", "vitest", "pytest-cov", "phpunit", "sh", "make", "npm", "mvn", "rspec"]
)
@pytest.mark.parametrize("code", [1, 2])
def test_codes_that_other_faults_cause_as_well_prove_nothing(code, runner):
    assert gaps_of(ended(code, runner)) == (UNSHOWN.format(code=code),)


@pytest.mark.parametrize("codes", [ExitCodes(named=frozenset({2})), ExitCodes(learned=LEARNED)])
def test_a_code_that_is_named_or_was_learned_means_failed_tests(codes):
    assert gaps_of(ended(2, "make", 1, codes)) == ()
    assert gaps_of(ended(3, "make", 1, codes)) == (UNSHOWN.format(code=3),)
    # Whatever it means, tests did not cause it.
    assert gaps_of(ended(2, "make", 0, codes)) == (
        "the command ended with 2, but none of its tests failed",
    )


def test_a_code_is_learned_for_one_command_alone():
    other = ExitCodes(learned=frozenset({("other", 2)}))
    assert gaps_of(ended(2, "make", 1, other)) == (UNSHOWN.format(code=2),)


def test_a_failure_without_an_exit_code_is_explained_only_by_a_setting():
    (gap,) = gaps_of(ended(None))
    assert gap.startswith("the exit code of the command is not known")
    assert gaps_of(ended(None, codes=ExitCodes(names_failure=True))) == ()
    assert gaps_of(ended(None, failed=0)) == ()


@pytest.mark.parametrize(
    ("code", "runner", "failed", "said"),
    [
        (2, "pytest", 1, "the command ended with 2, but failed tests alone end with 1"),
        (7, "mocha", 4, "the command ended with 7, but failed tests alone end with 4"),
        (1, "mocha", 4, "the command ended with 1, but failed tests alone end with 4"),
        (139, "sh", 1, "the command was ended by signal 11 (exit code 139)"),
    ],
)
def test_codes_that_say_more_than_that_tests_failed(code, runner, failed, said):
    assert gaps_of(ended(code, runner, failed)) == (said,)


def test_failures_of_one_command_are_counted_over_all_its_uploads():
    account = replace(FIRST, exit_code=5, runner="mocha")
    assert gaps_of(of_parts(Part(account, 2), Part(account, 3))) == ()


def test_an_exit_code_that_the_job_has_never_sent_is_not_missing():
    assert gaps_of(replace(ended(None, failed=0), expectation=Expectation(200))) == ()


def test_an_exit_code_that_the_job_used_to_send_must_be_sent():
    report = replace(ended(None, failed=0), expectation=Expectation(200, has_exit_code=True))
    assert gaps_of(report) == (
        "the exit code of the command is missing, which earlier uploads of this job sent",
    )
    assert gaps_of(replace(WHOLE, expectation=Expectation(200, has_exit_code=True))) == ()


def test_uploads_that_were_announced_must_arrive():
    assert gaps_of(of_parts(Part(FIRST, 1))) == ("1 of 2 uploads has not arrived",)
    assert gaps_of(of_parts(Part(FIRST, 1), Part(FIRST, 0))) == ()
    other = replace(FIRST, session="t")
    assert len(gaps_of(of_parts(Part(FIRST, 1), Part(other, 1)))) == 2
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
        (Part(ENDED, 1, is_partial=True), "a report file could not be read to its end"),
        (
            Part(replace(ENDED, undelivered=2), 1),
            "its files declare 2 tests more than they hold",
        ),
        (
            Part(replace(ENDED, unread_failures=1), 1),
            "its files declare 1 failure more than they hold",
        ),
        (
            Part(replace(ENDED, unknown_words=("incomplete", "<timeout>")), 1),
            "its files name outcomes that are not known: `incomplete`, `<timeout>`",
        ),
        (
            Part(replace(ENDED, is_interrupted=True), 1),
            "a report file shows that its runner was stopped before its end",
        ),
        (Part(replace(ENDED, unsent_files=1), 1), "1 report file could not be sent"),
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
    excused = of_parts(Part(replace(ENDED, answered=0), 1))
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
    proved = Part(replace(ENDED, proof=Proof.JOB), 1, needs=Proof.JOB)
    part = Part(replace(ENDED, proof=proof), 1, needs=needs)
    assert gaps_of(of_parts(proved, part)) == said


def test_unproved_results_of_the_target_branch_say_nothing_of_a_job():
    unproved = replace(WHOLE, expectation=Expectation(0, is_unproved=True))
    assert gaps_of(unproved) == (UNPROVED_HISTORY.format(job="`unit`"),)
