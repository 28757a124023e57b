"""Rows past their time, removed in batches with turns between (docs/design/transactions.md 11)."""

from service.process.store import retention
from service.process.store.retention import RetentionLimits
from service.runtime import Runtime
from service.testhealth.operations import count_days, judge, noting

ROUNDS_MAX = 1000
"""Batches in one go; what is left waits for the next hour."""


async def prune(runtime: Runtime) -> bool:
    """Remove rows past their time; return whether there were any.

    Uploads are noted and judged and their days counted first: after a long stop they may be too
    old already.
    """
    await noting.finish_all(runtime)
    await judge.catch_up(runtime)
    await count_days.count_due(runtime)
    found = False
    for _ in range(ROUNDS_MAX):
        if not await runtime.store.run(retention.prune, runtime.clock.now(), RetentionLimits()):
            return found
        found = True
    return found
