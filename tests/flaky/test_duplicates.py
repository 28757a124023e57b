"""What it means that one identity stands in an upload several times."""

from uuid import UUID

import pytest

from service.testhealth.reports import duplicates
from service.testhealth.reports.results import Attempt, CaseKind, CaseResult, Outcome, WarningCode

OUTCOMES = {"p": Outcome.PASSED, "f": Outcome.FAILED, "s": Outcome.SKIPPED}


def a_case(outcomes="p", file="", line=None, parent=""):
    """A case with these attempts, a letter each."""
    told = tuple(Attempt(OUTCOMES[letter]) for letter in outcomes)
    return CaseResult("n", "", parent, file, explicit_attempts=told, line=line)


def letters(attempts):
    return "".join(attempt.outcome[0] for attempt in attempts)


@pytest.mark.parametrize(
    ("cases", "attempts", "outcome", "is_comparable"),
    [
        ("p", "p", "p", True),
        ("fp", "fp", "p", True),
        ("f f p", "ffp", "p", True),
        ("f f", "ff", "f", True),
        ("ff p", "ffp", "p", True),
        ("fp p", "p", "p", False),
        ("f s", "fs", "f", True),
        ("p f", "f", "f", False),
        ("p p", "p", "p", False),
        ("s p", "p", "p", False),
        ("s s", "s", "s", False),
        ("p f p", "f", "f", False),
    ],
)
def test_without_a_place_only_a_retry_is_evidence(cases, attempts, outcome, is_comparable):
    result = duplicates.result_of([a_case(each) for each in cases.split(" ")])
    assert letters(result.attempts) == attempts
    assert result.final_outcome is OUTCOMES[outcome]
    assert result.is_comparable is is_comparable


@pytest.mark.parametrize(
    ("others", "is_comparable"),
    [
        ({"file": "a.py", "line": 3}, True),
        ({"file": "a.py", "line": 4}, False),
        ({"file": "a.py"}, False),
        ({"file": "b.py", "line": 3}, False),
        ({"file": "a.py", "line": 3, "parent": "q"}, False),
    ],
)
def test_at_one_place_a_repetition_is_on_purpose(others, is_comparable):
    result = duplicates.result_of([a_case("p", "a.py", 3), a_case("f", **others)])
    assert result.is_comparable is is_comparable
    assert letters(result.attempts) == ("pf" if is_comparable else "f")


def test_a_line_without_a_file_is_no_place():
    result = duplicates.result_of([a_case("p", line=3), a_case("f", line=3)])
    assert (letters(result.attempts), result.is_comparable) == ("f", False)


@pytest.mark.parametrize("order", ["pf", "pfp", "pp"])
def test_a_file_without_a_line_is_no_place(order):
    result = duplicates.result_of([a_case(each, "a.py") for each in order])
    assert result.is_comparable is False
    assert result.final_outcome is (Outcome.FAILED if "f" in order else Outcome.PASSED)


def test_only_cases_side_by_side_in_one_suite_are_attempts():
    failed, passed = a_case("f"), a_case("p")
    beside = duplicates.sorted_by_test(["a", "a"], [failed, passed]).others["a"]
    between = duplicates.sorted_by_test(["a", "b", "a"], [failed, passed, passed]).others["a"]
    across = duplicates.sorted_by_test(["a", "a"], [failed, passed._replace(is_first=True)])
    assert (letters(beside.attempts), beside.is_comparable) == ("fp", True)
    assert (letters(between.attempts), between.is_comparable) == ("f", False)
    assert (letters(across.others["a"].attempts), across.ran) == ("f", 1)


def test_one_line_repeated_among_others_is_a_repetition_on_purpose():
    cases = [a_case("p", "a.py", 3), a_case("p"), a_case("f", "a.py", 3)]
    assert letters(duplicates.sorted_by_test("aba", cases).others["a"].attempts) == "pf"


@pytest.mark.parametrize("kind", [CaseKind.UNNAMED, CaseKind.SYNTHETIC])
def test_what_is_no_test_is_no_evidence(kind):
    result = duplicates.result_of([a_case("fp")._replace(kind=kind)])
    assert not result.is_comparable
    assert duplicates.duplicates_warned([result]) is None


def test_results_are_one_a_test_in_order_of_first_sight():
    first, second, third = UUID(int=1), UUID(int=2), UUID(int=3)
    cases = [a_case("f"), a_case("p"), a_case("s"), CaseResult("n", "", "", "", 0.5)]
    results = duplicates.sorted_by_test([second, second, first, third], cases)
    assert list(results.others) == [second, first]
    assert letters(results.others[second].attempts) == "fp"
    assert list(results.passed) == [third]
    assert results.ran == 2
    assert (results.others[first], results.passed[third]) == (cases[2], cases[3])


def test_a_test_that_passed_twice_is_one_of_several_cases():
    case = CaseResult("n", "", "", "", 0.5)
    results = duplicates.sorted_by_test(["a", "a"], [case, case])
    assert not results.passed
    assert list(results.others) == ["a"]


def test_names_of_several_tests_are_warned_of():
    results = duplicates.sorted_by_test([UUID(int=1)] * 2, [a_case("p"), a_case("f")])
    warned = duplicates.duplicates_warned(results.others.values())
    assert warned
    assert warned.code is WarningCode.DUPLICATE_IDENTITY
    assert warned.text == (
        "Names that stand for several tests: 1, as 'n'. Give each its own, or merge its retries "
        "(Gradle: `mergeReruns = true`)."
    )
    assert duplicates.duplicates_warned([duplicates.result_of([a_case("fp")])]) is None


@pytest.mark.parametrize(
    ("attempts", "kept"),
    [
        ("f" * 100, "f" * 100),
        ("f" * 99 + "p", "f" * 99 + "p"),
        ("f" * 1_000 + "p", "f" * 99 + "p"),
        ("f" * 99 + "s" * 900 + "p", "f" * 99 + "p"),
        ("p" + "f" * 1_000 + "s", "p" + "f" * 99),
        ("s" * 1_000, "s"),
    ],
)
def test_of_more_attempts_than_any_runner_makes_the_ends_are_kept(attempts, kept):
    cases = [a_case(each, file="a.py", line=3) for each in attempts]
    assert letters(duplicates.result_of(cases).attempts) == kept


def test_tests_that_share_an_id_alone_are_no_retries_of_each_other():
    result = duplicates.result_of([a_case("f", parent="a#b"), a_case("p", parent="a")])
    assert (letters(result.attempts), result.is_comparable) == ("f", False)
