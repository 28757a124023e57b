"""The result of the rules of a queue for a pull request.

A rule whose expression is not true or false lets nobody in and gives no priority; what it makes
people wait for, it makes this one wait for.
"""

from collections.abc import Iterable
from datetime import datetime

from service.mergequeue.engine.rules import EntryRule, Ruled, RuleWait, Seen, Span
from service.mergequeue.entry_rules import expressions, periods


def reads_paths(rules: Iterable[EntryRule]) -> bool:
    """Return whether the changed paths are asked for by a rule."""
    return any(not reads(rule).isdisjoint(expressions.PATH_FUNCTIONS) for rule in rules)


def reads(rule: EntryRule) -> frozenset[str]:
    """Return what the rule asks of a pull request: variables, and functions about paths."""
    return expressions.reads(rule.when) if rule.when else frozenset()


def judged(
    rules: Iterable[EntryRule], seen: Seen, paths: tuple[str, ...] | None, now: datetime
) -> Ruled:
    """Return what the rules come to; `paths` are those that it changes, None if not known."""
    priority, priority_rule, enter_rule = None, "", ""
    waits = []
    for rule in rules:
        spans = None if rule.during is None else periods.spans(rule.during, now)
        covers_now = spans is None or any(one.since <= now < one.until for one in spans)
        if not (covers_now or (rule.wait_for and spans)):
            continue
        fault = None
        try:
            if rule.when and not expressions.is_true(rule.when, seen, paths):
                continue
        except expressions.Unclear as error:
            fault = str(error)
        if rule.wait_for:
            waits.append(_wait(rule, spans, fault))
        if not covers_now or fault is not None:
            continue
        if priority is None and rule.priority is not None:
            priority, priority_rule = rule.priority, rule.name
        if rule.enter and not enter_rule:
            enter_rule = rule.name
    return Ruled(priority, priority_rule, enter_rule, tuple(waits))


def _wait(rule: EntryRule, spans: tuple[Span, ...] | None, fault: str | None) -> RuleWait:
    unclear = "" if fault is None else f" (its `when` {fault})"
    return RuleWait(rule.name, rule.wait_for + unclear, spans)
