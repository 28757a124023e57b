"""Let a risky entry into the line at once where that costs less than to test it alone first.

Only with `batchSizing: ADAPTIVE`, and where a follower that passes clears a failed group. Alone
first, an entry takes two runs, one after the other, though most risky ones pass. In the line it
takes one, but if it fails, what started on it restarts.
"""

from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.policy import constants, suspecting
from service.mergequeue.engine.state import slots
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState, RunKind


def is_within(draft: Draft, entry: Entry) -> bool:
    """Whether a risky entry may enter the line without a test alone."""
    config = draft.queue.config
    if not config.can_optimistically_merge:
        return False
    if slots.unused(draft) < constants.ADMITTED_FREE_MIN * config.concurrency:
        return False
    line = (draft.entries[pr] for _, pr in draft.places.line)
    tested = [other for other in line if other.state is not EntryState.TESTS_PASSED]
    for run in draft.runs.of_kind(RunKind.SCREEN):
        tested += draft.own(run)
    chance = suspecting.failing(draft, entry)
    if chance * (1 + len(tested)) <= constants.ADMITTED_DISTURBED_MAX:
        return True
    expected = chance + sum(suspecting.failing(draft, one) for one in tested)
    return expected <= constants.ADMITTED_FAILURES_MAX
