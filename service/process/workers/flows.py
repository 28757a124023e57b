"""The rows that flows claim and carry out, with the limits of each kind."""

from functools import partial

from service.database import outbox
from service.database.outbox import ClaimedEffect, Lane
from service.notifications import notifications
from service.process import deliveries, effects
from service.process.workers.flow import Work

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


def _effects_of(lane: Lane, at_once: int) -> Work[ClaimedEffect]:
    """Return the work of one lane.

    Each lane has places of its own: notices and builds that wait for GitHub's limits must not
    occupy those of a landing, nor of a question about a failure.
    """
    lanes = (lane,)
    return Work(
        outbox.TOPICS[lane],
        at_once,
        partial(effects.claim, lanes=lanes),
        effects.carry_out,
        effects.interrupted,
        outbox.ENDS[lane],
    )


DELIVERIES = Work(
    "inbox",
    LANES,
    deliveries.claim,
    deliveries.take_up,
    deliveries.interrupted,
    "inbox/ends",
)
LANDINGS = _effects_of(Lane.LANDING, LANDINGS_AT_ONCE)
CONTROL = _effects_of(Lane.CONTROL, EFFECTS_AT_ONCE)
EVIDENCE = _effects_of(Lane.EVIDENCE, EFFECTS_AT_ONCE)
REPORTS = _effects_of(Lane.REPORTS, EFFECTS_AT_ONCE)
NOTICES = _effects_of(Lane.NOTICE, EFFECTS_AT_ONCE)
COLLECTING = _effects_of(Lane.COLLECT, COLLECTED_AT_ONCE)
NOTIFICATIONS = Work(
    notifications.TOPIC,
    ATTEMPTS_AT_ONCE,
    notifications.claim,
    notifications.carry_out,
    notifications.interrupted,
    f"{notifications.TOPIC}/ends",
)
