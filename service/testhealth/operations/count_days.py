"""Count the days that are over: the only job that writes counts of tests."""

import asyncio

from service.runtime import Runtime
from service.testhealth.operations import queue_waits
from service.testhealth.store import case_times, day_counts, days
from service.testhealth.store.case_times import Unsummed
from service.testhealth.store.days import OpenDay
from service.testhealth.store.sets import OutcomeSets


async def count_due(runtime: Runtime) -> None:
    """Count each open day that is over and quiet; safe to repeat, and to run several times."""
    for day in await runtime.store.read(days.due, runtime.clock.now()):
        await count(runtime, day)
    for each in await runtime.store.read(case_times.unsummed):
        await sum_weeks(runtime, each)


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
    read_times = await runtime.store.read(case_times.read, sets, day)
    times = await asyncio.to_thread(case_times.added_up, read_times)
    if not await runtime.store.run(case_times.write, day, times):
        return
    if not await runtime.store.run(queue_waits.count, runtime, day):
        return
    await runtime.store.run(days.close, day, sums.failed)


async def sum_weeks(runtime: Runtime, of: Unsummed) -> None:
    """Add up the times of a repository's tests in the last two weeks that are counted."""
    versions = await runtime.store.read(case_times.versions, of)
    for part in await runtime.store.read(case_times.parts_of, of):
        stored = await runtime.store.read(case_times.days_of_part, of, part)
        rows = await asyncio.to_thread(case_times.summed, of, stored)
        await runtime.store.run(case_times.write_week, of, part, rows)
    await runtime.store.run(case_times.note_summed, of, versions)
