"""Members of one stack in one queue: those below go first (docs/design/engine.md 5)."""

from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.places import is_expected
from service.mergequeue.engine.states import EntryState
from service.vocabulary import BlockerCode

FAILED_BATCHES_MAX = 3
"""Failed batches after which an entry is tested alone (docs/design/engine.md 6)."""


def is_member(draft: Draft, entry: Entry) -> bool:
    """Return whether it has members of its stack, or of its chain, below or above it."""
    return entry.facts.in_stack or bool(entry.facts.below) or bool(draft.above(entry))


def waits(draft: Draft, entry: Entry) -> bool:
    """Return whether a member below is neither ready ahead of this one nor landed.

    In PARALLEL mode each member waits until those below have merged: impacted targets of two
    members need not overlap, and then neither would be tested on top of the other.
    """
    below = entry.facts.below
    if entry.bisection is not None:
        # A search decides on it; it lands only after it is back in the line.
        return False
    if draft.is_parallel or not below:
        return any(each.code is BlockerCode.STACKED for each in entry.facts.blockers)
    return not all(_goes_first(draft, entry, pr) for pr in below)


def may_start(draft: Draft, entry: Entry) -> bool:
    """Return whether all that is below a ready entry has its place in the line, or has landed."""
    below = (draft.entries.get(pr) for pr in entry.facts.below)
    return all(other is None or other.rank is not None for other in below)


def may_land(draft: Draft, run: Run) -> bool:
    """Return whether all that is below the entries of a run has landed or lands with them."""
    done = {step.pr for step in draft.queue.landed}
    for entry in draft.own(run):
        if not done.issuperset(entry.facts.below):
            return False
        done.add(entry.pr)
    return True


def _goes_first(draft: Draft, entry: Entry, pr: int) -> bool:
    other = draft.entries.get(pr)
    if other is None:
        # The facts may be from before it landed; a waiting entry waits for newer ones.
        return entry.rank is not None and any(step.pr == pr for step in draft.queue.landed)
    if other.unmet or other.cancel is not None:
        return False
    if other.rank is None:
        is_before = entry.seq is None or other.waiting_key < entry.waiting_key
        return other.state is EntryState.PENDING and entry.rank is None and is_before
    is_before = entry.rank is None or other.rank < entry.rank
    are_together = entry.run is not None and entry.run == other.run
    return is_before and (is_expected(other) or are_together)


def is_apart(entry: Entry) -> bool:
    """Return whether a member of a stack is tested by a run of its own."""
    return entry.no_batch or entry.taken_apart or entry.failed_batches >= FAILED_BATCHES_MAX
