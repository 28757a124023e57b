"""Estimates of a queue are sound: in order, of open entries, of all that may pass if it runs."""

from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.culprits import failing
from service.mergequeue.engine.explaining import eta
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.states import EntryState, QueueState
from tests.mergequeue.stage import Stage

# 25th percentile 120 s, 90th 186 s.
DURATIONS = (200.0, 120.0, 100.0, 165.0, 130.0)
TOLD = {EntryState.PENDING, EntryState.TESTING, EntryState.TESTS_PASSED}


def check(stage: Stage) -> None:
    """Check the estimates of the queue as it is now."""
    queue = stage.queue
    found = eta.etas(queue, DURATIONS, stage.now)
    states = {pr: queue.entries[pr].state for pr in found}
    assert set(states.values()) <= TOLD
    assert all(one.earliest_s <= one.latest_s for one in found.values())
    if queue.config.mode is Mode.SINGLE:
        for side in ("earliest_s", "latest_s"):
            times = [getattr(one, side) for one in found.values()]
            assert times == sorted(times)
    if not queue.holds and queue.state is QueueState.RUNNING:
        expected = {pr for pr, one in queue.entries.items() if one.state in TOLD}
        assert set(found) == expected - _failing(queue)


def _failing(queue: MergeQueue) -> set[int]:
    """Those under test of which a check has failed: nobody knows when they merge."""
    tested = [one for one in queue.entries.values() if one.state is EntryState.TESTING]
    return {one.pr for one in tested if failing.failing_of(queue.runs[one.run or ""])}
