"""The tests section of comments: only with failures, short, and inert whatever tests are called."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.wording import failed_tests, notices
from service.mergequeue.wording.failed_tests import FailedTest, FailedTests, KilledRunner, Standing
from service.text import markdown
from tests.harness.expect import expect
from tests.wording import hygiene, stories
from tests.wording.builders import LINKS, NOW
from tests.wording.test_markdown import foreign

PAGES = "https://queue.example.org/octo/widgets/tests"
LOG = "https://github.com/octo/widgets/actions/runs/71"
LATER = datetime(2026, 4, 12, 9, tzinfo=UTC)

NEW = FailedTest(
    "tests/api/test_login.py::test_rate_limit", Standing.NEW, log=LOG, page=f"{PAGES}/1"
)
FLAKY = FailedTest(
    "tests/ui/test_cart.py::test_total",
    Standing.FLAKY,
    week_rate=0.14,
    prs_hit=6,
    log="https://ci.example.org/9",
    page=f"{PAGES}/2",
)
BROKEN = FailedTest(
    "tests/ui/test_menu.py::test_open",
    Standing.BROKEN,
    is_new_text=True,
    week_rate=1.0,
    prs_hit=12,
)
SEEN = FailedTest("Cart::test_sum", Standing.SEEN, week_rate=0.004, prs_hit=1, log=LOG)
EXCUSED = FailedTest(
    "tests/e2e/test_mail.py::test_send",
    Standing.EXCUSED,
    is_new_text=True,
    until=LATER,
    page=f"{PAGES}/3",
)
AUTO = FailedTest("tests/e2e/test_sms.py::test_send", Standing.EXCUSED)


def some(*shown: FailedTest, more: int = 0) -> FailedTests:
    """These tests, and so many more that are not named."""
    excused = sum(each.standing is Standing.EXCUSED for each in shown)
    return FailedTests(len(shown) - excused + more, excused, shown)


SECTIONS = {
    "few": some(NEW, FLAKY, EXCUSED),
    "folded": some(NEW, BROKEN, SEEN, FLAKY, AUTO),
    "many": some(NEW, NEW, NEW, NEW, NEW, more=1207),
    "excused": some(AUTO),
}


@pytest.mark.parametrize("name", SECTIONS)
def test_the_section(name):
    text = failed_tests.section(SECTIONS[name], LINKS, NOW)
    assert hygiene.faults(text) == []
    expect(text).matches(f"tests-{name}.txt")


@pytest.mark.parametrize(
    ("test", "known"),
    [
        (replace(SEEN, fails_on="main"), "also fails on main"),
        (replace(BROKEN, fails_on="main"), "also fails on main, new failure text"),
        (replace(FLAKY, fails_on="main"), "known flaky, also fails on main"),
        (replace(EXCUSED, fails_on="main"), "failed, excused, also fails on main"),
        (SEEN, "failed before"),
    ],
)
def test_a_test_that_fails_on_the_target_branch_too_is_told_so(test, known):
    assert markdown.plain(failed_tests.known_of(test)).startswith(known)


def test_a_trace_is_told_by_its_first_lines_without_what_shows_nothing():
    test = replace(NEW, stack="\n\n    assert x\u202e\n" + "line\n" * 40)
    assert test.trace == ("    assert x", *["line"] * 11, "…")
    assert NEW.trace == ()


def test_without_a_failure_there_is_no_section():
    assert failed_tests.section(failed_tests.NONE, LINKS, NOW) == ""


def test_a_date_of_another_year_says_so():
    later = replace(EXCUSED, until=LATER.replace(year=2027))
    assert "until 12 Apr 2027" in failed_tests.section(some(later), LINKS, NOW)


def test_what_may_not_be_linked_is_no_link():
    text = failed_tests.section(some(FLAKY), markdown.Links("https://github.com"), NOW)
    assert hygiene.links(text) == []


SHOWN = {
    "failed": stories.failed(),
    "undecided": stories.undecided(),
    "testing": stories.testing(),
    "passed": stories.passed(),
    "merged": stories.merged(),
}
NOT_SHOWN = {
    "pending": stories.pending(),
    "pushed": stories.pushed(),
    "conflict": stories.ended(EntryState.FAILED, Reason.CONFLICT_TARGET),
    "by-hand": stories.merged(Reason.MERGED_BY_HAND),
}


@pytest.mark.parametrize("name", SHOWN)
def test_it_stands_in_the_comment_of_a_pull_request_whose_run_it_is_about(name):
    view = replace(SHOWN[name], tests=SECTIONS["few"])
    section = failed_tests.section(view.tests, view.links, view.now)
    assert section in notices.status_comment(view)
    assert section in notices.check_report(view).summary


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_it_says_nothing_of_a_pull_request_that_stands_there_for_another_reason(name):
    view = replace(NOT_SHOWN[name], tests=SECTIONS["few"])
    assert "**Tests:**" not in notices.status_comment(view)


def test_the_failure_comment_names_the_tests_before_the_next_step():
    view = replace(stories.failed(), tests=SECTIONS["few"])
    text = notices.failure_comment(view, is_above=False)
    assert hygiene.faults(text, mentions=("alice",)) == []
    expect(text).matches("announced-tests.txt")


def test_below_a_status_comment_it_has_only_what_failed():
    said = replace(NEW, message="AssertionError: 10.01 != 10.0")
    view = replace(stories.failed(), tests=some(said, FLAKY, EXCUSED, more=7))
    text = notices.failure_comment(view, is_above=True)
    assert hygiene.faults(text, mentions=("alice",)) == []
    expect(text).matches("announced-below.txt")


failed = st.builds(
    FailedTest,
    foreign,
    st.sampled_from(Standing),
    st.booleans(),
    st.floats(0, 1),
    st.integers(0, 99_999),
    st.none() | st.just(LATER),
    foreign,
    foreign,
)


@given(st.lists(failed, min_size=1, max_size=9))
def test_whatever_tests_are_called_is_inert(tests):
    view = replace(stories.failed(), tests=some(*tests))
    assert hygiene.faults(notices.status_comment(view)) == []
    for is_above in (True, False):
        farewell = notices.failure_comment(view, is_above=is_above)
        assert hygiene.faults(farewell, mentions=("alice",)) == []


def test_each_runner_that_was_killed_is_told_and_at_most_five():
    killed = (KilledRunner("pytest", "unit", 137), KilledRunner("`jest`\n", "", 0))
    told = failed_tests.section(FailedTests(killed=killed), LINKS, NOW).split("\n\n")
    assert told == [
        "⚠️ The test runner `pytest` was killed in job `unit`, as when its memory runs out"
        " (exit code 137): it began and never said how it ended.",
        "⚠️ The test runner `` `jest` `` was killed: it began and never said how it ended.",
    ]
    many = tuple(KilledRunner("pytest", f"unit ({nth})", 1) for nth in range(9))
    assert len(failed_tests.killed_runners(many)) == 5
