"""Why a queue is stopped: the text of each hold and of each state."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.culprits.breaker import CHECK
from service.mergequeue.engine.explaining.acting import Acting
from service.mergequeue.engine.model import Hold, MergeQueue
from service.mergequeue.engine.reasons import LIFTED_BY_PERSON
from service.mergequeue.engine.states import QueueState
from service.mergequeue.wording import places
from service.text import markdown, phrases
from service.text.phrases import Argument, Code, Phrase, phrase

_RESUME = phrase("A maintainer resumes the queue with {}.", Code("/merge resume"))


@dataclass(frozen=True, slots=True)
class HoldContext:
    """A hold with the other inputs of its sentence."""

    hold: Hold
    target: str
    now: datetime


def message(hold: Hold, target: str, now: datetime) -> str:
    """Return why the hold exists and who lifts it, as plain sentences."""
    return markdown.plain(text(hold, target, now))


def text(hold: Hold, target: str, now: datetime) -> Phrase:
    """Return why the hold exists and who lifts it, in whole sentences."""
    held = HoldContext(hold, target, now)
    values = _places(held)
    record = hold.reason.record
    found = [phrases.filled(record.text, values.get)]
    if record.quotes_note and values["note"] is not None:
        found.append(phrase("Details: {}.", values["note"]))
    if hold.evidence:
        found.append(phrase("Evidence: {}.", hold.evidence))
    if hold.reason in LIFTED_BY_PERSON:
        found.append(phrase("An admin releases the hold with {}.", Code("headgate queue release")))
    return phrases.joined(found)


def standstill(queue: MergeQueue, now: datetime) -> Phrase:
    """Everything that keeps the queue from moving, in sentences; empty while it moves."""
    return phrases.joined([state_text(queue, now), texts(queue.holds, queue.branch, now)])


def texts(found: Sequence[Hold], target: str, now: datetime) -> Phrase:
    """Several holds in sentences."""
    return phrases.joined([text(hold, target, now) for hold in found])


def stop(acting: Acting, target: str, now: datetime) -> str:
    """Return what of the queue stops an entry, as plain sentences; empty for nothing."""
    found = []
    if acting.stopped is not None:
        found.append(f"The queue is {STATE_NOW[acting.stopped]}.")
    if acting.hold is not None:
        found.append(message(acting.hold, target, now))
    return " ".join(found)


def state_text(queue: MergeQueue, now: datetime) -> Phrase:
    """`Paused by bob at 13:50 UTC: …`; empty for a running queue."""
    match queue.state:
        case QueueState.RUNNING:
            return Phrase()
        case QueueState.PAUSED:
            paused = phrases.joined([phrase("Paused"), circumstances(queue, now)])
            return paused + phrase(". ") + _RESUME
        case QueueState.DRAINING:
            rest = "Tested PRs still merge; no new tests start."
            drains = phrases.joined([phrase("Set to drain"), circumstances(queue, now)])
            return drains + phrase(f". {rest} ") + _RESUME
        case QueueState.SWITCHING_MODES:
            mode = (queue.target_mode or Mode.SINGLE).value.lower()
            return phrase(f"Switching to {mode} mode; tested PRs merge first.")
        case _:
            assert_never(queue.state)


def circumstances(queue: MergeQueue, now: datetime) -> Phrase:
    """`by bob at 13:50 UTC: reason`, as far as it is known."""
    who, at, why = Phrase(), Phrase(), Phrase()
    if queue.state_by is not None and queue.state_by.login:
        who = phrase("by {}", phrases.actor(queue.state_by))
    if queue.state_since is not None:
        at = phrase("at {}", phrases.moment(queue.state_since, now))
    if queue.state_reason:
        why = phrase("{}", phrases.quoted(queue.state_reason))
    return phrases.joined([phrases.joined([who, at]), why], ": ")


def _places(held: HoldContext) -> dict[str, Argument | None]:
    hold = held.hold
    quoted = phrases.quoted(hold.text)
    evidence = hold.evidence or ""
    check = Code(evidence.removeprefix(CHECK)) if evidence.startswith(CHECK) else None
    return {
        "target": held.target,
        "check": check,
        "since": _at(hold.since, held),
        "until": _at(hold.until, held) if hold.until is not None else None,
        "by": phrases.actor(hold.by) if hold.by.login else None,
        "reason": quoted if hold.text else None,
        "note": None if places.is_code(hold.text) else quoted,
    }


def _at(moment: datetime, held: HoldContext) -> Phrase:
    return phrase("{}", phrases.moment(moment, held.now))


STATE_NOW = {
    QueueState.RUNNING: "running",
    QueueState.PAUSED: "paused",
    QueueState.DRAINING: "draining",
    QueueState.SWITCHING_MODES: "switching its mode",
}
"""The present activity of a queue, by state."""

STATE_VERBS = {
    QueueState.RUNNING: "resumed",
    QueueState.PAUSED: "paused",
    QueueState.DRAINING: "drains",
    QueueState.SWITCHING_MODES: "switches its mode",
}
"""The verb for a change to each state."""

STATE_WORDS = {
    QueueState.RUNNING: "",
    QueueState.PAUSED: "queue paused",
    QueueState.DRAINING: "draining",
    QueueState.SWITCHING_MODES: "switching mode",
}
