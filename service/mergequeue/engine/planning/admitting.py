"""Let a risky entry into the line at once where that costs less than to test it alone first.

Only with `batchSizing: ADAPTIVE`, and where a follower that passes clears a failed group. Alone
first, an entry takes two runs, one after the other, though most risky ones pass. In the line it
takes one, but if it fails, what started on it restarts.
"""

from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.planning import launching
from service.mergequeue.engine.state import ledger
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState, RunKind

FREE_MIN = 0.25
"""The share of the slots that has to be free."""

FAILURES_MAX = 0.5
"""The most failures that may be expected of all under test, one more risky entry included.

What is tested alone counts too: it will be in the line soon. F 10 x 8, seeds 911 to 922: P95 1.61
with 0.35 for the line and half of the slots free, and 1.58 with this. F 30 x 24 with a weak
predictor and 8 % broken, seeds 911 to 914: P95 2.44 when only the line counted, and 2.25.
"""

DISTURBED_MAX = 1.0
"""Or: its chance of failing, times the entries under test with this one, is at most this.

So one that will probably pass does not wait because another one will probably fail. F 10 x 8, seeds
911 to 930, with test results: P95 1.531 without this rule, 1.509 with it. With 1.3, a weak
predictor and 8 % broken have a P95 of 2.27 in place of 2.20 (911 to 918).
"""


def is_within(draft: Draft, entry: Entry) -> bool:
    """Whether a risky entry may enter the line without a test alone."""
    config = draft.queue.config
    if not config.can_optimistically_merge:
        return False
    if launching.unused(draft) < FREE_MIN * config.concurrency:
        return False
    line = (draft.entries[pr] for _, pr in draft.places.line)
    tested = [other for other in line if other.state is not EntryState.TESTS_PASSED]
    for run in draft.runs.of_kind(RunKind.SCREEN):
        tested += draft.own(run)
    chance = ledger.failing(draft, entry)
    if chance * (1 + len(tested)) <= DISTURBED_MAX:
        return True
    return chance + sum(ledger.failing(draft, one) for one in tested) <= FAILURES_MAX
