"""Count the days that are over: the only job that writes counts of tests."""

import asyncio

from service.runtime import Runtime
from service.testhealth.store import day_counts, days
from service.testhealth.store.days import OpenDay
from service.testhealth.store.sets import OutcomeSets


async def count_due(runtime: Runtime) -> None:
    """Count each open day that is over and quiet; safe to repeat, and to run several times."""
    for day in await runtime.store.read(days.due, runtime.clock.now()):
        await count(runtime, day)


async def count(runtime: Runtime, day: OpenDay) -> None:
    """Count a day from the beginning, some tests in each transaction.

    A day whose uploads change meanwhile stays open, and is counted again later.
    """
    sets = runtime.store.caches.of(OutcomeSets)
    read = await runtime.store.read(day_counts.read, sets, day)
    sums = await asyncio.to_thread(day_counts.added_up, read)
    for part in sums.parts():
        if not await runtime.store.run(day_counts.write, sums, part):
            return
    await runtime.store.run(days.close, day, sums.failed)
