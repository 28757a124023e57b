"""Starts the workers, keeps them running, stops them: one task group.

The only place where everything is caught: a loop that crashes is logged and started again,
so that one queue's trouble never stops another.
"""

import asyncio
from typing import Protocol

import structlog

from service.runtime import Runtime
from service.workers.housekeeping import Housekeeping
from service.workers.inbox import Inbox
from service.workers.outbox import Outbox
from service.workers.ticks import Ticks

RESTART_MAX_S = 60.0

log = structlog.get_logger()


class Worker(Protocol):
    """One loop."""

    async def drain(self) -> bool:
        """Do what is due; whether there was anything."""
        ...

    async def run(self) -> None:
        """Wait and drain, for ever."""
        ...


class Workers:
    """All loops of this process."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._workers: tuple[Worker, ...] = (
            Inbox(runtime),
            Outbox(runtime),
            Ticks(runtime),
            Housekeeping(runtime),
        )

    async def drain(self) -> bool:
        """One round of everything that is due; whether there was anything."""
        found = [await worker.drain() for worker in self._workers]
        return any(found)

    async def run(self) -> None:
        """Run every loop until cancelled."""
        async with asyncio.TaskGroup() as group:
            for worker in self._workers:
                group.create_task(self._kept(worker))

    async def _kept(self, worker: Worker) -> None:
        """Run one loop, started again after 1, 2, 4 … 60 s when it crashes."""
        pause_s = 1.0
        while True:
            began = self._runtime.clock.monotonic_s()
            try:
                await worker.run()
            except Exception:
                log.exception("worker_crashed", worker=type(worker).__name__, pause_s=pause_s)
            if self._runtime.clock.monotonic_s() - began > RESTART_MAX_S:
                pause_s = 1.0
            await self._runtime.clock.sleep(pause_s)
            pause_s = min(pause_s * 2, RESTART_MAX_S)
