"""Who can have caused a failure, by the tests that failed (service/mergequeue/engine/blame.py)."""

from dataclasses import replace

import pytest

from service.mergequeue.engine import blame
from service.mergequeue.engine.policy import belief
from service.mergequeue.engine.policy.belief import Belief
from service.mergequeue.engine.records import FailedTest, Record, Suspect, cleared, merged
from service.mergequeue.engine.reported import Rates

PRIOR = 0.06
T1, T2 = FailedTest("unit", "t1"), FailedTest("unit", "t2")
LINT = FailedTest("lint")


def a_run(
    tested: str,
    *failed: FailedTest,
    base: str = "",
    excused: tuple[FailedTest, ...] = (),
    passed: tuple[str, ...] = (),
) -> Record:
    """A failed run of the entries with these letters, in which these tests failed and need a cause.

    It is named by its letters. `excused` tests failed too, `passed` checks passed.
    """
    tests: dict[str, tuple[str, ...]] = dict.fromkeys(passed, ())
    for one in (*failed, *excused):
        tests[one.check] = (*tests.get(one.check, ()), one.test)
    suspects = tuple(
        Suspect(one, ord(one), PRIOR, is_tested=one in tested) for one in base + tested
    )
    return Record(base + tested, suspects, tuple(tests), tests, failed, is_whole=True)


def in_part(record: Record) -> Record:
    """The run of a queue whose checks may test a part of the tree."""
    return replace(record, is_whole=False)


def marked(record: Record, weight: float = 1.0, *, fails_alone: bool = False) -> Record:
    """The run after its failed tests were compared with what its first one changed."""
    first, *others = record.suspects
    first = replace(first, weight=weight, fails_alone=fails_alone)
    return replace(record, suspects=(first, *others))


def causes_of(failed: FailedTest, run: Record, *others: Record) -> tuple[str, str]:
    """The letters of those that can have caused a failure in a run, and of all its partners."""
    cause = blame.causes((run, *others))[run.run][failed]
    return "".join(sorted(cause.suspects)), "".join(sorted(cause.partners))


def alone(entry: str, *records: Record) -> list[str]:
    """The runs in which nobody but this one can be the cause."""
    return [record.run for record in Belief(records, Rates()).failures_alone(entry)]


def suspected(*records: Record) -> str:
    """The letters of all that a failed run tested and that are not cleared of it."""
    believed = Belief(records, Rates())
    letters = {one.entry for record in records for one in record.suspects}
    return "".join(sorted(one for one in letters if believed.is_suspect(one)))


# --- rule 1: who was in a run in which the test passed did not break it


def test_a_run_in_which_the_test_passed_clears() -> None:
    assert causes_of(T1, a_run("ab", T1), a_run("b", T2)) == ("a", "ab")


def test_a_run_in_which_the_whole_check_passed_clears() -> None:
    passed = a_run("b", LINT, passed=("unit",))
    assert causes_of(T1, a_run("ab", T1), passed) == ("a", "ab")


def test_one_beneath_a_run_in_which_the_test_passed_is_cleared_too() -> None:
    assert causes_of(T1, a_run("ab", T1), a_run("c", T2, base="b")) == ("a", "ab")


def test_a_check_that_may_have_tested_a_part_clears_nobody() -> None:
    part = in_part(a_run("b", T2))
    assert causes_of(T1, in_part(a_run("ab", T1)), part) == ("ab", "ab")


def test_a_check_of_which_nothing_is_known_clears_nobody() -> None:
    assert causes_of(T1, a_run("ab", T1), a_run("b", LINT)) == ("ab", "ab")


def test_a_check_that_failed_by_its_name_alone_clears_nobody() -> None:
    assert causes_of(T1, a_run("ab", T1), a_run("b", FailedTest("unit"))) == ("ab", "ab")


def test_an_excused_failure_of_the_test_clears_nobody() -> None:
    assert causes_of(T1, a_run("ab", T1), a_run("b", T2, excused=(T1,))) == ("b", "b")


def test_the_test_of_another_check_clears_nobody() -> None:
    other = a_run("b", FailedTest("lint", "t2"))
    assert causes_of(T1, a_run("ab", T1), other) == ("ab", "ab")


# --- rule 2: two runs in which one test failed have one cause


def test_a_test_that_failed_in_two_runs_has_a_cause_in_both() -> None:
    assert causes_of(T1, a_run("ab", T1), a_run("bc", T1)) == ("b", "b")


def test_one_cause_is_found_where_a_check_tests_a_part() -> None:
    first, second = in_part(a_run("ab", T1)), in_part(a_run("bc", T1))
    assert causes_of(T1, first, second) == ("b", "b")


def test_tests_of_one_name_in_two_checks_have_two_causes() -> None:
    other = a_run("bc", FailedTest("e2e", "t1"))
    assert causes_of(T1, a_run("ab", T1), other) == ("ab", "ab")


def test_a_check_known_by_its_name_alone_may_have_two_causes() -> None:
    assert causes_of(LINT, a_run("ab", LINT), a_run("bc", LINT)) == ("ab", "ab")


def test_a_check_known_by_its_name_alone_is_not_broken_by_one_with_which_it_passed() -> None:
    passed = a_run("b", T1, passed=("lint",))
    assert causes_of(LINT, a_run("ab", LINT), passed) == ("a", "ab")


def test_both_rules_leave_one_of_three() -> None:
    records = (a_run("abc", T1), a_run("bcd", T1), a_run("c", T2))
    assert causes_of(T1, *records) == ("b", "bc")


# --- who else can have caused what failed in a run


def others(own: str, *records: Record) -> list[str] | None:
    """The letters of the other suspects of each failed test that one of these can have caused."""
    found = Belief(records, Rates()).other_suspects(records[0].run, frozenset(own))
    return None if found is None else ["".join(sorted(each)) for each in found]


def test_each_test_that_one_can_have_broken_has_suspects_of_its_own() -> None:
    run = a_run("c", T1, T2, base="ab")
    assert others("c", run) == ["ab", "ab"]
    assert others("c", run, a_run("b", T1, base="a")) == [""]
    assert others("b", run, a_run("b", T1, base="a")) == ["a"]


def test_who_passed_alone_is_no_other_suspect() -> None:
    assert others("b", *cleared((a_run("b", T1, base="a"),), ["a"])) == [""]


def test_who_broke_none_of_the_tests_shares_no_suspicion() -> None:
    assert others("b", a_run("b", T1, base="a"), a_run("a", T1)) == []


def test_without_names_of_tests_the_other_suspects_are_unknown() -> None:
    assert others("b", a_run("b", LINT, base="a")) is None
    assert others("b", in_part(replace(a_run("b", base="a"), unexplained=()))) is None


def test_of_a_run_that_is_no_record_the_other_suspects_are_unknown() -> None:
    assert Belief((), Rates()).other_suspects("ab", frozenset("b")) is None


# --- nobody is left


def test_a_test_that_failed_without_a_common_cause_is_flaky_or_broken_twice() -> None:
    assert causes_of(T1, a_run("ab", T1), a_run("cd", T1)) == ("ab", "ab")


def test_a_test_that_passed_with_everyone_is_everyones() -> None:
    assert causes_of(T1, a_run("ab", T1), a_run("a", T2), a_run("b", T2)) == ("ab", "ab")


def test_one_that_has_passed_alone_is_no_cause() -> None:
    records = cleared((a_run("ab", T1), a_run("bc", T1)), ["b"])
    assert causes_of(T1, *records) == ("ab", "ab")
    assert suspected(*records) == "ac"


def test_one_that_fails_alone_by_one_test_after_the_other_is_charged_with_both() -> None:
    first, second = a_run("a", T1), a_run("a", T2)
    believed = Belief((first, second), Rates())
    assert len(believed.failures_alone("a")) == 2
    assert believed.is_convicted("a", 0.03, has_passed=False)


# --- what follows for the belief


def test_who_is_no_cause_is_believed_as_before() -> None:
    records = (a_run("ab", T1), a_run("bc", T1))
    believed = Belief(records, Rates())
    assert believed.failing("a", PRIOR) == PRIOR
    assert suspected(*records) == "b"


def test_one_that_was_in_all_runs_of_a_test_failed_alone_in_them() -> None:
    assert alone("b", a_run("ab", T1), a_run("bc", T1)) == ["ab", "bc"]


def test_a_possible_partner_keeps_a_failure_from_being_one_alone() -> None:
    # b did not break t1 by itself, but a and b may fail together.
    records = (a_run("ab", T1), a_run("b", T2))
    assert suspected(*records) == "ab"
    assert alone("a", *records) == []
    (charge,) = Belief(records, Rates()).charges_against("a")
    assert charge.others_pass == 1.0
    assert not charge.is_alone


def test_a_run_charges_with_the_test_that_the_others_are_least_likely_to_have_caused() -> None:
    records = (a_run("ab", T1, T2), in_part(a_run("bc", T1)))
    believed = Belief(records, Rates())
    # b alone can have broken t1. a can have broken t2 only, and so can b.
    assert alone("b", *records) == ["ab", "bc"]
    (charge,) = believed.charges_against("a")
    assert charge.others_pass == pytest.approx(1.0 - PRIOR)


@pytest.mark.parametrize("failed", [(T1, T2), (T2, T1)])
def test_a_test_that_one_alone_can_have_broken_counts_before_one_with_a_partner(
    failed: tuple[FailedTest, ...],
) -> None:
    # t1 failed in two runs with a alone in common. b is cleared of t2, but may be a partner.
    records = (a_run("ab", *failed), in_part(a_run("ac", T1)), a_run("b", LINT, passed=("unit",)))
    assert "ab" in alone("a", *records)


@pytest.mark.parametrize("failed", [(T1, T2), (T2, T1)])
def test_the_order_of_the_failed_tests_does_not_matter(failed: tuple[FailedTest, ...]) -> None:
    records = (a_run("ab", *failed), in_part(a_run("bc", T1)))
    assert alone("b", *records) == ["ab", "bc"]


def test_excused_failures_need_no_cause() -> None:
    records = (a_run("ab", T1, excused=(T2,)), a_run("bc", T1))
    assert suspected(*records) == "b"


def test_a_run_of_which_no_failed_test_needs_a_cause_is_everyones() -> None:
    assert blame.causes((a_run("ab", excused=(T1,)),)) == {}
    assert suspected(a_run("ab", excused=(T1,))) == "ab"


def test_a_weight_counts_once_and_not_for_each_run() -> None:
    two = (marked(a_run("a", T1), 8.0), marked(a_run("a", T1), 8.0))
    plain = (a_run("a", T1), a_run("a", T1))
    odds = belief.odds_of(Belief(plain, Rates()).failing("a", 0.01))
    weighed = belief.odds_of(Belief(two, Rates()).failing("a", 0.01))
    assert weighed == pytest.approx(8.0 * odds)


def test_a_weight_takes_from_the_others() -> None:
    plain = Belief((a_run("ab", T1),), Rates())
    weighed = Belief((marked(a_run("ab", T1), 8.0),), Rates())
    assert weighed.failing("a", PRIOR) > plain.failing("a", PRIOR)
    assert weighed.failing("b", PRIOR) < plain.failing("b", PRIOR)


def test_a_failure_of_the_own_head_counts_as_one_alone() -> None:
    once = (marked(a_run("a", T1), fails_alone=True),)
    assert Belief(once, Rates()).is_convicted("a", 0.03, has_passed=False)
    assert not Belief((a_run("a", T1),), Rates()).is_convicted("a", 0.03, has_passed=False)


def test_a_failure_of_the_own_head_counts_once() -> None:
    rates = Rates(flake=0.2)
    twice = (
        marked(a_run("ab", T1), fails_alone=True),
        marked(a_run("ac", T1, T2), fails_alone=True),
    )
    once = (a_run("ab", T1), marked(a_run("ac", T1, T2), fails_alone=True))
    for more in range(5):
        first, second = (
            Belief(records, rates).is_convicted("a", 0.03, has_passed=False, more=more)
            for records in (twice, once)
        )
        assert first == second


# --- what a culprit explains


def test_a_culprit_explains_the_tests_that_it_can_have_broken() -> None:
    records = (a_run("ab", T1, T2), in_part(a_run("bc", T1)))
    assert blame.explained(records, ["b"]) == ()


def test_a_culprit_does_not_explain_what_it_cannot_have_broken() -> None:
    records = (a_run("ab", T1, T2), a_run("bc", T1), a_run("ad", T2))
    first, second = blame.explained(records, ["b"])
    assert first.unexplained == (T2,)
    assert [one.chance for one in first.suspects] == [PRIOR, 0.0]
    assert second == records[2]
    assert suspected(first, second) == "a"


def test_a_culprit_explains_all_of_a_run_that_names_no_tests() -> None:
    assert blame.explained((a_run("ab"), a_run("c")), ["b"]) == (a_run("c"),)


def test_one_that_was_cleared_before_explains_nothing() -> None:
    records = cleared((a_run("ab", T1),), ["b"])
    assert blame.explained(records, ["b"]) == records


def test_what_a_culprit_explained_clears_nobody_any_more() -> None:
    records = (a_run("bc", T1), a_run("ab", T2))
    assert causes_of(T1, *records) == ("c", "bc")
    left = blame.explained(records, ["a"])
    assert causes_of(T1, *left) == ("bc", "bc")


def test_one_that_merged_leaves_the_failure_to_the_others() -> None:
    records = merged((a_run("b", T1, base="a"), a_run("b", T2)), ["a"])
    assert suspected(*records) == "b"
    (first, _) = Belief(records, Rates()).charges_against("b")
    assert first.have_others_merged
