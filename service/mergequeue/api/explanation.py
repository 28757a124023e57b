"""Why a pull request is not merged yet, as `/explainPullRequest` shows it (API.md 4.3)."""

from service.http import rendering
from service.http.rendering import Json
from service.mergequeue.api import responses
from service.mergequeue.engine.explaining.conditions import Condition
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.states import FINAL, EntryState, QueueState
from service.mergequeue.operations.views import ExplainView
from service.mergequeue.wording import conditions, reasons

SAMPLES_MIN = 5
"""Runs that have to have succeeded before a time left is shown (UX.md 1)."""


def of(view: ExplainView, queue: MergeQueue) -> Json:
    """The explanation over the queue's value; its conditions in the engine's order."""
    shown = view.pull_request
    entry, eta = shown.entry, shown.eta
    following = view.explained.next
    return {
        "prNumber": entry.pr,
        "state": entry.state.value,
        "reason": entry.reason.value,
        "summary": summary(view),
        "conditions": [_condition(each, queue) for each in view.explained.conditions],
        "next": following
        and {
            "what": conditions.next_message(following, responses.situation_of(shown).wanted),
            "at": rendering.time_or_null(following.at),
            "pullRequests": following.prs,
        },
        "ahead": view.ahead,
        "behind": view.behind,
        "dependsOn": view.depends_on,
        "requiredStatuses": list(dict.fromkeys(each.name for each in view.required.names)),
        "requiredStatusesSource": responses.source(view.required.source),
        "eta": responses.time_left(eta),
        "etaUnknownReason": None if eta is not None else eta_unknown_because(view, queue),
    }


def _condition(condition: Condition, queue: MergeQueue) -> Json:
    return {
        "code": condition.code.value,
        "met": condition.met,
        "text": conditions.message(condition, queue),
        "since": rendering.time_or_null(condition.since),
        "whoMustAct": condition.who_must_act.value,
        "pullRequests": condition.prs,
        "url": condition.url,
    }


_ORDINALS = {1: "st", 2: "nd", 3: "rd"}


def summary(view: ExplainView) -> str:
    """Where it stands, in one sentence."""
    shown = view.pull_request
    entry, position = shown.entry, shown.position
    if entry.state is EntryState.PENDING and position is not None:
        return f"In the queue, {ordinal(position)} of {shown.length}."
    return reasons.sentence(responses.situation_of(shown))


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `3rd`, `4th`, `11th`, `21st`."""
    teens = 10 < number % 100 < 14
    return f"{number}{'th' if teens else _ORDINALS.get(number % 10, 'th')}"


def eta_unknown_because(view: ExplainView, queue: MergeQueue) -> str:
    """Why no time left is shown."""
    state = view.pull_request.entry.state
    if state in FINAL:
        return "It has left the queue."
    if state is EntryState.NOT_READY:
        return "It is not ready yet."
    if queue.state is QueueState.PAUSED or queue.holds:
        return "The queue stands still."
    return f"Fewer than {SAMPLES_MIN} runs so far."
