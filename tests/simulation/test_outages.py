"""When the breaker holds a queue: in an outage of CI, and not for two broken pull requests."""

from datetime import timedelta

import pytest

from service.mergequeue.engine.config import BatchSizing, Mode, QueueConfig
from tests.mergequeue.stage import START
from tests.simulation.outages import TESTS_TAKE, Plan, Queue

MODES = (Mode.SINGLE, Mode.PARALLEL)
HELD_BY_TWO = (2, 4, 9, 11)
"""Seeds in which two failures alone were followed by a pass too late."""


def settings(mode: Mode, sizing: BatchSizing) -> QueueConfig:
    """Return the settings of a queue with five slots."""
    is_adaptive = sizing is BatchSizing.ADAPTIVE
    return QueueConfig(mode=mode, batch_sizing=sizing, batch=is_adaptive, concurrency=5)


@pytest.mark.parametrize("sizing", BatchSizing)
@pytest.mark.parametrize("mode", MODES)
def test_two_broken_pull_requests_hold_no_queue(mode: Mode, sizing: BatchSizing) -> None:
    plan = Plan(settings(mode, sizing), pull_requests=12, broken=2, p_fail=0.02)
    for seed in HELD_BY_TWO:
        seen = Queue(plan, seed).play()
        assert seen.held_at == []
        assert seen.rejected == seen.broken
        assert len(seen.merged) == plan.pull_requests - plan.broken


@pytest.mark.fault(
    "the checks of every test run fail",
    holds="the queue is held by name, few are rejected, and it goes on when a run passes",
    within="5 test durations until the hold",
)
@pytest.mark.parametrize("mode", MODES)
def test_an_outage_of_ci_holds_the_queue_soon(mode: Mode) -> None:
    begins, ends = timedelta(minutes=30), timedelta(minutes=90)
    plan = Plan(
        settings(mode, BatchSizing.FIXED), pull_requests=16, p_fail=0.02, outage=(begins, ends)
    )
    seen = Queue(plan, 1).play()
    assert seen.held_at[0] - (START + begins) <= 5 * TESTS_TAKE
    assert len(seen.rejected) <= 2
    assert len(seen.merged) == plan.pull_requests - len(seen.rejected)
