"""What runners say of their own ends: each reason has its sentence, and each word its bound."""

from dataclasses import replace
from itertools import product

import pytest

from service.testhealth.detector import completeness, runner_ends
from service.testhealth.detector.completeness import (
    Account,
    Changes,
    ExitCodes,
    Expectation,
    JobReport,
    MissingTest,
    Part,
)
from service.testhealth.detector.runner_ends import Command
from service.testhealth.runner_ends import EndReason, FileError, RunnerEnd

MAIL = MissingTest("mail", "tests/mail.py", "Cart")
FAILED = RunnerEnd("1", "pytest", EndReason.TESTS_FAILED, 1, planned=4, passed=3, failed=1)
BROKEN = FileError("tests/b.py", "SyntaxError: `x`")
TOUCHED = Changes(lambda _: False, lambda test: test == MAIL)


def gaps_of(
    *ends: RunnerEnd,
    runner: str = "pytest-cov",
    code: int | None = 1,
    missing: tuple[MissingTest, ...] = (),
    codes: ExitCodes = completeness.NO_CODES,
    speaking: tuple[str, ...] = ("pytest", "jest"),
) -> tuple[str, ...]:
    part = Part(Account(exit_code=code, runner=runner), 1, tests=4, ends=ends)
    report = JobReport(
        "unit", (part,), Expectation(9, missing, speaking=frozenset(speaking)), codes=codes
    )
    return completeness.gaps_of(report, TOUCHED)


def test_a_runner_that_only_failed_tests_explains_its_code():
    assert len(gaps_of()) == 1
    assert gaps_of(FAILED) == ()
    named = replace(FAILED, runner="jest")
    assert gaps_of(named, runner="jest") == ()
    assert gaps_of(replace(named, exit_code=2), runner="jest", code=2) == ()


def test_a_runner_that_is_silent_on_the_target_branch_explains_nothing():
    (gap,) = gaps_of(FAILED, speaking=("jest",))
    assert gap.startswith("the command ended with 1, and nothing shows")
    assert len(gaps_of(FAILED, runner="pytest", missing=(MAIL,), speaking=())) == 1
    threshold = replace(FAILED, reason=EndReason.THRESHOLD)
    assert any("a threshold was missed" in gap for gap in gaps_of(threshold, speaking=()))


@pytest.mark.parametrize("runner", ["sh", "make", "npm", "", "jest"])
def test_the_word_of_a_runner_explains_no_command_that_is_more_than_the_runner(runner):
    (gap,) = gaps_of(FAILED, runner=runner)
    assert gap.startswith("the command ended with 1, and nothing shows")
    # A program that nobody has written a plug-in for cannot say what its code means.
    assert gaps_of(replace(FAILED, runner="sh"), runner="sh") == (gap,)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (RunnerEnd("1", "pytest", EndReason.KILLED), "`pytest` began and never said how it ended"),
        (
            replace(FAILED, reason=EndReason.THRESHOLD),
            "`pytest` says that a threshold was missed, such as that of the coverage",
        ),
        (
            replace(FAILED, reason=EndReason.INTERRUPTED),
            "`pytest` says that it was interrupted",
        ),
        (
            replace(FAILED, reason=EndReason.INTERNAL),
            "`pytest` says that it ended by an error of its own",
        ),
        (
            replace(FAILED, reason=EndReason.USAGE),
            "`pytest` says that it was started in a wrong way",
        ),
        (
            replace(FAILED, reason=EndReason.STOPPED_EARLY),
            "`pytest` says that it stopped before its end",
        ),
        (
            RunnerEnd("1", "pytest", EndReason.NO_TESTS, 5),
            "`pytest` says that it found no test",
        ),
        (
            replace(FAILED, reason=EndReason.UNLOADED, unloaded=(BROKEN,)),
            "`tests/b.py` did not load: `SyntaxError: 'x'`",
        ),
        (
            replace(FAILED, reason=EndReason.ERROR_OUTSIDE, errors_outside=(BROKEN,)),
            "an error outside of the tests of `tests/b.py`: `SyntaxError: 'x'`",
        ),
        (
            replace(FAILED, errors_outside=(FileError("", "gone"),)),
            "an error outside of the tests: `gone`",
        ),
        (
            replace(FAILED, reason=EndReason.UNLOADED),
            "`pytest` says that files did not load, and names none",
        ),
        (
            replace(FAILED, reason=EndReason.ERROR_OUTSIDE),
            "`pytest` says that there were errors outside of the tests, and names none",
        ),
        (replace(FAILED, planned=6, not_run=2), "`pytest` did not run 2 of 6 tests"),
        (replace(FAILED, planned=5), "`pytest` ran 5 tests, and its report files have 4"),
        (
            replace(FAILED, failed=2),
            "`pytest` counts 2 failed tests, and its report files have 1",
        ),
        (
            replace(FAILED, reason=EndReason.PASSED),
            "`pytest` gives `passed` as its end, and counts 1 failed test",
        ),
        (
            replace(FAILED, failed=0),
            "`pytest` gives `tests_failed` as its end, and counts 0 failed tests",
        ),
        (
            replace(FAILED, exit_code=3),
            "the command ended with 1, and `pytest` says that it ends with 3",
        ),
        (
            replace(FAILED, reason=EndReason.PASSED, failed=0, exit_code=0),
            "the command ended with 1, and `pytest` says that it ends with 0",
        ),
    ],
)
def test_any_other_end_is_a_gap_whatever_the_tables_and_settings_say(end, said):
    found = gaps_of(end, runner="pytest", codes=ExitCodes(named=frozenset({1})))
    assert said in found
    # Behind a script as well, except what only the runner's own command can show.
    about_code = "says that it ends with" in said
    assert (said in gaps_of(end, runner="sh")) is not about_code


def test_a_runner_that_passes_without_a_test_is_no_gap():
    empty = RunnerEnd("2", "pytest", EndReason.NO_TESTS, 0)
    named = ExitCodes(named=frozenset({1}))
    assert gaps_of(FAILED, empty, runner="sh", codes=named) == ()


def test_files_that_did_not_load_are_named_up_to_a_number():
    many = tuple(FileError(f"tests/{n}.py", "no") for n in range(5))
    end = replace(FAILED, reason=EndReason.UNLOADED, unloaded=many, unloaded_more=10)
    *named, rest = gaps_of(end)
    assert len(named) == runner_ends.ERRORS_NAMED_MAX
    assert rest == "`pytest` names 12 files more that did not load"


def test_one_run_that_ends_in_two_ways_is_a_gap():
    other = replace(FAILED, passed=2, skipped=1)
    assert "`pytest` says two things about the end of one run" in gaps_of(FAILED, other)
    # Each upload of a command repeats the same words.
    part = Part(Account(exit_code=1, runner="pytest", session="s"), 1, tests=2, ends=(FAILED,))
    report = JobReport("unit", (part, replace(part, failed=0)), Expectation(4))
    assert completeness.gaps_of(report, TOUCHED) == ()


def test_a_line_that_is_added_takes_no_gap_away():
    """An honest end, and any line beside it that the code under test writes."""
    honest = [
        replace(FAILED, reason=reason, exit_code=code, failed=failed)
        for reason in EndReason
        for code in (0, 1)
        for failed in (0, 1)
    ]
    added = [
        replace(FAILED, run="2", runner=runner, reason=reason, exit_code=code, planned=0)
        for runner in ("pytest", "jest")
        for reason, code in ((EndReason.TESTS_FAILED, 1), (EndReason.PASSED, None))
    ]
    for end, line in product(honest, added):
        for runner, code in product(("pytest", "pytest-cov", "sh"), (0, 1)):
            is_held = gaps_of(end, runner=runner, code=code) != ()
            is_held_still = gaps_of(end, line, runner=runner, code=code) != ()
            assert is_held_still or not is_held, (end, line, runner, code)


def test_a_silent_file_has_loaded_if_its_runner_says_so():
    assert len(gaps_of(runner="pytest", missing=(MAIL,))) == 1
    assert gaps_of(FAILED, missing=(MAIL,)) == ()
    unloaded = replace(FAILED, reason=EndReason.UNLOADED, unloaded=(BROKEN,))
    found = gaps_of(unloaded, missing=(MAIL,))
    assert any("1 of 9 tests" in gap for gap in found)
    # Another runner behind the script may have been silent.
    assert any("1 of 9 tests" in gap for gap in gaps_of(FAILED, runner="sh", missing=(MAIL,)))
    untouched = MissingTest("total", "tests/total.py", "Cart")
    assert len(gaps_of(FAILED, missing=(untouched,))) == 1


def test_every_command_of_a_job_must_have_loaded_its_files():
    told = Command("pytest", 1, (FAILED,), tests=4, failed=1)
    silent = replace(told, ends=())
    assert runner_ends.have_loaded_all([told])
    assert not runner_ends.have_loaded_all([told, silent])
    assert not runner_ends.have_loaded_all([])


def test_a_code_that_nobody_knows_is_not_explained():
    unknown = replace(FAILED, exit_code=None)
    (gap,) = gaps_of(unknown, runner="pytest-cov")
    assert gap.startswith("the command ended with 1, and nothing shows")
    assert len(gaps_of(unknown, code=None)) == 1
    signal = replace(FAILED, exit_code=139)
    assert gaps_of(signal, code=139) == ("the command was ended by signal 11 (exit code 139)",)
