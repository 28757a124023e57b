"""Rows past their time, removed in batches with turns between (ARCHITECTURE.md 6)."""

from service.process.store import retention
from service.process.store.retention import RetentionLimits
from service.runtime import Runtime
from service.testhealth.operations import judging, tallying, upload_counting

ROUNDS_MAX = 1000
"""Batches in one go; what is left waits for the next hour."""


async def prune(runtime: Runtime) -> bool:
    """Remove what may go; whether there was anything.

    What uploads have left to be counted and judged is done first: after a long stop they may
    be too old already.
    """
    await upload_counting.finish_all(runtime)
    await tallying.add_up(runtime)
    await judging.catch_up(runtime)
    found = False
    for _ in range(ROUNDS_MAX):
        if not await runtime.store.run(retention.prune, runtime.clock.now(), RetentionLimits()):
            return found
        found = True
    return found
