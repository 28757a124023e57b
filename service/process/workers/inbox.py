"""Deliveries, worked on in order within a repository and side by side across them."""

from service.process import deliveries
from service.process.workers.flow import Work
from service.runtime import Runtime

LANES = 8
"""Repositories whose deliveries are worked on at the same time (ARCHITECTURE.md 7)."""
POLL_S = 2.0


async def pause_s(runtime: Runtime) -> float:
    """How long to wait for a wake-up; what was put off is found by polling."""
    del runtime
    return POLL_S


WORK = Work(
    "inbox",
    LANES,
    deliveries.claim,
    deliveries.take_up,
    deliveries.interrupted,
    pause_s,
    deliveries.give_back,
)
"""What the inbox's flow does."""
