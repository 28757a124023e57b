"""What must hold while a unit lands in parts: I28 and I49 of docs/design/invariants.md."""

from collections.abc import Set

from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.reasons.record import HoldScope
from service.vocabulary import Sha

HOLDS = frozenset({HoldReason.UNTESTED_TIP, HoldReason.BASE_RED})
"""Holds of a target that has a tree without a passed test; the rest of its unit ends them."""


def is_stopped(queue: MergeQueue, run: str) -> bool:
    """Whether a hold forbids the landing of this run."""
    held = {hold.reason for hold in queue.holds if hold.scope is not HoldScope.START}
    is_rest = bool(queue.landed) and queue.landed[-1].run == run
    return bool(held - HOLDS if is_rest else held)


def is_unheld(queue: MergeQueue, run: str, proven: Set[Sha]) -> bool:
    """Whether the target stands on a part of this unit, and nothing says so or finishes it."""
    last = queue.landed[-1] if queue.landed else None
    if last is None or last.run != run or queue.tip is None or queue.landing is not None:
        return False
    is_ours = queue.tip.sha == last.sha and queue.tip.tree not in proven
    return is_ours and not any(hold.reason in HOLDS for hold in queue.holds)
