"""Rules of entry in a replay: priorities, waits, periods, and what is not known of the past."""

from dataclasses import replace
from datetime import UTC, datetime

from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.rules import EntryRule, Period, Seen
from service.mergequeue.operations import simulate
from service.mergequeue.simulation import ruling
from service.mergequeue.simulation.history import Arrival
from tests.simulation.test_replay import START, a_history, arrives, played

MONDAY = "2026-03-02"
SEEN = Seen(1, "Fix", "ada", "fix", "main", (), ("bob",), draft=False, fork=False, auto_merge=False)


def labelled(pr: int, minute: float, *labels: str) -> Arrival:
    """One of which everything is known but the changed paths."""
    seen = replace(SEEN, number=pr, labels=labels)
    return arrives(pr, minute, seen=seen, unknown=frozenset({"touches", "only"}))


def ruled(*rules: EntryRule, **settings) -> QueueConfig:
    return QueueConfig(**{"concurrency": 1, **settings}, rules=rules)


def freeze(minutes: int, **fields) -> EntryRule:
    period = Period(f"{MONDAY}T14:00", "UTC", minutes)
    return EntryRule("freeze", during=period, wait_for="the end", **fields)


def test_a_rule_gives_the_priority_that_no_person_gave():
    first, usual, hotfix = (
        labelled(1, 0),
        labelled(2, 1),
        labelled(3, 2, "hotfix"),
    )
    rule = EntryRule("hotfix", when='"hotfix" in labels', priority=10)
    assert played(first, usual, hotfix, config=ruled(rule)).merged == (1, 3, 2)
    by_person = replace(usual, priority=5)
    assert played(first, by_person, hotfix, config=ruled(rule)).merged == (1, 2, 3)


def test_a_freeze_ends_and_lets_through_whom_it_does_not_concern():
    rule = freeze(120, when='!("hotfix" in labels)')
    found = played(labelled(1, 0), labelled(2, 5, "hotfix"), config=ruled(rule))
    assert found.merged == (2, 1)
    assert found.waits_s == (600.0, 7800.0)


def test_a_freeze_without_a_condition_needs_nothing_to_be_known():
    assert played(arrives(1), config=ruled(freeze(60))).waits_s == (4200.0,)


def test_who_waits_for_something_else_than_time_is_left_in_the_queue():
    rule = EntryRule("two", when="approvals.size() < 2", wait_for="two approvals")
    found = played(labelled(1, 0), config=ruled(rule, not_ready_timeout_hours=0))
    assert (found.merged, found.unfinished) == ((), 1)


def test_a_rule_that_reads_what_is_unknown_is_left_out_and_told():
    rules = (
        EntryRule("hotfix", when='!("hotfix" in labels)', wait_for="a label"),
        EntryRule("docs", when='only("docs/*")', wait_for="a writer"),
        EntryRule("everything", priority=10),
    )
    arrivals = [arrives(1), labelled(2, 5, "hotfix")]
    assert played(*arrivals, config=ruled(*rules)).merged == (1, 2)
    assert ruling.left_out(rules, arrivals) == {"hotfix": 1, "docs": 2}
    assert ruling.ruled(rules, arrivals[0], START).priority_rule == "everything"


def test_a_comparison_names_the_rules_of_both_sides_that_are_left_out():
    history = a_history(arrives(1), labelled(2, 5))
    before = ruled(EntryRule("old", when="auto_merge", priority=1))
    after = {"rules": (EntryRule("new", when='"a" in labels', priority=1), freeze(60))}
    compared = simulate.compare([history], before, after, 1, lambda *_: None)
    waits = [one.time_to_merge_p50_s or 0 for one in (compared.baseline, compared.changed)]
    assert compared.left_out == {"old": 1, "new": 1}
    assert waits[0] < waits[1]


def test_a_recurring_freeze_is_known_for_the_whole_replay():
    nightly = Period("2026-01-01T20:00", "Europe/Berlin", 12 * 60, "FREQ=DAILY")
    rule = EntryRule("night", during=nightly, wait_for="the morning")
    late = datetime(2026, 3, 20, 22, tzinfo=UTC)
    found = played(replace(arrives(1), at=late), config=ruled(rule))
    landed = datetime(2026, 3, 21, 7, 10, tzinfo=UTC)
    assert found.waits_s == ((landed - late).total_seconds(),)
