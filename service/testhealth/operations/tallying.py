"""Passing and skipped tests of uploads, added up into the days of tests (FLAKY.md 4).

Uploads leave their sets (`store/tallies.py`); here those of a day become counts of tests, when
the day is over or they are many: a test's day is written once for all of them.
"""

import asyncio

from service.runtime import Runtime
from service.testhealth.detector import figures, tallying
from service.testhealth.operations.upload_counting import Desk
from service.testhealth.store import tallies
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.tallies import Batch, Due
from service.testhealth.store.uploads_rows import Upload


async def add_up(runtime: Runtime) -> None:
    """Add up what is due, some tests in each transaction."""
    today = figures.day_of(runtime.clock.now())
    while due := await runtime.store.read(tallies.due, today):
        for each in due:
            await _add_day(runtime, each)


async def _add_day(runtime: Runtime, due: Due) -> None:
    sets = runtime.store.caches.of(OutcomeSets)
    batch = await runtime.store.read(tallies.batch, sets, due)
    if batch is not None:
        await _add(runtime, batch)


async def _add(runtime: Runtime, batch: Batch) -> None:
    """Add the batch, from where it stands, unless somebody else goes on with it."""
    after, is_last = batch.after, False
    while not is_last:
        piece = await asyncio.to_thread(tallying.piece, batch.tallied, after, tallies.TESTS_MAX)
        if not await runtime.store.run(tallies.add, batch, after, piece):
            return
        after, is_last = piece.counted_to, piece.is_last


async def finish(runtime: Runtime, upload_id: str) -> None:
    """Add what is begun of an upload, some tests in each transaction."""
    sets = runtime.store.caches.of(OutcomeSets)
    while (batch := await runtime.store.read(tallies.begun, sets, upload_id)) is not None:
        await _add(runtime, batch)


def finish_within(desk: Desk, upload: Upload) -> None:
    """Add what is begun, in the transaction of somebody who holds the lock of the evidence."""
    while (batch := tallies.begun(desk.session, desk.sets, upload.id)) is not None:
        piece = tallying.piece(batch.tallied, batch.after, tallies.TESTS_MAX)
        tallies.add(desk.session, batch, batch.after, piece)
