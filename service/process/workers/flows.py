"""The rows that flows claim and carry out, with the limits of each kind."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

from service.notifications import notifications
from service.process import deliveries, effects
from service.process.workers.flow import Work
from service.runtime import Runtime
from service.testhealth.operations import collected

LANES = 8
"""Repositories whose deliveries are processed concurrently."""
EFFECTS_AT_ONCE = 32
"""Effects that are performed concurrently; the provider's own rate limiter paces its calls."""
COLLECTED_AT_ONCE = 4
"""CI runs that are searched concurrently: one archive is open at a time, most runs have none."""
ATTEMPTS_AT_ONCE = 64
"""Attempts to deliver notifications that are made concurrently."""
POLL_S = 2.0
PAUSE_MIN_S = 0.01


def _until(
    next_due: Callable[[Runtime], Awaitable[datetime | None]],
) -> Callable[[Runtime], Awaitable[float]]:
    """Return a function that returns the seconds until a row is due, at most `POLL_S`.

    Rows that wait for something else are found by polling, or woken when it has ended.
    """

    async def pause_s(runtime: Runtime) -> float:
        due = await next_due(runtime)
        if due is None:
            return POLL_S
        wait_s = (due - runtime.clock.now()).total_seconds()
        return min(max(wait_s, PAUSE_MIN_S), POLL_S)

    return pause_s


async def _poll(_runtime: Runtime) -> float:
    return POLL_S


DELIVERIES = Work(
    "inbox",
    LANES,
    deliveries.claim,
    deliveries.take_up,
    deliveries.interrupted,
    _poll,
    deliveries.give_back,
)
EFFECTS = Work(
    "outbox",
    EFFECTS_AT_ONCE,
    effects.claim,
    effects.carry_out,
    effects.interrupted,
    _until(effects.next_due),
    effects.give_back,
)
COLLECTING = Work(
    collected.TOPIC,
    COLLECTED_AT_ONCE,
    partial(effects.claim, lanes=effects.COLLECTING),
    effects.carry_out,
    effects.interrupted,
    _until(partial(effects.next_due, lanes=effects.COLLECTING)),
    partial(effects.give_back, lanes=effects.COLLECTING),
)
NOTIFICATIONS = Work(
    notifications.TOPIC,
    ATTEMPTS_AT_ONCE,
    notifications.claim,
    notifications.carry_out,
    notifications.interrupted,
    _until(notifications.next_due),
)
