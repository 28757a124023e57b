"""The order of the passes, and nothing else: what follows from the state alone.

See docs/design/engine.md 1.
"""

from collections.abc import Callable

from service.errors import InvariantBroken
from service.mergequeue.engine.culprits import bisecting
from service.mergequeue.engine.planning import (
    confirming_runs,
    dropping,
    hedging,
    landing,
    modes,
    screening,
    settling,
    starting,
    trying,
    untested,
)
from service.mergequeue.engine.state import holds, ledger, readiness
from service.mergequeue.engine.state.draft import Draft

PASSES: tuple[Callable[[Draft], None], ...] = (
    holds.expire,
    readiness.ready,
    trying.review,
    settling.settle,
    ledger.review,
    screening.review_failed_groups,
    bisecting.bisect,
    starting.interrupt,
    hedging.review,
    screening.review_second_looks,
    dropping.drop,
    confirming_runs.review,
    landing.land,
    untested.review,
    modes.switch,
    starting.start,
    modes.note_drained,
)
"""In this order; whenever one of them changed something, all begin again.

So nothing lands or starts while anything else is still to be drawn from the state.
"""


def settle(draft: Draft) -> None:
    """Plan to a fixed point. Raises InvariantBroken if the passes do not come to rest."""
    rounds_max = 4 * (len(draft.entries) + len(draft.runs)) + 16
    for _ in range(rounds_max):
        if not _has_changed(draft):
            return
    raise InvariantBroken("E8", f"planning did not come to rest in {rounds_max} rounds")


def _has_changed(draft: Draft) -> bool:
    before = draft.revision
    for run_pass in PASSES:
        run_pass(draft)
        if draft.revision != before:
            return True
    return False
