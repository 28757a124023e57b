"""Effects, performed: control actions in order per run, notices best effort."""

from service.operations import effects
from service.runtime import Runtime
from service.workers.flow import Work

AT_ONCE = 32
"""Effects under way at the same time; the provider's own limiter paces its calls."""
POLL_S = 2.0
PAUSE_MIN_S = 0.01


async def pause_s(runtime: Runtime) -> float:
    """Until the next waiting effect is due, at most the polling period."""
    due = await effects.next_due(runtime)
    if due is None:
        return POLL_S
    wait_s = (due - runtime.clock.now()).total_seconds()
    return min(max(wait_s, PAUSE_MIN_S), POLL_S)


WORK = Work("outbox", AT_ONCE, effects.claim, effects.carry_out, effects.stumble, pause_s)
"""What the outbox's flow does."""
