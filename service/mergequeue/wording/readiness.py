"""Describe what a pull request needs to enter the queue: one text per reason with a need.

Each need has a whole clause ("there is no conflict with main"), a few words for the title of
a check run ("no conflict with main") and the step that brings it about ("the conflict with
main is resolved").
"""

from collections.abc import Callable, Sequence

from service.mergequeue.reasons.record import Need
from service.mergequeue.wording.names import MERGE
from service.mergequeue.wording.situation import Wanted
from service.text import phrases
from service.text.phrases import NAMES_SHOWN_MAX, Argument, Code, Phrase, counted, listed, phrase
from service.vocabulary import CODE_OWNERS, LAST_PUSH

STEPS_SHOWN_MAX = 2


def goal(wanted: Wanted) -> Phrase:
    """Return the goal as a clause that is true once it is met."""
    return _written(wanted, lambda need: need.goal)


def goals(wanted: Sequence[Wanted]) -> Phrase:
    """Several in one sentence."""
    return listed([goal(each) for each in wanted], NAMES_SHOWN_MAX)


def met(wanted: Wanted) -> Phrase:
    """Return the clause for a goal that is met, or was never in question."""
    return _written(wanted, lambda need: need.met or need.goal)


def brief(wanted: Wanted) -> Phrase:
    """Return the goal in a few words, for `Waiting: …`."""
    return _written(wanted, lambda need: need.brief)


def step(wanted: Wanted) -> Phrase:
    """Return the step that meets the goal, as a clause."""
    return _written(wanted, lambda need: need.step or need.goal)


def steps(wanted: Sequence[Wanted]) -> Phrase:
    """The first two by name, the others counted."""
    named = [step(each) for each in wanted[:STEPS_SHOWN_MAX]]
    rest = len(wanted) - len(named)
    if rest:
        named.append(counted(rest, "more condition is met", "more conditions are met"))
    return listed(named, len(named))


def _written(wanted: Wanted, text_of: Callable[[Need], str]) -> Phrase:
    need = wanted.code.record.need
    if need is None:
        return Phrase()
    return phrases.filled(text_of(need), lambda name: _PLACES[name](wanted))


def _rebase(wanted: Wanted) -> Code | None:
    """Return how a member of a chain is rebased once the one below it has landed as new commits."""
    if not wanted.name:
        return None
    return Code(f"git rebase --onto origin/{wanted.target} origin/{wanted.name}")


def _below(wanted: Wanted) -> list[int]:
    """Return the members of a stack that must be merged first, the lowest first."""
    return _numbers(wanted.name)


def _absent(wanted: Wanted) -> list[int]:
    """Return those of them that are not in the queue."""
    return _numbers(wanted.state) if _below(wanted) else []


def _numbers(name: str) -> list[int]:
    return [int(word) for word in name.split() if word.isdecimal()]


_APPROVERS = {
    CODE_OWNERS: "a code owner",
    LAST_PUSH: "somebody other than the last pusher",
}

_PLACES: dict[str, Callable[[Wanted], Argument | None]] = {
    "target": lambda wanted: wanted.target,
    "name": lambda wanted: wanted.name or None,
    "state": lambda wanted: wanted.state or None,
    "head": lambda wanted: phrases.short(wanted.head) if wanted.head is not None else None,
    "rebase": _rebase,
    "approver": lambda wanted: phrase(_APPROVERS.get(wanted.name, "")),
    "cause": lambda wanted: phrases.quoted(wanted.name) if wanted.name else None,
    "below": lambda wanted: phrases.pulls(_below(wanted)),
    "below_are": lambda wanted: phrase(phrases.are(_below(wanted))),
    "below_have": lambda wanted: phrase("has" if len(_below(wanted)) == 1 else "have"),
    "absent": lambda wanted: phrases.pulls(_absent(wanted)),
    "absent_are": lambda wanted: phrase(phrases.are(_absent(wanted))),
    "merge": lambda _: MERGE,
}
"""The names that a template of a need may use."""
