"""Holds: reasons not to start or land, beside the queue's state (docs/design/engine.md 4)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from service.mergequeue.engine.model import Breaker, Hold, MergeQueue
from service.mergequeue.engine.outputs import HoldPlaced, HoldReleased
from service.mergequeue.engine.reasons import BREAKER_HOLDS, HoldReason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.reasons.record import HoldScope, WhoMustAct

TRY_AGAIN = timedelta(minutes=15)
"""After this time a refusal by a rule is tried once more (docs/design/engine.md 4)."""

LOOKED_AT_BY_A_PERSON = frozenset({HoldReason.LANDING_MISMATCH, HoldReason.TARGET_REWRITTEN})
"""Until these are lifted no move of the target is taken in (docs/design/landing.md 3)."""

_MENDED_BY_THE_REST = frozenset({HoldReason.UNTESTED_TIP, HoldReason.BASE_RED})


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """A hold to place; `scope` None takes the reason's own."""

    reason: HoldReason
    text: str
    scope: HoldScope | None = None
    until: datetime | None = None
    evidence: str | None = None


def place(draft: Draft, request: HoldRequest) -> None:
    """Place a hold of its own; the same reason again makes a second one."""
    queue = draft.queue
    hold = Hold(
        id=draft.name(f"hold {queue.next_hold}"),
        reason=request.reason,
        scope=request.scope or request.reason.record.scope,
        by=draft.actor,
        text=request.text,
        since=draft.now,
        until=request.until,
        evidence=request.evidence,
    )
    draft.put_queue(replace(queue, holds=(*queue.holds, hold), next_hold=queue.next_hold + 1))
    draft.record(HoldPlaced(hold.id, hold.reason, hold.text))


def place_once(draft: Draft, request: HoldRequest) -> None:
    """Place a hold unless one with this reason exists."""
    if not has(draft.queue, request.reason):
        place(draft, request)


def place_until(draft: Draft, request: HoldRequest, until: datetime) -> bool:
    """Place a hold that ends at `until`, or let the one with this reason end no earlier.

    Return whether that changed anything.
    """
    hold = next((one for one in draft.queue.holds if one.reason is request.reason), None)
    if hold is None:
        place(draft, replace(request, until=until))
        return True
    if hold.until is None or hold.until >= until:
        return False
    later = replace(hold, until=until)
    kept = tuple(later if one is hold else one for one in draft.queue.holds)
    draft.put_queue(replace(draft.queue, holds=kept))
    return True


def release(draft: Draft, hold: Hold, text: str) -> None:
    """Lift one hold; the last breaker hold takes the breaker's memory with it."""
    left = tuple(other for other in draft.queue.holds if other.id != hold.id)
    queue = replace(draft.queue, holds=left)
    if hold.reason in BREAKER_HOLDS and not _any(queue, BREAKER_HOLDS):
        queue = replace(queue, breaker=Breaker())
    draft.put_queue(queue)
    draft.record(HoldReleased(hold.id, hold.reason, text))


def release_all(draft: Draft, reasons: frozenset[HoldReason], text: str) -> None:
    """Lift every hold of these reasons."""
    for hold in draft.queue.holds:
        if hold.reason in reasons:
            release(draft, hold, text)


def landing_ended(draft: Draft) -> None:
    """Lift the hold of a landing whose outcome was not known; it is known now."""
    release_all(draft, frozenset({HoldReason.LANDING_UNRESOLVED}), "Read back at the provider.")


def expire(draft: Draft) -> None:
    """Lift the holds whose time is over."""
    for hold in draft.queue.holds:
        if hold.until is not None and hold.until <= draft.now:
            release(draft, hold, "its end time has passed")


def has(queue: MergeQueue, reason: HoldReason) -> bool:
    """Return whether a hold with this reason exists."""
    return any(hold.reason is reason for hold in queue.holds)


def who_lifts(reason: HoldReason) -> WhoMustAct:
    """Return who must act while such a hold exists."""
    return reason.record.who


def stops_starts(queue: MergeQueue) -> tuple[Hold, ...]:
    """Holds that let nothing start."""
    return tuple(hold for hold in queue.holds if hold.scope is not HoldScope.LAND)


def stops_landings(queue: MergeQueue, run: str | None = None) -> tuple[Hold, ...]:
    """Holds that let nothing land; with `run`, those that stop the landing of that run.

    While the target stands on a part of a unit, the rest of the unit may land: then the target has
    the tree that was tested (docs/design/landing.md 10).
    """
    untested = queue.untested
    is_rest = untested is not None and untested.run == run
    return tuple(
        hold
        for hold in queue.holds
        if hold.scope is not HoldScope.START
        and not (is_rest and hold.reason in _MENDED_BY_THE_REST)
    )


def is_waiting_for_a_look(queue: MergeQueue) -> bool:
    """Return whether what we know of the target is known to be wrong until a person has looked."""
    return _any(queue, LOOKED_AT_BY_A_PERSON)


def is_view_stale(queue: MergeQueue) -> bool:
    """Return whether the target is known to have moved, or to be wrong, but not yet how."""
    return queue.kept_move is not None or is_waiting_for_a_look(queue)


def _any(queue: MergeQueue, reasons: frozenset[HoldReason]) -> bool:
    return any(hold.reason in reasons for hold in queue.holds)
