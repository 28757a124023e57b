"""Why the checks of a run failed, by their tests: every row of both tables of the design.

See docs/design/evidence.md 3, 4.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from service.testhealth.detector import excuses
from service.testhealth.detector.completeness import (
    Account,
    Expectation,
    JobReport,
    MissingTest,
    Part,
)
from service.testhealth.detector.excuses import (
    FailedCheck,
    FailedTest,
    Knowledge,
    Relation,
    Rules,
    Suspect,
)
from service.vocabulary import Explanation

STRANGER = Suspect(7, frozenset({"docs/guide.md"}))
PLAIN = FailedTest("t1", "tests/cart.py", "Cart", frozenset({"k1"}))
QUARANTINED = replace(PLAIN, was_quarantined=True, known_keys=frozenset({"k1"}))
RED = replace(PLAIN, was_red_on_base=True)
FLAKY = replace(PLAIN, was_flaky=True, known_keys=frozenset({"k1", "k2"}))


def another(test: FailedTest, name: str = "t2") -> FailedTest:
    return replace(test, id=name, file=f"tests/{name}.py")


def a_check(*tests: FailedTest, name: str = "unit") -> FailedCheck:
    return FailedCheck(name, is_reported=True, failed_steps=1, tests=tests)


def judged(check: FailedCheck, *suspects: Suspect, excused_max: int = 5) -> Knowledge:
    return excuses.judge([check], suspects or (STRANGER,), Rules(excused_max))


def why(check: FailedCheck, *suspects: Suspect, excused_max: int = 5) -> Explanation:
    return judged(check, *suspects, excused_max=excused_max).explanations[check.name]


@pytest.mark.parametrize(
    ("test", "standing"),
    [
        (QUARANTINED, Relation.EXCUSED),
        (replace(RED, was_quarantined=True), Relation.EXCUSED),
        (RED, Relation.RED_ON_BASE),
        (replace(FLAKY, was_red_on_base=True), Relation.RED_ON_BASE),
        (FLAKY, Relation.KNOWN),
        (replace(FLAKY, known_keys=frozenset({"k1"})), Relation.KNOWN),
        (replace(FLAKY, keys=frozenset({"k1", "new"})), Relation.OWN),
        (
            replace(FLAKY, keys=frozenset({"new"}), known_keys=frozenset("abcde")),
            Relation.KNOWN,
        ),
        (replace(FLAKY, keys=frozenset({"new"}), known_keys=frozenset("abcd")), Relation.OWN),
        (PLAIN, Relation.OWN),
        (replace(PLAIN, known_keys=frozenset({"k1"})), Relation.OWN),
    ],
)
def test_a_failed_test_is_the_first_that_holds(test: FailedTest, standing: Relation) -> None:
    assert excuses.relation_of(test, [STRANGER]) is standing


def test_a_test_of_which_only_its_failures_are_known_is_the_runs_own() -> None:
    failed = FailedTest("t1", "tests/cart.py", "Cart", frozenset({"k1"}), frozenset({"k1"}))
    assert excuses.relation_of(failed, [STRANGER]) is Relation.OWN


def test_the_tests_that_fail_on_the_target_branch_too_are_named_whatever_they_are_to_the_run():
    own = replace(RED, id="own", file="cart.py")
    suspect = Suspect(7, frozenset({"cart.py"}))
    found = excuses.judge([a_check(RED, own, replace(PLAIN, id="plain"))], [suspect], Rules(10))
    assert found.red_on_base == tuple(sorted((RED.id, "own")))


@pytest.mark.parametrize("test", [QUARANTINED, RED, FLAKY])
def test_whoever_changes_the_file_of_a_test_is_asked_about_it(test: FailedTest) -> None:
    author = Suspect(8, frozenset({"tests/cart.py"}))
    assert excuses.relation_of(test, [STRANGER, author]) is Relation.OWN
    assert why(a_check(test), STRANGER, author) is Explanation.UNEXPLAINED


@pytest.mark.parametrize(
    ("file", "path", "is_own"),
    [
        ("tests/cart.py", "backend/tests/cart.py", True),
        ("/builds/octo/widgets/tests/cart.py", "tests/cart.py", True),
        ("C:/work/tests/cart.py", "tests/cart.py", True),
        ("tests/cart.py", "backend/tests/other_cart.py", False),
        ("backend/tests/cart.py", "tests/cart.py", False),
        ("/builds/octo/contests/cart.py", "tests/cart.py", False),
    ],
)
def test_a_report_may_name_files_from_elsewhere_than_the_root(
    file: str, path: str, is_own: bool
) -> None:
    standing = excuses.relation_of(replace(QUARANTINED, file=file), [Suspect(8, frozenset({path}))])
    assert (standing is Relation.OWN) is is_own


def test_who_may_change_anything_is_asked_about_everything() -> None:
    assert excuses.relation_of(QUARANTINED, [Suspect(8, None)]) is Relation.OWN


@pytest.mark.parametrize(
    ("path", "classname", "holds"),
    [
        ("src/test/java/a/b/C.java", "a.b.C", True),
        ("lib/a/b.py", "a.b.C$D", True),
        ("a/b/D.java", "a.b.C", False),
    ],
)
def test_a_test_without_file_stands_where_its_class_may(
    path: str, classname: str, holds: bool
) -> None:
    test = replace(QUARANTINED, file="", classname=classname)
    own = excuses.relation_of(test, [Suspect(8, frozenset({path}))]) is Relation.OWN
    assert own is holds


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (replace(a_check(QUARANTINED), is_reported=False), Explanation.UNEXPLAINED),
        (a_check(), Explanation.UNEXPLAINED),
        (replace(a_check(QUARANTINED), failed_steps=2), Explanation.UNEXPLAINED),
        (replace(a_check(QUARANTINED), failed_steps=None), Explanation.QUARANTINED),
        (replace(a_check(PLAIN), is_mass=True), Explanation.INFRA),
        (replace(a_check(PLAIN), is_mass=True, failed_steps=2), Explanation.UNEXPLAINED),
        (a_check(PLAIN), Explanation.UNEXPLAINED),
        (a_check(QUARANTINED, another(PLAIN)), Explanation.UNEXPLAINED),
        (a_check(QUARANTINED, another(QUARANTINED)), Explanation.QUARANTINED),
        (a_check(RED, another(QUARANTINED)), Explanation.BASE_RED),
        (a_check(RED, another(FLAKY)), Explanation.BASE_RED),
        (a_check(FLAKY), Explanation.FLAKY),
        (a_check(FLAKY, another(QUARANTINED)), Explanation.FLAKY),
    ],
)
def test_a_failed_check_is_explained_by_the_first_that_holds(
    check: FailedCheck, expected: Explanation
) -> None:
    assert why(check) is expected


def test_too_many_excused_tests_in_the_whole_run_are_not_excused() -> None:
    four = [another(QUARANTINED, f"t{place}") for place in range(4)]
    checks = [a_check(*four[:2], name="unit"), a_check(*four[1:], name="e2e")]
    assert set(excuses.judge(checks, [STRANGER], Rules(4)).explanations.values()) == {
        Explanation.QUARANTINED
    }
    assert set(excuses.judge(checks, [STRANGER], Rules(3)).explanations.values()) == {
        Explanation.UNEXPLAINED
    }


def test_too_many_excused_tests_leave_trouble_of_the_machine_what_it_is() -> None:
    mass = replace(a_check(PLAIN, name="e2e"), is_mass=True)
    found = excuses.judge([a_check(QUARANTINED), mass], [STRANGER], Rules(0)).explanations
    assert found == {"unit": Explanation.UNEXPLAINED, "e2e": Explanation.INFRA}


def test_where_flakes_are_not_to_be_known_they_explain_nothing() -> None:
    checks = [a_check(FLAKY), a_check(QUARANTINED, name="e2e")]
    found = excuses.judge(checks, [STRANGER], Rules(5, knows_flaky=False)).explanations
    assert found == {"unit": Explanation.UNEXPLAINED, "e2e": Explanation.QUARANTINED}


def test_an_excused_test_that_fails_in_a_new_way_is_named() -> None:
    new = replace(another(QUARANTINED), keys=frozenset({"new"}))
    assert judged(a_check(QUARANTINED, new)).new_texts == ("t2",)
    assert judged(a_check(PLAIN)).new_texts == ()


@pytest.mark.parametrize("new_texts", [Relation.KNOWN, Relation.OWN])
def test_where_known_failures_alone_are_excused_a_new_way_to_fail_is_not(
    new_texts: Relation,
) -> None:
    new = replace(QUARANTINED, keys=frozenset({"k1", "new"}))
    assert excuses.relation_of(QUARANTINED, [STRANGER], new_texts) is Relation.EXCUSED
    assert excuses.relation_of(new, [STRANGER], new_texts) is new_texts


LATE = "1 of 2 uploads has not arrived"
ENDED = Account(exit_code=1, runner="pytest")
OF_TWO = replace(ENDED, session="s", session_uploads=2)
HALF = JobReport("unit", (Part(OF_TWO, 1),), Expectation(200))
MAIL = MissingTest("mail", "tests/mail.py", "Cart")
WITHOUT_MAIL = JobReport("unit", (Part(ENDED, 1),), Expectation(2, (MAIL,)))


@pytest.mark.parametrize("test", [QUARANTINED, RED, FLAKY])
def test_nothing_is_excused_by_half_a_report(test: FailedTest) -> None:
    found = judged(replace(a_check(test), reports=(HALF,)))
    assert (found.explanations, found.gaps) == ({}, {"unit": (LATE,)})


@pytest.mark.parametrize("is_mass", [False, True])
def test_what_excuses_nothing_needs_no_whole_report(is_mass: bool) -> None:
    found = judged(replace(a_check(PLAIN), reports=(HALF,), is_mass=is_mass))
    assert (set(found.explanations), found.gaps) == ({"unit"}, {})


def test_a_check_without_a_usable_report_says_what_it_lacks() -> None:
    unread = replace(a_check(QUARANTINED), is_reported=False)
    assert judged(replace(unread, reports=(HALF,))).gaps == {"unit": (LATE,)}
    assert judged(unread).gaps == {}


@pytest.mark.parametrize(
    ("below", "is_excused"),
    [(frozenset({"tests/mail.py"}), True), (frozenset({"docs/x.md"}), False), (None, False)],
)
def test_a_test_may_be_missing_if_a_known_change_below_deletes_its_file(
    below: frozenset[str] | None, is_excused: bool
) -> None:
    check = replace(a_check(QUARANTINED), reports=(WITHOUT_MAIL,))
    change = Suspect(9, below, deleted=below or frozenset())
    found = excuses.judge([check], [STRANGER], Rules(5), [change])
    assert ("unit" in found.explanations, "unit" in found.gaps) == (is_excused, not is_excused)


def many(count: int) -> FailedCheck:
    return a_check(*(another(PLAIN, f"t{place:02}") for place in range(count)))


@pytest.mark.parametrize(
    ("check", "names"),
    [
        (a_check(another(PLAIN), QUARANTINED), ("t1", "t2")),
        (replace(a_check(PLAIN), failed_steps=None), ("t1",)),
        (many(50), tuple(f"t{place:02}" for place in range(50))),
        (many(51), None),
        (a_check(), None),
        (replace(a_check(PLAIN), is_reported=False), None),
        (replace(a_check(PLAIN), is_mass=True), None),
        (replace(a_check(PLAIN), failed_steps=2), None),
        (replace(a_check(PLAIN), reports=(HALF,)), None),
    ],
)
def test_the_failed_tests_of_a_check_are_named_if_they_are_surely_all(
    check: FailedCheck, names: tuple[str, ...] | None
) -> None:
    assert judged(check).failed_tests == ({} if names is None else {"unit": names})


def fingerprint(*tests: FailedTest) -> str | None:
    return judged(a_check(*tests)).fingerprint


def test_a_fingerprint_is_that_of_the_own_failures_alone() -> None:
    assert fingerprint(PLAIN) == fingerprint(another(QUARANTINED), PLAIN)
    assert fingerprint(PLAIN, another(PLAIN)) == fingerprint(another(PLAIN), PLAIN)
    assert fingerprint(PLAIN) != fingerprint(replace(PLAIN, keys=frozenset({"k9"})))
    assert fingerprint(QUARANTINED) is None


def test_a_fingerprint_is_made_of_the_first_fifty_failures() -> None:
    sixty = many(60).tests
    assert fingerprint(*sixty) == fingerprint(*sixty[:50]) != fingerprint(*sixty[:49])


@pytest.mark.parametrize(
    ("make", "weight"),
    [
        (lambda: Suspect(8, frozenset({"docs/guide.md"})), None),
        (lambda: Suspect(8, None), None),
        (lambda: Suspect(8, frozenset({"tests/other.py"})), 3.0),
        (lambda: Suspect(8, frozenset({"src/total.py", "tests/other.py"})), 8.0),
        (lambda: Suspect(8, frozenset({"src/other.py"})), 3.0),
        (lambda: Suspect(8, frozenset({"src/total.py"}), frozenset({"t1"})), 20.0),
        (lambda: Suspect(8, frozenset({"docs/x.md"}), frozenset({"another"})), None),
    ],
)
def test_who_is_near_an_own_failure_is_suspected_more(
    make: Callable[[], Suspect], weight: float | None
) -> None:
    test = replace(PLAIN, files=frozenset({"src/total.py"}))
    found = judged(a_check(test), make())
    assert found.weights == ({} if weight is None else {8: weight})
    assert found.own_head == ((8,) if weight == 20.0 else ())


def test_nobody_is_suspected_of_what_is_known() -> None:
    author = Suspect(8, frozenset({"tests/other.py"}), frozenset({"t1"}))
    found = judged(a_check(FLAKY), author)
    assert (found.weights, found.own_head, found.fingerprint) == ({}, (), None)
