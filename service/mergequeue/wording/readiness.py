"""Describe what a pull request needs to enter the queue: one text per reason with a need.

Each need has a whole clause ("there is no conflict with main"), a few words for the title of
a check run ("no conflict with main") and the step that brings it about ("the conflict with
main is resolved").
"""

import re
from collections.abc import Callable, Sequence

from service.mergequeue.reasons.record import Need
from service.mergequeue.wording.names import MERGE
from service.mergequeue.wording.situation import UnmetCondition
from service.text import phrases, times
from service.text.phrases import NAMES_SHOWN_MAX, Argument, Code, Phrase, counted, listed, phrase
from service.vocabulary import CODE_OWNERS, LAST_PUSH

_LANDING = re.compile(r"#[1-9][0-9]{0,8}|[0-9a-f]{10,64}")
STEPS_SHOWN_MAX = 2
ID_CHARS = 10


def goal(condition: UnmetCondition) -> Phrase:
    """Return the goal as a clause that is true once it is met."""
    return _written(condition, lambda need: need.goal)


def goals(condition: Sequence[UnmetCondition]) -> Phrase:
    """Several in one sentence."""
    return listed([goal(each) for each in condition], NAMES_SHOWN_MAX)


def met(condition: UnmetCondition) -> Phrase:
    """Return the clause for a goal that is met, or was never in question."""
    return _written(condition, lambda need: need.met or need.goal)


def brief(condition: UnmetCondition) -> Phrase:
    """Return the goal in a few words, for `Waiting: …`."""
    return _written(condition, lambda need: need.brief)


def step(condition: UnmetCondition) -> Phrase:
    """Return the step that meets the goal, as a clause."""
    return _written(condition, lambda need: need.step or need.goal)


def steps(condition: Sequence[UnmetCondition]) -> Phrase:
    """The first two by name, the others counted."""
    named = [step(each) for each in condition[:STEPS_SHOWN_MAX]]
    rest = len(condition) - len(named)
    if rest:
        named.append(counted(rest, "more condition is met", "more conditions are met"))
    return listed(named, len(named))


def _written(condition: UnmetCondition, text_of: Callable[[Need], str]) -> Phrase:
    need = condition.code.record.need
    if need is None:
        return Phrase()
    return phrases.filled(text_of(need), lambda name: _PLACES[name](condition))


def _rebase(condition: UnmetCondition) -> Code | None:
    """Return how a member of a chain is rebased once the one below it has landed as new commits."""
    if not condition.name:
        return None
    return Code(f"git rebase --onto origin/{condition.target} origin/{condition.name}")


def _below(condition: UnmetCondition) -> list[int]:
    """Return the members of a stack that must be merged first, the lowest first."""
    return _numbers(condition.name)


def _absent(condition: UnmetCondition) -> list[int]:
    """Return those of them that are not in the queue."""
    return _numbers(condition.state) if _below(condition) else []


def _numbers(name: str) -> list[int]:
    return [int(word) for word in name.split() if word.isdecimal()]


def _undone(condition: UnmetCondition) -> Phrase | None:
    """Return the landings that it would take back: numbers, and commits without one."""
    words = _landings(condition)
    named = [
        phrases.pulls([int(word[1:])]) if word.startswith("#") else phrase("{}", Code(word))
        for word in words
    ]
    return listed(named, NAMES_SHOWN_MAX) if named else None


def _declare(condition: UnmetCondition) -> Code | None:
    """Return the command that declares them; a commit is named by its first characters."""
    options = " ".join(f"--undoes {word}" for word in _landings(condition)[:NAMES_SHOWN_MAX])
    return Code(f"/merge {options}") if options else None


def _landings(condition: UnmetCondition) -> list[str]:
    """Return how the landings of the name are named: `#7`, or the beginning of a commit."""
    return [word[:ID_CHARS] for word in condition.name.split() if _LANDING.fullmatch(word)]


def _until(condition: UnmetCondition) -> Phrase | None:
    return None if condition.until is None else phrase(times.moment(condition.until))


def _awaited(condition: UnmetCondition) -> Phrase | None:
    """Return what a rule waits for, and until when at most; None if that is not known."""
    if not condition.state:
        return None
    text = phrase("{}", phrases.quoted(condition.state))
    until = _until(condition)
    return text if until is None else text + phrase(", until {}", until)


def _dependency(condition: UnmetCondition) -> Phrase | None:
    """Return what is wrong with a line `Depends-On`: the name is a word, and pull requests."""
    fault = next((words for word, words in _DEPENDENCIES.items() if word in condition.name), None)
    pulls = phrases.pulls(_numbers(condition.name))
    return None if fault is None else phrases.filled(fault, {"prs": pulls}.get)


_DEPENDENCIES = {
    "closed": "{prs|a PR that it names} was closed without a merge",
    "unknown": "{prs|a number that it names} is no PR of this repository",
    "itself": "it names itself",
    "round": "{prs|a PR that it names} depends on it",
    "unreadable": "it names no PR",
    "many": "it names too many PRs",
}
"""The faults of a line `Depends-On`, by the first word of the blocker's name."""


_APPROVERS = {
    CODE_OWNERS: "a code owner",
    LAST_PUSH: "somebody other than the last pusher",
}

_PLACES: dict[str, Callable[[UnmetCondition], Argument | None]] = {
    "target": lambda condition: condition.target,
    "name": lambda condition: condition.name or None,
    "state": lambda condition: condition.state or None,
    "head": lambda condition: (
        phrases.commit(condition.head) if condition.head is not None else None
    ),
    "rebase": _rebase,
    "approver": lambda condition: phrase(_APPROVERS.get(condition.name, "")),
    "cause": lambda condition: phrases.quoted(condition.name) if condition.name else None,
    "below": lambda condition: phrases.pulls(_below(condition)),
    "below_are": lambda condition: phrase(phrases.are(_below(condition))),
    "below_have": lambda condition: phrase("has" if len(_below(condition)) == 1 else "have"),
    "absent": lambda condition: phrases.pulls(_absent(condition)),
    "absent_are": lambda condition: phrase(phrases.are(_absent(condition))),
    "undone": _undone,
    "declare": _declare,
    "until": _until,
    "awaited": _awaited,
    "rule": lambda condition: condition.name or None,
    "dependency": _dependency,
    "merge": lambda _: MERGE,
}
"""The names that a template of a need may use."""
