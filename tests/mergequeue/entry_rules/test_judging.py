"""What rules come to: priority, entering, waits, and what cannot be evaluated."""

from datetime import timedelta

from service.mergequeue.engine.rules import NOT_RULED, Period, Ruled, RuleWait
from service.mergequeue.entry_rules import checking, judging
from tests.mergequeue.entry_rules.pulls import NOW, WEEKEND, pull, rule

HOTFIX = '"hotfix" in labels'


def judged(*rules, paths=None, now=NOW, **fields):
    return judging.judged(rules, pull(**fields), paths, now)


def test_without_rules_nothing_is_decided():
    assert judged() == NOT_RULED


def test_the_first_rule_with_a_priority_gives_it():
    first, second = rule("a", when=HOTFIX, priority=0), rule("b", priority=200)
    assert judged(first, second) == Ruled(priority=200, priority_rule="b")
    assert judged(first, second, labels=("hotfix",)) == Ruled(priority=0, priority_rule="a")


def test_the_first_rule_that_enters_is_named():
    rules = (rule("a", when="draft", enter=True), rule("b", enter=True), rule("c", enter=True))
    assert judged(*rules).enter_rule == "b"


def test_all_waits_count():
    rules = (rule("a", when=HOTFIX, wait_for="x"), rule("b", wait_for="y"), rule("c", wait_for="z"))
    assert judged(*rules).waits == (RuleWait("b", "y"), RuleWait("c", "z"))


def test_a_rule_decides_only_during_its_period():
    freeze = rule("freeze", during=WEEKEND, priority=1, enter=True, wait_for="Monday")
    saturday = judged(freeze)
    assert (saturday.priority_rule, saturday.enter_rule) == ("freeze", "freeze")
    assert saturday.waits[0].holds(NOW)
    tuesday = judged(freeze, now=NOW + timedelta(days=3))
    assert (tuesday.priority_rule, tuesday.enter_rule) == ("", "")
    assert not tuesday.waits[0].holds(NOW + timedelta(days=3))
    assert tuesday.waits[0].holds(NOW + timedelta(days=7)), "the next weekend is known before"


def test_a_period_that_is_over_makes_nobody_wait():
    rules = rule("once", during=Period("2026-01-01T00:00", "UTC", 60), wait_for="x")
    assert judged(rules) == NOT_RULED


def test_what_cannot_be_evaluated_only_waits():
    unclear = rule("a", when='touches("docs/*")', priority=1, enter=True, wait_for="review")
    why = "review (its `when` asks for the changed paths, which are not known)"
    assert judged(unclear) == Ruled(waits=(RuleWait("a", why),))
    assert judged(unclear, paths=("docs/a",)) == Ruled(1, "a", "a", (RuleWait("a", "review"),))
    assert judged(unclear, paths=("src/a",)) == NOT_RULED


def test_paths_are_read_for_rules_that_ask_for_them():
    assert judging.reads_paths([rule(), rule(when='only("*.md")')])
    assert not judging.reads_paths([rule(), rule(when=HOTFIX)])


def test_faults_of_a_rule_name_their_fields():
    broken = rule("", when="1 +", priority=256, wait_for="a\nb", during=Period("", "", 0))
    assert [field for field, _ in checking.faults(broken)] == [
        *("name", "when", "during.start", "during.zone", "during.minutes", "priority", "waitFor")
    ]
    assert checking.faults(rule(enter=True)) == []


def test_a_rule_without_an_effect_is_told_from_others():
    assert checking.does_nothing(rule(when=HOTFIX))
    assert not checking.does_nothing(rule(wait_for="two approvals"))


def test_nobody_waits_for_blanks():
    assert checking.faults(rule(wait_for="  ")) == [("waitFor", "is blank")]


def test_a_long_name_is_a_fault():
    assert checking.faults(rule("x" * 101, enter=True)) == [
        ("name", "is longer than 100 characters")
    ]
