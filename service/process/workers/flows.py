"""The rows that flows claim and carry out, with the limits of each kind."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

from service.database.outbox import OutboxRow
from service.database.records import Lane
from service.notifications import notifications
from service.process import deliveries, effects
from service.process.workers.flow import Work
from service.runtime import Runtime
from service.testhealth.operations import collected

LANES = 8
"""Repositories whose deliveries are processed concurrently."""
EFFECTS_AT_ONCE = 32
"""Effects of a lane that are performed concurrently; the provider's rate limiter paces calls."""
LANDINGS_AT_ONCE = 32
"""Landings, of one queue each, that are performed concurrently."""
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


def _effects_of(lane: Lane, topic: str, at_once: int) -> Work[OutboxRow]:
    """Return the work of one lane.

    Each lane has places of its own: notices and builds that wait for GitHub's limits must not
    occupy those of a landing, nor of a question about a failure.
    """
    lanes = (lane,)
    return Work(
        topic,
        at_once,
        partial(effects.claim, lanes=lanes),
        effects.carry_out,
        effects.interrupted,
        _until(partial(effects.next_due, lanes=lanes)),
        partial(effects.give_back, lanes=lanes),
    )


DELIVERIES = Work(
    "inbox",
    LANES,
    deliveries.claim,
    deliveries.take_up,
    deliveries.interrupted,
    _poll,
    deliveries.give_back,
)
LANDINGS = _effects_of(Lane.LANDING, "outbox", LANDINGS_AT_ONCE)
CONTROL = _effects_of(Lane.CONTROL, "outbox", EFFECTS_AT_ONCE)
EVIDENCE = _effects_of(Lane.EVIDENCE, "outbox", EFFECTS_AT_ONCE)
REPORTS = _effects_of(Lane.REPORTS, "outbox", EFFECTS_AT_ONCE)
NOTICES = _effects_of(Lane.NOTICE, "outbox", EFFECTS_AT_ONCE)
COLLECTING = _effects_of(Lane.COLLECT, collected.TOPIC, COLLECTED_AT_ONCE)
NOTIFICATIONS = Work(
    notifications.TOPIC,
    ATTEMPTS_AT_ONCE,
    notifications.claim,
    notifications.carry_out,
    notifications.interrupted,
    _until(notifications.next_due),
)
