"""GitHub's words for a report, and which report counts (docs/design/provider.md 8.1, 8.2)."""

import pytest

from bot.github import outcomes
from service.vocabulary import Check, CheckKind, CheckOutcome

RUNNING, PASSED, FAILED = CheckOutcome.RUNNING, CheckOutcome.PASSED, CheckOutcome.FAILED
SKIPPED = CheckOutcome.SKIPPED
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


def test_the_highest_id_is_the_newest_whatever_the_order():
    old, new = a_run(id="9"), a_run(id="10", outcome=FAILED)
    assert outcomes.newest([new, old]) == (new,)
    assert outcomes.newest([old, new]) == (new,)


def test_names_of_different_suites_and_apps_are_different_reports():
    reports = (a_run(), a_run(group="s2"), a_run(source_id="8"), a_run(name="lint"))
    assert outcomes.newest(reports) == reports


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
    failed, again = a_run("build", id="2", outcome=FAILED), a_run("build", id="3")
    assert outcomes.guarded([skipped, failed, again])[0] == skipped


def test_a_skipped_run_that_failed_by_the_switch_stays_failed():
    skipped = a_run("deploy", raw="skipped", outcome=FAILED)
    running = a_run("build", outcome=RUNNING)
    assert outcomes.guarded([skipped, running])[0].outcome is FAILED
