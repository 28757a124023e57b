"""Attempts to tell endpoints, due ones side by side, a few of each endpoint."""

from service.notifications import notifications
from service.process.workers.flow import Work
from service.runtime import Runtime

AT_ONCE = 64
"""Attempts under way at the same time (API.md 11.2)."""
POLL_S = 2.0
PAUSE_MIN_S = 0.01


async def pause_s(runtime: Runtime) -> float:
    """Until the next attempt becomes due, at most the polling period.

    What is due and waits for a place at its endpoint is woken when an attempt there ends.
    """
    due = await notifications.next_due(runtime)
    if due is None:
        return POLL_S
    wait_s = (due - runtime.clock.now()).total_seconds()
    return min(max(wait_s, PAUSE_MIN_S), POLL_S)


WORK = Work(
    notifications.TOPIC,
    AT_ONCE,
    notifications.claim,
    notifications.carry_out,
    notifications.interrupted,
    pause_s,
)
"""What the flow of notifications does."""
