"""The faults of rules, found before they are the setting of a queue."""

from collections.abc import Iterator

from service.mergequeue.engine.model import PRIORITY_NAMES
from service.mergequeue.engine.rules import EntryRule
from service.mergequeue.entry_rules import expressions, periods

RULES_MAX = 50
NAME_CHARS_MAX = 100
WAIT_CHARS_MAX = 200
PRIORITY_MAX = max(PRIORITY_NAMES.values())


def faults(rule: EntryRule) -> list[tuple[str, str]]:
    """Return what is wrong with a rule: its field, as files name it, and a message."""
    return list(_faults(rule))


def _faults(rule: EntryRule) -> Iterator[tuple[str, str]]:
    yield from _line_faults("name", rule.name, NAME_CHARS_MAX)
    if not rule.name.strip():
        yield "name", "is empty"
    if rule.when and (fault := expressions.fault(rule.when)):
        yield "when", fault
    if rule.during is not None:
        yield from ((f"during.{field}", fault) for field, fault in periods.faults(rule.during))
    if rule.priority is not None and not 0 <= rule.priority <= PRIORITY_MAX:
        yield "priority", f"is not from 0 to {PRIORITY_MAX}"
    yield from _line_faults("waitFor", rule.wait_for, WAIT_CHARS_MAX)
    if rule.wait_for and not rule.wait_for.strip():
        yield "waitFor", "is blank"


def does_nothing(rule: EntryRule) -> bool:
    """Return whether a rule has no effect, which is a mistake, though a harmless one."""
    return rule.priority is None and not rule.enter and not rule.wait_for


def _line_faults(field: str, text: str, chars_max: int) -> Iterator[tuple[str, str]]:
    if len(text) > chars_max:
        yield field, f"is longer than {chars_max} characters"
    if text and not text.isprintable():
        yield field, "is not one line of text"
