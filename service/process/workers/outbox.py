"""Effects, performed: control actions in order per run, notices best effort.

What CI left is collected in places of its own, so that a slow archive holds up no landing.
"""

from datetime import datetime

from service.process import effects
from service.process.workers.flow import Work
from service.runtime import Runtime
from service.testhealth.operations import collected

AT_ONCE = 32
"""Effects under way at the same time; the provider's own limiter paces its calls."""
COLLECTED_AT_ONCE = 4
"""CI runs looked at side by side: one archive is open at a time, most runs have none."""
POLL_S = 2.0
PAUSE_MIN_S = 0.01


async def pause_s(runtime: Runtime) -> float:
    """Until the next waiting effect is due, at most the polling period."""
    return _until(runtime, await effects.next_due(runtime))


async def collecting_pause_s(runtime: Runtime) -> float:
    """The same for what is to be collected."""
    return _until(runtime, await effects.next_collecting_due(runtime))


def _until(runtime: Runtime, due: datetime | None) -> float:
    if due is None:
        return POLL_S
    wait_s = (due - runtime.clock.now()).total_seconds()
    return min(max(wait_s, PAUSE_MIN_S), POLL_S)


WORK = Work(
    "outbox",
    AT_ONCE,
    effects.claim,
    effects.carry_out,
    effects.interrupted,
    pause_s,
    effects.give_back,
)
"""What the outbox's flow does."""

COLLECTING = Work(
    collected.TOPIC,
    COLLECTED_AT_ONCE,
    effects.claim_collecting,
    effects.carry_out,
    effects.interrupted,
    collecting_pause_s,
    effects.give_back_collecting,
)
"""What the flow of collecting does."""
