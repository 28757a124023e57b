"""What texts say of required checks: never that all passed where one did not."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.mergequeue.engine.checked import CheckedName, Ended, Place, Reporter
from service.mergequeue.wording import checked_names
from service.provenance import Proof
from service.text import markdown
from service.vocabulary import CheckKind, Sha
from tests.wording.builders import LINKS

SHA = Sha("a" * 40)
MERGE_GROUP = "its job runs only on `merge_group`"


def a_check(name: str, ended: Ended = Ended.PASSED, **more: Any) -> CheckedName:
    """A required check of a test branch."""
    one = CheckedName(name, ended, Place.TEST_BRANCH, "r1", SHA)
    return replace(one, **more)


def said(*table: CheckedName) -> str:
    """The summary as a plain sentence."""
    return checked_names.summary_message(table)


def test_every_ending_has_words_and_a_glyph():
    assert set(checked_names.ENDINGS) == set(checked_names.GLYPHS) == set(Ended)


def test_all_that_passed_are_one_short_sentence():
    assert said(a_check("build"), a_check("e2e")) == "All required checks passed."
    assert said() == ""
    assert checked_names.special_lines([a_check("build")], LINKS) == ""


@pytest.mark.parametrize(
    ("special", "words"),
    [
        (
            a_check("e2e", Ended.SKIPPED, because=MERGE_GROUP),
            "build passed, e2e was skipped: its job runs only on merge_group.",
        ),
        (a_check("e2e", Ended.SKIPPED), "build passed, e2e was skipped."),
        (a_check("e2e", Ended.OPTIONAL), "build passed, e2e did not run, which a setting allows."),
        (
            a_check("e2e", Ended.EXCUSED, tests=("t",), proof=Proof.TOKEN),
            "build passed, e2e failed, excused: only quarantined tests failed, by a report that "
            "was sent with a token.",
        ),
        (
            a_check("e2e", Ended.REUSED),
            "build passed, e2e passed in an earlier run of the same tree.",
        ),
        (a_check("e2e", Ended.FAILED), "build passed, e2e failed."),
        (a_check("e2e", Ended.OPEN), "build passed, e2e has no result."),
    ],
)
def test_one_special_check_is_named_beside_those_that_passed(special, words):
    assert said(a_check("build"), special) == words


def test_alike_checks_are_named_together_and_many_kinds_apart():
    table = [
        a_check("a", Ended.SKIPPED),
        a_check("b"),
        a_check("c", Ended.SKIPPED),
        a_check("d", Ended.EXCUSED),
    ]
    expected = "b passed; d failed, excused: only quarantined tests failed; a and c were skipped."
    assert said(*table) == expected


@given(st.lists(st.sampled_from(Ended), min_size=1, max_size=12))
def test_that_all_passed_is_said_only_if_each_did(endings):
    table = [a_check(f"c{nth}", ended) for nth, ended in enumerate(endings)]
    simply = set(endings) == {Ended.PASSED}
    assert (said(*table) == "All required checks passed.") is simply
    assert bool(checked_names.special_lines(table, LINKS)) is not simply


def test_a_line_names_the_tests_and_what_proves_their_report():
    one = a_check("unit", Ended.EXCUSED, tests=("tests/cart.py::test_total",), proof=Proof.JOB)
    assert checked_names.message(one) == (
        "unit failed, excused: only quarantined tests failed (tests/cart.py::test_total), by a "
        "report of its own job."
    )


def test_the_table_says_where_a_check_ran_and_what_reported_it():
    reporter = Reporter(CheckKind.SUITE_RUN, "15368", "71", 2)
    one = a_check("unit", reporter=reporter, place=Place.HEAD)
    table = checked_names.whole_table([one], LINKS).splitlines()
    assert table[2] == (
        "| `unit` | ✓ passed | head of the PR `aaaaaaa` "
        "| check run `71` of App `15368`, attempt 2 |"
    )
    status = replace(reporter, kind=CheckKind.STATUS, app_id=None, attempt=None)
    assert markdown.plain(checked_names.reported_by(replace(one, reporter=status))) == (
        "commit status 71"
    )


@pytest.mark.parametrize(
    "because",
    [
        "<img src=x>",
        "@everyone",
        "see #12",
        "a `b",
        "[x](https://evil.test)",
        "1 * 2",
        "\u202e",
    ],
)
def test_a_reason_that_is_not_in_our_words_is_inert(because):
    line = checked_names.line(a_check("e2e", Ended.SKIPPED, because=because))
    written = markdown.markdown(line, LINKS)
    outside = "".join(written.split("`")[::2])
    for mark in ("<", "@", "#", "[", "*", "\u202e"):
        assert mark not in outside
