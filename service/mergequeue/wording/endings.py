"""Why a pull request left the queue, why a run failed, and what to do next."""

from collections.abc import Sequence

from service.mergequeue.engine.reasons import SUBMITTED, Cause, Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.reasons.record import Ending
from service.mergequeue.wording import places
from service.mergequeue.wording.situation import Situation
from service.text import phrases
from service.text.phrases import Phrase, phrase

ALONE = "No other PR was in its base, so the cause is probably in this PR or in how it fits {}."
"""The verdict `pr_fault` about a pull request that was tested directly on its target."""


def ending_of(state: EntryState, reason: Reason) -> Ending | None:
    """Return the ending of a final state; None for another state."""
    record = reason.record
    match state:
        case EntryState.FAILED:
            return record.failed
        case EntryState.CANCELLED:
            return record.cancelled
        case EntryState.MERGED:
            return record.merged
        case _:
            return None


def label(reason: Reason) -> str:
    """Return why pull requests leave a queue unmerged, as a label of statistics."""
    ending = reason.record.failed or reason.record.cancelled
    return reason.value if ending is None else ending.label


def why(situation: Situation) -> Phrase:
    """The reason as a clause: "`test` failed", "it became a draft"."""
    ending = ending_of(situation.state, situation.reason)
    return Phrase() if ending is None else places.filled(ending.clause, situation)


def removed(situation: Situation) -> Phrase:
    """`removed by alice`, `removed: it became a draft`."""
    by_request = situation.reason in SUBMITTED
    return phrase("removed {}" if by_request else "removed: {}", why(situation))


def next_step(situation: Situation) -> Phrase:
    """Return what to do about it, in whole sentences; empty if there is nothing to do."""
    ending = ending_of(situation.state, situation.reason)
    return Phrase() if ending is None else places.filled(ending.next, situation)


def note(situation: Situation) -> Phrase:
    """Return what the status comment says of an ending beside its clause; may be empty."""
    ending = ending_of(situation.state, situation.reason)
    return Phrase() if ending is None else places.filled(ending.note, situation)


def verdict(cause: Cause, target: str, prs: Sequence[int] = ()) -> Phrase:
    """Return the verdict about the pull request as one sentence."""
    values = {"target": target, "prs": phrases.pulls(prs) if prs else None}
    return phrases.filled(cause.record.text, values.get)
