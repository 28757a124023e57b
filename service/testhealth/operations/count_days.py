"""Count the days that are over: the only job that writes counts of tests."""

import asyncio
from collections.abc import Sequence
from itertools import groupby

from service import sweeping
from service.runtime import Runtime
from service.testhealth.operations import queue_waits
from service.testhealth.store import case_times, day_counts, days
from service.testhealth.store.case_times import Unsummed
from service.testhealth.store.days import OpenDay
from service.testhealth.store.sets import OutcomeSets


async def count_due(runtime: Runtime) -> None:
    """Count each open day that is over and quiet; safe to repeat, and to run several times.

    A mistake in one repository stops no other; the first is raised at the end.
    """
    await sweeping.one_by_one(work(runtime) for work in (_count_days, _sum_weeks))


async def _count_days(runtime: Runtime) -> None:
    due = await runtime.store.read(days.due, runtime.clock.now())
    of_each = [list(group) for _, group in groupby(due, key=lambda day: day.place)]
    await sweeping.one_by_one(_count_all(runtime, each) for each in of_each)


async def _count_all(runtime: Runtime, due: Sequence[OpenDay]) -> None:
    """Count the days of one repository, the oldest first."""
    for day in due:
        await count(runtime, day)


async def _sum_weeks(runtime: Runtime) -> None:
    unsummed = await runtime.store.read(case_times.unsummed)
    await sweeping.one_by_one(sum_weeks(runtime, each) for each in unsummed)


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
