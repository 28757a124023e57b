"""Conditions of Mergify as rules of entry, where these say exactly the same."""

import re
from collections.abc import Iterable, Iterator

import orjson

from bot.cli.moving.mapping import Carried, File, Left, inner_of
from service.mergequeue.engine.model import PRIORITY_NAMES
from service.mergequeue.engine.rules import EntryRule
from service.mergequeue.entry_rules import checking
from service.mergequeue.entry_rules.checking import NAME_CHARS_MAX
from service.repofile.document import Path

PRIORITIES = "priority_rules"
NO_EQUAL = (
    "A condition or the priority of this rule has no exact equal in `rules`.",
    "Write the rule yourself; “Rules” has the variables.",
)

_LEVELS = {
    "low": "low",
    "medium": "medium",
    "high": "high",
    "1000": "low",
    "2000": "medium",
    "3000": "high",
}
"""Mergify's levels and their numbers → ours. Between them, only the order would be known."""

_NAMED = re.compile(r"(-?)(label|author|base|head)\s*(!?=)\s*([^=~].*)")
_APPROVED = re.compile(r"#approved-reviews-by\s*(>=|<=|>|<|=)\s*(\d{1,3})")
_TRUE = re.compile(r"-(?:draft|closed|conflict|merged)")
_VARIABLES = {"author": "author", "base": "base", "head": "branch"}


def wait_of(condition: str) -> EntryRule | None:
    """Return the rule by which a pull request waits until the condition holds."""
    rule = _wait_of(condition)
    return None if rule is None or checking.faults(rule) else rule


def _wait_of(condition: str) -> EntryRule | None:
    if match := _APPROVED.fullmatch(condition):
        count = int(match[2]) + (match[1] == ">")
        if match[1] in (">=", ">") and count:
            text = "an approval" if count == 1 else f"{count} approvals"
            return EntryRule(text, when=f"approvals.size() < {count}", wait_for=text)
    match = _NAMED.fullmatch(condition)
    if match and match[2] == "label" and (match[1] == "-") != (match[3] == "!="):
        name = _value(match[4])
        text = f"removal of the label {name}"
        return EntryRule(
            f"no label {name}"[:NAME_CHARS_MAX], when=f"{_quoted(name)} in labels", wait_for=text
        )
    return None


def priorities(file: File, branches: Iterable[str]) -> Iterator[tuple[str, Carried | Left]]:
    """Yield the rules for priorities, the highest first: of several the first one counts here."""
    value = inner_of(file.document.value, PRIORITIES)
    found: list[Carried | Left] = []
    for number, rule in enumerate(value if isinstance(value, list) else []):
        path: Path = (PRIORITIES, number)
        place = file.place(path, inner_of(rule, "name") or "")
        own = _priority_rule(rule)
        found.append(
            Left(place, *NO_EQUAL) if own is None else Carried(place, "rules", (own,), "", path)
        )
    found.sort(key=_rank)
    for branch in dict.fromkeys(branches):
        yield from ((branch, one) for one in found)


def _rank(one: Carried | Left) -> int:
    rules = one.to if isinstance(one, Carried) and isinstance(one.to, tuple) else ()
    return min((rule.priority or 0 for rule in rules if isinstance(rule, EntryRule)), default=0)


def _priority_rule(rule: object) -> EntryRule | None:
    name, conditions = inner_of(rule, "name"), inner_of(rule, "conditions")
    level = _LEVELS.get(str(inner_of(rule, "priority") or "medium"))
    if not isinstance(name, str) or not isinstance(conditions, list) or level is None:
        return None
    parts = [_expression(each) if isinstance(each, str) else None for each in conditions]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    when = " && ".join(part for part in known if part)
    found = EntryRule(name[:NAME_CHARS_MAX], when=when, priority=PRIORITY_NAMES[level])
    return None if checking.faults(found) else found


def _expression(condition: str) -> str | None:
    """Return a condition in CEL, empty if it always holds; None: it has no exact equal."""
    if _TRUE.fullmatch(condition):
        return ""
    if match := _APPROVED.fullmatch(condition):
        sign = "==" if match[1] == "=" else match[1]
        return f"approvals.size() {sign} {match[2]}"
    match = _NAMED.fullmatch(condition)
    if match is None:
        return None
    is_not = (match[1] == "-") != (match[3] == "!=")
    value = _value(match[4])
    if match[2] == "label":
        inside = f"{_quoted(value)} in labels"
        return f"!({inside})" if is_not else inside
    value = value.removesuffix("[bot]") if match[2] == "author" else value
    return f"{_VARIABLES[match[2]]} {'!=' if is_not else '=='} {_quoted(value)}"


def _value(text: str) -> str:
    return text.strip().strip("\"'")


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()
