"""The probability that CI itself fails, and not a change (docs/design/testing.md 6)."""

import math
from collections.abc import Sequence

from service.mergequeue.engine.model import Entry, Failure
from service.mergequeue.engine.policy import constants
from service.mergequeue.engine.state import ledger
from service.mergequeue.engine.state.draft import Draft


def odds(draft: Draft, entry: Entry, run_id: str) -> float:
    """The odds that this run failed because CI fails everything; 0 if something passed since.

    They are the chance that CI broke after the last pass, divided by the chance that the failures
    of other pull requests since then have causes of their own.
    """
    memory = draft.queue.breaker
    at = next((one.at for one in memory.failures if one.run == run_id), None)
    if at is None or (memory.passed_at is not None and memory.passed_at >= at):
        return 0.0
    unseen = constants.UNSEEN_MAX
    if memory.passed_at is not None:
        unseen = min(at - memory.passed_at, unseen)
    others = [
        one
        for one in memory.failures
        if entry.pr not in (*one.entries, *one.base)
        and (memory.passed_at is None or one.at > memory.passed_at)
    ]
    return unseen / constants.OUTAGE_PERIOD / _joint_chance(_independent_ones(draft, others))


def are_improbable(draft: Draft, newest: Failure, rivals: Sequence[Failure], limit: float) -> bool:
    """Return whether so many independent failures together would be too much of a coincidence."""
    chosen = _independent_ones(draft, rivals, newest)
    is_enough = len(chosen) >= constants.INDEPENDENT_FAILURES_MIN
    return is_enough and _joint_chance(chosen) < limit


def _independent_ones(
    draft: Draft, failures: Sequence[Failure], *chosen: Failure
) -> tuple[Failure, ...]:
    """Add those that are independent of all that are chosen, the least probable first."""
    for one in sorted(failures, key=lambda failure: failure.chance):
        if all(ledger.are_independent(draft, one, other) for other in chosen):
            chosen = (*chosen, one)
    return chosen


def _joint_chance(failures: Sequence[Failure]) -> float:
    return math.prod(one.chance for one in failures)
