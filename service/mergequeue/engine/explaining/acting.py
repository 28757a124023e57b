"""Determine who must act before an open entry moves on (docs/design/engine.md 9).

The same order as the conditions of `explain`, without computing those that only other entries
decide: a record is read for hundreds of entries at once.
"""

from dataclasses import dataclass

from service.mergequeue.engine.model import Entry, Hold, MergeQueue, Run
from service.mergequeue.engine.reasons import NOT_READY_ORDER, Reason
from service.mergequeue.engine.state import holds
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.reasons.record import Record, WhoMustAct
from service.vocabulary import CheckOutcome

_NOBODY = WhoMustAct.NOBODY


@dataclass(frozen=True, slots=True)
class Acting:
    """The way on: if submitting again unchanged helps, who must act, what of the queue stops it.

    `stopped`: the queue's state, if nothing happens to the entry in it; `hold`: the hold, likewise.
    """

    retryable: bool
    who: WhoMustAct
    stopped: QueueState | None = None
    hold: Hold | None = None


def acting(queue: MergeQueue, entry: Entry, run: Run | None) -> Acting:
    """Return who must act, by the first open condition that a person has to meet.

    `run` is the entry's live run.
    """
    record = entry.reason.record
    if entry.state is EntryState.NOT_READY:
        first = _first_unmet(entry, record)
        return Acting(first.retryable, first.who)
    stopped, hold = _stops(queue, entry)
    parties = [
        WhoMustAct.MAINTAINER if stopped is not None else _NOBODY,
        holds.who_lifts(hold.reason) if hold is not None else _NOBODY,
        Reason.CONFLICT_AHEAD.record.who if entry.held_by else _NOBODY,
        _first_unmet(entry, record).who,
        WhoMustAct.MAINTAINER if _waits_for_approval(entry, run) else _NOBODY,
    ]
    who = next((each for each in parties if each is not _NOBODY), record.who)
    return Acting(record.retryable, who, stopped, hold)


def _is_blocked(run: Run) -> bool:
    """Return whether CI waits for a person's approval before it runs a check."""
    return any(check.outcome is CheckOutcome.BLOCKED for check in run.checks)


def _first_unmet(entry: Entry, otherwise: Record) -> Record:
    """Return the record of the first unmet condition that a person must meet, else the first."""
    unmet = [reason.record for reason in NOT_READY_ORDER if reason in entry.unmet]
    of_people = [one for one in unmet if one.who is not _NOBODY]
    return next(iter([*of_people, *unmet]), otherwise)


def _stops(queue: MergeQueue, entry: Entry) -> tuple[QueueState | None, Hold | None]:
    """Return the state and the hold of the queue in which nothing happens to the entry."""
    if entry.state is EntryState.PENDING:
        states, found = {QueueState.PAUSED, QueueState.DRAINING}, holds.stops_starts(queue)
    elif entry.state is EntryState.TESTS_PASSED:
        states, found = {QueueState.PAUSED}, holds.stops_landings(queue, entry.verified_by)
    else:
        return None, None
    return queue.state if queue.state in states else None, next(iter(found), None)


def _waits_for_approval(entry: Entry, run: Run | None) -> bool:
    return entry.state is EntryState.TESTING and run is not None and _is_blocked(run)
