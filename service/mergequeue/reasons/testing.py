"""Reasons of an entry that is tested, has passed, or has failed without a known cause yet."""

from service.mergequeue.reasons.record import (
    AUTHOR,
    RESUBMIT,
    WAIT,
    Blame,
    Ending,
    Record,
)

FAILED = ("❌", " failed")
"""The mark and the words for a check that failed."""

OWN_CHECKS = "its own head contains the newest {target} and needed no test run[: {checked}]"
_TIMED_OUT = "timed out[ after {testing_minutes} min]"

RECORDS = (
    Record("test_started", next=WAIT, testing="its required checks run on a test branch"),
    Record("run_passed", next=WAIT, word="TEST_RUN_PASSED", passed="{checked|its test run passed}"),
    Record(
        "passed_excused",
        next=WAIT,
        passed="{checked|only quarantined tests failed, so the run counts as passed}",
    ),
    Record(
        "successor_passed",
        next=WAIT,
        word="SUCCESSOR_TEST_RUN_PASSED",
        passed="the tests of {prs|a PR behind it}, which contain it, passed[; {specials}]",
    ),
    Record(
        "result_reused",
        next=WAIT,
        word="PASSED_BY_OPTIMIZATION",
        passed="the same code passed before, and that result is reused",
    ),
    Record("own_checks_passed", next=WAIT, passed=OWN_CHECKS),
    Record("late_success", next=WAIT, passed="{checked|its test run passes now}"),
    Record(
        "failure_taken_back",
        next=WAIT,
        pending="a failure that was foreseen did not come",
        testing="its required checks run on: the failure that was foreseen is taken back",
    ),
    Record(
        "check_failed",
        next=WAIT,
        undecided="{failed_checks|a required check failed}",
        mark=FAILED,
    ),
    Record(
        "run_timed_out",
        next=RESUBMIT,
        who=AUTHOR,
        word="TEST_RUN_TIMEOUT",
        retryable=True,
        blame=Blame.TESTS,
        undecided=_TIMED_OUT,
        failed=Ending(
            clause=_TIMED_OUT,
            label="timed out",
            next="Repair what hangs or is slow and push, or let a maintainer raise the setting "
            "`testingTimeoutMinutes` of the queue, then comment {merge} again.",
        ),
        mark=("⌛", " did not pass in time"),
    ),
)
