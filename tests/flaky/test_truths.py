"""What real runners wrote of tests whose names say what is true, with retries, projects, stops."""

import re

import pytest

from service.testhealth.reports import duplicates, identity, reports, results
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import CaseKind, FileStatus, Outcome, WarningCode
from tests.flaky.recorded import record
from tests.flaky.recorded.record import AGAIN, HERE, RUNNERS
from tests.flaky.recorded.truths import TRUTHS

REPOSITORY = RepositoryKey("org", "host/owner/name")

RETRIED = ("pytest-rerunfailures", "pytest-rerunfailures-xunit1", "pytest-flaky")
HIDDEN = ("pytest-retry",)
PLAIN = ("pytest-teardown", "pytest-stopped", "node-todo", "go", "playwright-projects")
# Names of tests around others, and of a package that was not built: they are no samples.
AROUND = {"TestParent": Outcome.PASSED, "TestParentItself": Outcome.FAILED}

COUNTS = {
    "pytest-rerunfailures": "6 tests: 4 passed, 1 failed, 1 skipped, 9 attempts",
    "pytest-rerunfailures-xunit1": "6 tests: 4 passed, 1 failed, 1 skipped, 9 attempts",
    "pytest-flaky": "6 tests: 4 passed, 1 failed, 1 skipped, 9 attempts",
    "pytest-retry": "6 tests: 4 passed, 1 failed, 1 skipped, 6 attempts",
    "pytest-teardown": "4 tests: 1 passed, 3 failed, 0 skipped, 4 attempts",
    "pytest-rerunfailures-teardown": "4 tests: 1 passed, 3 failed, 0 skipped, 8 attempts",
    "pytest-stopped": "1 tests: 0 passed, 1 failed, 0 skipped, 1 attempts",
    "jest-twins": "3 tests: 2 passed, 1 failed, 0 skipped, 3 attempts",
    "node-todo": "5 tests: 1 passed, 1 failed, 3 skipped, 5 attempts",
    "playwright-projects": "12 tests: 6 passed, 4 failed, 2 skipped, 12 attempts",
    "go": "7 tests: 4 passed, 3 failed, 0 skipped, 7 attempts",
}


def recorded(name, folder=HERE):
    """The report of a runner, read."""
    (path,) = folder.glob(f"{name}.*")
    return reports.read(path.read_bytes(), None, ReadOptions(source_root="/build"))


def results_of(report):
    """Each test's result by what tells it apart."""
    keys = [results.fields_of(case) for case in report.cases]
    found = duplicates.sorted_by_test(keys, report.cases)
    passed = {key: duplicates.result_of([case]) for key, case in found.passed.items()}
    return {**passed, **found.others}


def truth_of(case):
    """The attempts that the name of a sample test tells."""
    words = re.sub(r"[^a-z]+", "_", case.name.lower())
    if "passes_but_in" in words and words.endswith(case.variant):
        words = "fails_always"
    return next(truth.attempts for truth in TRUTHS if truth.words in words)


def ids_of(report):
    """The ids of all tests of a report."""
    return set(identity.ids_of(REPOSITORY, report.cases))


@pytest.mark.parametrize("name", RETRIED)
def test_each_attempt_of_a_retried_test_counts_as_it_ended(name):
    found = results_of(recorded(name))
    assert len(found) == 6
    for result in found.values():
        outcomes = tuple(attempt.outcome for attempt in result.attempts)
        assert (outcomes, result.is_comparable) == (truth_of(result), True)


def test_a_tear_down_that_fails_too_leaves_its_test_failed_in_every_attempt():
    for name, attempts in (("pytest-teardown", 2), ("pytest-rerunfailures-teardown", 4)):
        found = {key[0]: each for key, each in results_of(recorded(name)).items()}
        result = found["test_fails_and_teardown_errors"]
        assert [each.outcome for each in result.attempts] == [Outcome.FAILED] * attempts
        assert result.is_comparable
        assert [each.is_error for each in result.attempts][-1]


@pytest.mark.parametrize("name", [*HIDDEN, *PLAIN])
def test_a_test_ends_as_its_name_says(name):
    for key, result in results_of(recorded(name)).items():
        if result.kind is CaseKind.TEST:
            expected = AROUND.get(key[0]) or truth_of(result)[-1]
            assert result.final_outcome is expected, key


@pytest.mark.parametrize("name", COUNTS)
def test_a_recorded_report_counts_each_test_once(name):
    counts = results.counts_of([recorded(name)])
    assert COUNTS[name] == (
        f"{counts.tests} tests: {counts.passed} passed, {counts.failed} failed, "
        f"{counts.skipped} skipped, {counts.attempts} attempts"
    )


@pytest.mark.parametrize("name", sorted(set(COUNTS) - {"go"}))
def test_a_recorded_report_holds_what_it_declares(name):
    report = recorded(name)
    assert report.declared
    assert report.declared.tests == report.declared.held
    assert WarningCode.COUNTS_DIFFER not in {each.code for each in report.warnings}
    assert report.is_whole is (name != "pytest-stopped")


def test_a_run_that_stopped_before_its_end_is_not_whole():
    report = recorded("pytest-stopped")
    assert (report.status, report.is_interrupted) == (FileStatus.ACCEPTED, True)


def test_two_tests_of_one_name_are_no_attempts_of_each_other():
    found = {key[0]: each for key, each in results_of(recorded("jest-twins")).items()}
    twins = found["cart passes or fails"]
    assert (twins.outcome, twins.is_comparable) == (Outcome.FAILED, False)


def test_each_project_of_playwright_is_judged_by_itself():
    found = results_of(recorded("playwright-projects"))
    assert len(found) == 12
    assert {result.variant for result in found.values()} == {"chromium", "webkit"}
    assert all(result.is_comparable for result in found.values())
    assert len(ids_of(recorded("playwright-projects"))) == 12


def test_a_package_that_does_not_build_is_a_failure_outside_of_every_test():
    (broken,) = (case for case in recorded("go").cases if case.kind is CaseKind.SYNTHETIC)
    (attempt,) = broken.attempts
    assert (broken.name, broken.classname) == ("(package)", "example.org/shop/tax")
    assert attempt.is_error
    assert 'cannot use "none"' in attempt.message


@pytest.mark.parametrize("path", sorted(AGAIN.iterdir()), ids=lambda path: path.stem)
def test_no_test_has_another_id_a_second_later(path):
    first, second = recorded(path.stem), recorded(path.stem, AGAIN)
    assert ids_of(first) == ids_of(second)
    assert ids_of(first)


def test_every_runner_of_truths_was_run_twice():
    assert set(COUNTS) <= {path.stem for path in AGAIN.iterdir()} <= set(RUNNERS)
    assert record.BETWEEN_S > 1
