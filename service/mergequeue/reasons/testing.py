"""Reasons of an entry that is tested, has passed, or has failed without a known cause yet."""

from service.mergequeue.reasons.record import AUTHOR, Blame, Ending, Record

FAILED = ("❌", " failed")
"""The mark and the words for a check that failed."""

OWN_CHECKS = "its own head contains the newest {target} and needed no test run[: {checked}]"
_TIMED_OUT = "timed out[ after {testing_minutes} min]"

RECORDS = (
    Record("test_started", testing="its required checks run on a test branch"),
    Record("run_passed", word="TEST_RUN_PASSED", passed="{checked|its test run passed}"),
    Record(
        "passed_excused",
        passed="{checked|only quarantined tests failed, so the run counts as passed}",
    ),
    Record(
        "successor_passed",
        word="SUCCESSOR_TEST_RUN_PASSED",
        passed="the tests of {prs|a PR behind it}, which contain it, passed[; {specials}]",
    ),
    Record(
        "result_reused",
        word="PASSED_BY_OPTIMIZATION",
        passed="the same code passed before, and that result is reused",
    ),
    Record("own_checks_passed", passed=OWN_CHECKS),
    Record("late_success", passed="{checked|its test run passes now}"),
    Record("check_failed", undecided="{checks|a required check} failed", mark=FAILED),
    Record(
        "run_timed_out",
        who=AUTHOR,
        word="TEST_RUN_TIMEOUT",
        retryable=True,
        blame=Blame.TESTS,
        undecided=_TIMED_OUT,
        failed=Ending(
            clause=_TIMED_OUT,
            label="timed out",
            next="Comment {merge} to queue it again. If the checks need more time, a maintainer "
            "first raises the setting `testingTimeoutMinutes` of the queue.",
        ),
        mark=("⌛", " did not pass in time"),
    ),
)
