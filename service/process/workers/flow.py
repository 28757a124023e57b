"""Carry out rows as soon as they are due, concurrently; a slow or broken row delays no other.

A task owns a claimed row until it is settled. The tasks are not children of the loop that claims:
a loop that fails, for example because the database is unavailable, interrupts no work.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

import structlog

from service.database.claims import ClaimedRows
from service.errors import DatabaseUnavailable
from service.process.guard import failure_of
from service.runtime import Runtime
from service.troubles import Part

log = structlog.get_logger()

SETTLE_PAUSE_MIN_S = 0.5
SETTLE_PAUSE_MAX_S = 15.0
"""Bounds of the pause before a failed settlement is tried again."""
FULL_PAUSE = timedelta(seconds=2)
POLL = timedelta(seconds=5)
"""The time after which a flow looks without a wake-up, for rows that other processes stored."""
POLL_ALONE = timedelta(minutes=1)
"""The same where there are no other processes, in case a wake-up was forgotten."""
PAUSE_MIN_S = 0.01
CLAIM_PAUSE_MAX_S = 5.0
"""The longest pause of a loop whose claims fail because the database is away."""


class _HasId(Protocol):
    """A row with its id."""

    @property
    def id(self) -> int:
        """The row's primary key."""
        ...


Row = TypeVar("Row", bound=_HasId)


@dataclass(frozen=True, slots=True)
class Work(Generic[Row]):
    """The way rows of one kind are claimed, carried out and given back.

    `topic` wakes the flow when rows were stored, `ends` when one has ended for which others may
    wait; `at_once` bounds the tasks. `claim` takes a number of rows at most, and once in a while
    the ids that tasks own: other rows that this process has claimed are freed first, because the
    response to their claim was lost. `carry_out` wakes `topic` if the row is due again later.
    `interrupted` settles a row whose work ended with an unexpected error.
    """

    topic: str
    at_once: int
    claim: Callable[[Runtime, int, Collection[int] | None], Awaitable[ClaimedRows[Row]]]
    carry_out: Callable[[Runtime, Row], Awaitable[None]]
    interrupted: Callable[[Runtime, Row, Exception], Awaitable[None]]
    ends: str


class Flow(Generic[Row]):
    """The loop over one kind of rows, and the tasks that own the claimed ones."""

    def __init__(self, runtime: Runtime, work: Work[Row]) -> None:
        self._runtime = runtime
        self._work = work
        self._owned: dict[int, asyncio.Task[None]] = {}
        self._claimed_twice: set[int] = set()
        # At the start nothing is owned, so whatever this process has claimed is given back.
        self._checked_s: float | None = None
        self._is_behind = True
        self._is_stopping = False

    @property
    def job(self) -> str:
        """Return what it does: the topic of its rows."""
        return self._work.topic

    async def drain(self) -> bool:
        """Carry out all due rows, in rounds, until none is left; return whether there were any."""
        was_due = False
        while rows := (await self._claimed(self._work.at_once)).rows:
            was_due = True
            for row in rows:
                self._own(row)
            await asyncio.wait(tuple(self._owned.values()))
        return was_due

    async def run(self) -> None:
        """Start every row as soon as it is due; return after `stop`, when all have ended.

        While the database is unavailable the loop retries after a growing pause.
        """
        pause_s = SETTLE_PAUSE_MIN_S
        while not self._is_stopping:
            try:
                await self._round()
            except DatabaseUnavailable:
                # A claim whose answer was lost may have been committed.
                self._checked_s = None
                await self._rest(pause_s)
                pause_s = min(pause_s * 2, CLAIM_PAUSE_MAX_S)
            else:
                pause_s = SETTLE_PAUSE_MIN_S
                self._runtime.troubles.end(Part.WORKER, side=self.job)
        if self._owned:
            await asyncio.wait(tuple(self._owned.values()))

    def stop(self) -> None:
        """Claim no more rows; `run` returns when the running ones have ended."""
        self._is_stopping = True
        self._runtime.wakeups.wake(self._work.topic)

    async def abandon(self) -> None:
        """Cancel what is still running: its rows stay claimed, and the next start finds them."""
        tasks = tuple(self._owned.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _round(self) -> None:
        wakeups, topic, ends = self._runtime.wakeups, self._work.topic, self._work.ends
        woken, ended = wakeups.version(topic), wakeups.version(ends)
        until = await self._look(woken)
        if until is not None:
            # The clock may have been set back since.
            left_s = min(until - self._runtime.clock.now(), POLL_ALONE).total_seconds()
            seen = {topic: woken} | ({ends: ended} if self._is_behind else {})
            await wakeups.wait_for_any(seen, max(left_s, PAUSE_MIN_S))

    async def _look(self, woken: int) -> datetime | None:
        """Start the rows that are due; return when to look again without a wake-up.

        None if more may be due already.
        """
        free = self._work.at_once - len(self._owned)
        now = self._runtime.clock.now()
        if not free:
            # Due rows must wait for a task to end.
            self._is_behind = True
            return now + FULL_PAUSE
        claimed = await self._claimed(free)
        self._is_behind = claimed.is_behind
        for row in claimed.rows:
            self._own(row)
        if len(claimed.rows) == free or self._runtime.wakeups.version(self._work.topic) != woken:
            return None
        latest = now + (POLL_ALONE if self._runtime.store.is_alone else POLL)
        return min(claimed.next_due or latest, latest)

    async def _rest(self, pause_s: float) -> None:
        """Wait, at most until `stop`."""
        seen = self._runtime.wakeups.version(self._work.topic)
        if not self._is_stopping:
            await self._runtime.wakeups.wait(self._work.topic, seen, pause_s)

    async def _claimed(self, limit: int) -> ClaimedRows[Row]:
        """Claim rows; once in a while, free those that no task owns first.

        Claims of one flow never overlap, so a claimed row without a task is one for which the
        response to its claim was lost.
        """
        now_s = self._runtime.clock.monotonic_s()
        period_s = self._runtime.options.periods.readback.total_seconds()
        if self._checked_s is not None and now_s - self._checked_s < period_s:
            return await self._work.claim(self._runtime, limit, None)
        claimed = await self._work.claim(self._runtime, limit, tuple(self._owned))
        self._checked_s = now_s
        if claimed.given_back:
            # Rows that a task claimed and lost are free again.
            log.warning("claims_given_back", what=self._work.topic, rows=claimed.given_back)
        return claimed

    def _own(self, row: Row) -> None:
        # A row may be claimed again while its first task still runs: its claim has expired, or it
        # was settled a moment ago and its task has not ended yet.
        if row.id in self._owned:
            self._claimed_twice.add(row.id)
            return
        task = asyncio.create_task(self._one(row))
        self._owned[row.id] = task
        task.add_done_callback(lambda _: self._ended(row.id))

    async def _one(self, row: Row) -> None:
        topic = self._work.topic
        error = await failure_of(topic, self._work.carry_out(self._runtime, row))
        pause_s = SETTLE_PAUSE_MIN_S
        while error is not None:
            failed = await failure_of(topic, self._work.interrupted(self._runtime, row, error))
            if not isinstance(failed, DatabaseUnavailable):
                self._runtime.wakeups.wake(topic)
                return
            await self._runtime.clock.sleep(pause_s)
            pause_s = min(pause_s * 2, SETTLE_PAUSE_MAX_S)

    def _ended(self, row_id: int) -> None:
        del self._owned[row_id]
        if row_id in self._claimed_twice:
            # The second claim has no task; the next claim gives it back.
            self._claimed_twice.remove(row_id)
            self._checked_s = None
            self._runtime.wakeups.wake(self._work.topic)
        self._runtime.wakeups.wake(self._work.ends)
