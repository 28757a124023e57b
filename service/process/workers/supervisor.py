"""Starts the workers, keeps them running, stops them: one task group.

A loop that crashes is logged and started again, so that one queue's trouble never stops
another.
"""

import asyncio
from typing import Protocol

from service.errors import DatabaseUnavailable
from service.process.workers import inbox, notifications, outbox, sweeps
from service.process.workers.flow import Flow
from service.process.workers.guard import failure_of
from service.process.workers.housekeeping import Housekeeping
from service.process.workers.presence import Presence
from service.process.workers.sweeps import Sweeps
from service.process.workers.ticks import Ticks
from service.runtime import Runtime

RESTART_MAX_S = 60.0
AWAY_MAX_S = 5.0
"""The longest pause of a loop that ended because the database is away."""


class Worker(Protocol):
    """One loop."""

    async def drain(self) -> bool:
        """Do what is due; whether there was anything."""
        ...

    async def run(self) -> None:
        """Wait and drain, for ever."""
        ...


class Stoppable(Worker, Protocol):
    """A loop that ends what it has begun before it ends."""

    def stop(self) -> None:
        """Begin nothing more."""
        ...

    async def abandon(self) -> None:
        """Cancel what is still under way."""
        ...


class Workers:
    """All loops of this process; one that does no work only says that it is there."""

    def __init__(self, runtime: Runtime, *, is_working: bool = True) -> None:
        self._runtime = runtime
        self._flows: tuple[Stoppable, ...] = ()
        self._others: tuple[Worker, ...] = ()
        if is_working:
            self._flows = (
                Flow(runtime, inbox.WORK),
                Flow(runtime, outbox.WORK),
                Flow(runtime, outbox.COLLECTING),
                Flow(runtime, notifications.WORK),
            )
            self._others = (
                Ticks(runtime),
                Sweeps(runtime, sweeps.awaited(runtime.options.periods)),
                Sweeps(runtime, sweeps.missed(runtime.options.periods), at_start=True),
                Sweeps(runtime, sweeps.patient(runtime.options.periods)),
                Sweeps(runtime, sweeps.watched()),
                Housekeeping(runtime),
            )
        if not runtime.store.is_alone:
            self._others = (Presence(runtime), *self._others)
        self._loops: list[asyncio.Task[None]] = []
        self._is_stopping = False

    async def drain(self) -> bool:
        """One round of everything that is due; whether there was anything."""
        found = [await worker.drain() for worker in (*self._others, *self._flows)]
        return any(found)

    async def run(self) -> None:
        """Run every loop until `stop`."""
        try:
            async with asyncio.TaskGroup() as group:
                self._loops = [group.create_task(self._kept(worker)) for worker in self._others]
                for flow in self._flows:
                    group.create_task(self._kept(flow))
        finally:
            for flow in self._flows:
                await flow.abandon()

    async def stop(self) -> None:
        """Take up nothing new; `run` ends when what is under way has ended."""
        self._is_stopping = True
        for loop in self._loops:
            loop.cancel()
        for flow in self._flows:
            flow.stop()

    async def _kept(self, worker: Worker) -> None:
        """Run one loop, started again after 1, 2, 4 … 60 s when it crashes."""
        pause_s = 1.0
        while not self._is_stopping:
            began = self._runtime.clock.monotonic_s()
            error = await failure_of(type(worker).__name__, worker.run())
            if self._is_stopping:
                return
            if self._runtime.clock.monotonic_s() - began > RESTART_MAX_S:
                pause_s = 1.0
            is_away = isinstance(error, DatabaseUnavailable)
            longest_s = AWAY_MAX_S if is_away else RESTART_MAX_S
            await self._runtime.clock.sleep(min(pause_s, longest_s))
            pause_s = min(pause_s * 2, longest_s)
