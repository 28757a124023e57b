"""Widen the conditions of workflows that name another queue's branches or event."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from bot.github import conditions, workflow_files
from bot.github.audits import rules
from bot.github.workflow_files import PROBE
from service.provider.values import Vehicle

TEXT = r"'(?:[^']|'')*'"
CONTEXT = r"github\.[\w.]+"
SAME = rf"(?:{CONTEXT}\s*==\s*{TEXT}|{TEXT}\s*==\s*{CONTEXT})"
CALL = rf"(?:startsWith|contains)\(\s*{CONTEXT}\s*,\s*{TEXT}\s*\)"
DIFFERS = rf"(?:{CONTEXT}\s*!=\s*{TEXT}|{TEXT}\s*!=\s*{CONTEXT})"
ATOM = re.compile(rf"(?P<no>!\s*{CALL}|{DIFFERS})|(?P<yes>{CALL}|{SAME})", re.IGNORECASE)
EXPRESSION = re.compile(r"\$\{\{(?:[^}]|\}(?!\}))*\}\}")
OURS = "headgate/merge"


@dataclass(frozen=True, slots=True)
class Goal:
    """Kind of test branch, and the places of other queues that are to be the same as one.

    `twins`: the names of jobs of which one runs only in the other queue.
    """

    vehicle: Vehicle
    target: str
    places: frozenset[str]
    required: frozenset[str] = frozenset()
    twins: frozenset[str] = field(default_factory=frozenset)

    @property
    def ours(self) -> str:
        """The condition that is true on test branches."""
        return rules.CONDITIONS[self.vehicle]


def widened(text: str, goal: Goal, *, narrows: bool) -> str:
    """Return a condition that is on our test branches what it is in the other queue.

    `A == 'merge_group'` becomes `A == 'merge_group' || OURS`. With `narrows` the opposite becomes
    `A != 'merge_group' && !OURS`.
    """
    if OURS in text:
        return text
    changed = ATOM.sub(_replacement(goal, narrows), text)
    if changed != text or workflow_files.place_in(text) not in goal.places:
        return changed
    push = goal.vehicle is Vehicle.PUSH
    seen = conditions.on_push(PROBE) if push else conditions.on_draft(PROBE, goal.target)
    if conditions.can_be_true(text, seen):
        return text
    body, closing = (text[:-2], text[-2:]) if text.endswith("}}") else (text, "")
    return f"{body.rstrip()} || {goal.ours}{' ' if closing else ''}{closing}"


def widened_inside(text: str, goal: Goal) -> str:
    """Return a text whose expressions `${{ … }}` are changed as conditions are."""
    replacement = _replacement(goal, narrows=True)
    return EXPRESSION.sub(
        lambda one: one[0] if OURS in one[0] else ATOM.sub(replacement, one[0]), text
    )


def is_opposite(text: str, goal: Goal) -> bool:
    """Return whether a text asks for what is not another queue's."""
    return any(
        one["no"] and workflow_files.place_in(one[0]) in goal.places for one in ATOM.finditer(text)
    )


def _replacement(goal: Goal, narrows: bool) -> Callable[[re.Match[str]], str]:
    def replaced(match: re.Match[str]) -> str:
        atom = match[0]
        if workflow_files.place_in(atom) not in goal.places or (match["no"] and not narrows):
            return atom
        both = f"{atom} || {goal.ours}" if match["yes"] else f"{atom} && !{goal.ours}"
        is_whole = atom == match.string.strip().removeprefix("${{").removesuffix("}}").strip()
        return both if is_whole else f"({both})"

    return replaced
