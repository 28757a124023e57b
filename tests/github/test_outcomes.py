"""GitHub's words for a report, and which report counts (docs/design/provider.md 8.1, 8.2)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.github import outcomes
from service import check_reports
from service.vocabulary import Check, CheckKind, CheckOutcome

RUNNING, PASSED, FAILED = CheckOutcome.RUNNING, CheckOutcome.PASSED, CheckOutcome.FAILED
SKIPPED = CheckOutcome.SKIPPED
NOON, SECOND = datetime(2026, 1, 1, 12, tzinfo=UTC), timedelta(seconds=1)
INTERRUPTED, BLOCKED, UNKNOWN = (
    CheckOutcome.INTERRUPTED,
    CheckOutcome.BLOCKED,
    CheckOutcome.UNKNOWN,
)


def a_run(name="unit", **changed):
    """A green run, unless changed."""
    made = {"source_id": "7", "group": "s1", "id": "1", "outcome": PASSED, "raw": "success"}
    return Check(CheckKind.SUITE_RUN, name, url="https://ci", **{**made, **changed})


@pytest.mark.parametrize(
    ("status", "conclusion", "outcome"),
    [
        ("queued", None, RUNNING),
        ("in_progress", None, RUNNING),
        ("waiting", None, RUNNING),
        ("requested", None, RUNNING),
        ("pending", None, RUNNING),
        ("in_progress", "success", RUNNING),
        ("completed", "success", PASSED),
        ("completed", "failure", FAILED),
        ("completed", "timed_out", FAILED),
        ("completed", "startup_failure", FAILED),
        ("completed", "cancelled", INTERRUPTED),
        ("completed", "stale", INTERRUPTED),
        ("completed", "action_required", BLOCKED),
        ("completed", "brand_new", UNKNOWN),
        ("completed", None, UNKNOWN),
        ("brand_new", None, UNKNOWN),
    ],
)
def test_a_check_run_means(status, conclusion, outcome):
    for switch in (True, False):
        assert outcomes.of_run(status, conclusion, skipped_pass=switch) is outcome


@pytest.mark.parametrize("conclusion", ["skipped", "neutral"])
def test_skipped_and_neutral_follow_the_switch(conclusion):
    assert outcomes.of_run("completed", conclusion, skipped_pass=True) is SKIPPED
    assert outcomes.of_run("completed", conclusion, skipped_pass=False) is FAILED


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("success", PASSED),
        ("failure", FAILED),
        ("error", FAILED),
        ("pending", RUNNING),
        ("expected", RUNNING),
        ("brand_new", UNKNOWN),
    ],
)
def test_a_status_means(state, outcome):
    assert outcomes.of_state(state) is outcome


def test_of_several_reports_the_worst_counts():
    order = [FAILED, RUNNING, UNKNOWN, BLOCKED, INTERRUPTED, PASSED, SKIPPED]
    assert set(order) == set(CheckOutcome)
    for place, outcome in enumerate(order):
        assert outcomes.worst(order[place:]) is outcome
    assert outcomes.worst([]) is None


def test_a_later_attempt_replaces_an_earlier_one_whatever_the_order():
    old, new = a_run(id="9", attempt=1), a_run(id="10", attempt=2, outcome=FAILED)
    assert check_reports.counting([new, old]) == (new,)
    assert check_reports.counting([old, new]) == (new,)


def test_jobs_of_one_attempt_with_one_name_all_count():
    reports = (a_run(id="9", attempt=1, outcome=FAILED), a_run(id="10", attempt=1))
    assert check_reports.counting(reports) == reports


def test_fewer_jobs_than_before_replace_none():
    """One of two equal names ran again: GitHub does not say which."""
    first = (a_run(id="9", attempt=1, outcome=FAILED), a_run(id="10", attempt=1))
    again = a_run(id="11", attempt=2)
    assert check_reports.counting((*first, again)) == (*first, again)
    both = (again, a_run(id="12", attempt=2))
    assert check_reports.counting((*first, *both)) == both


def test_a_check_run_that_is_no_job_replaces_one_that_had_ended():
    old = a_run(id="9", outcome=FAILED, completed_at=NOON)
    beside = a_run(id="10", started_at=NOON - SECOND)
    after = a_run(id="11", started_at=NOON + SECOND)
    assert check_reports.counting((old, beside)) == (old, beside)
    assert check_reports.counting((old, after)) == (after,)
    assert check_reports.counting((old, a_run(id="12"))) == (old, a_run(id="12"))


def test_a_job_is_not_replaced_by_a_check_run_that_is_none():
    job = a_run(id="9", attempt=1, outcome=FAILED, completed_at=NOON)
    beside = a_run(id="10", started_at=NOON + SECOND)
    assert check_reports.counting((job, beside)) == (job, beside)


def test_a_status_replaces_only_those_of_its_own_account():
    def a_status(number: str, account: str, outcome: CheckOutcome = PASSED) -> Check:
        made = a_run(id=number, group="", outcome=outcome, account=account)
        return replace(made, kind=CheckKind.STATUS)

    failed, hidden = a_status("9", "alice", FAILED), a_status("10", "bob")
    mended = a_status("11", "alice")
    assert check_reports.counting((failed, hidden)) == (failed, hidden)
    assert check_reports.counting((failed, mended)) == (mended,)


def test_names_of_different_suites_and_apps_are_different_reports():
    reports = (a_run(), a_run(group="s2"), a_run(source_id="8"), a_run(name="lint"))
    assert check_reports.counting(reports) == reports


@pytest.mark.parametrize("beside", [FAILED, INTERRUPTED, BLOCKED, RUNNING])
def test_a_skipped_run_beside_a_bad_one_is_as_bad(beside):
    skipped = a_run("deploy", raw="skipped", outcome=SKIPPED)
    found = outcomes.guarded([skipped, a_run("build", outcome=beside)])
    assert found[0].outcome is beside


@pytest.mark.parametrize("beside", [PASSED, UNKNOWN])
def test_a_skipped_run_beside_others_stays_skipped(beside):
    skipped = a_run("deploy", raw="skipped", outcome=SKIPPED)
    assert outcomes.guarded([skipped, a_run("build", outcome=beside)])[0] == skipped


def test_the_guard_looks_at_the_same_suite_only():
    skipped = a_run("deploy", raw="skipped", group="s1", outcome=SKIPPED)
    failed = a_run("build", outcome=FAILED, group="s2")
    assert outcomes.guarded([skipped, failed])[0] == skipped


def test_the_guard_forgets_a_failure_that_was_run_again():
    skipped = a_run("deploy", raw="skipped", outcome=SKIPPED)
    failed = a_run("build", id="2", outcome=FAILED, attempt=1)
    again = a_run("build", id="3", attempt=2)
    assert outcomes.guarded([skipped, failed, again])[0] == skipped


def test_a_skipped_run_that_failed_by_the_switch_stays_failed():
    skipped = a_run("deploy", raw="skipped", outcome=FAILED)
    running = a_run("build", outcome=RUNNING)
    assert outcomes.guarded([skipped, running])[0].outcome is FAILED
