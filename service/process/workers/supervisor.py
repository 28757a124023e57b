"""Start the workers, keep them running, and stop them, in one task group.

The supervisor logs a loop that crashes and starts it again, so that a failure in one queue never
stops another.
"""

import asyncio
from typing import Protocol

from service.errors import DatabaseUnavailable
from service.process.guard import failure_of
from service.process.set_back import ClockWatch
from service.process.workers import flows, loops
from service.process.workers.flow import Flow
from service.process.workers.loops import Polls, Sweeps, Timers
from service.runtime import Runtime
from service.troubles import Trouble, TroubleName

RESTART_MAX_S = 60.0
AWAY_MAX_S = 5.0
"""The longest pause of a loop that ended because the database is away."""


class _Worker(Protocol):
    """A loop. It ends the trouble of a job that crashed once that job succeeds."""

    @property
    def job(self) -> str:
        """Return what it does now, for the trouble that a crash is."""
        ...

    async def drain(self) -> bool:
        """Do what is due; return whether there was anything."""
        ...

    async def run(self) -> None:
        """Wait and drain, for ever."""
        ...


class _Stoppable(_Worker, Protocol):
    """A loop that finishes what it has begun before it ends."""

    def stop(self) -> None:
        """Begin nothing new."""
        ...

    async def abandon(self) -> None:
        """Cancel what is still running."""
        ...


class Workers:
    """All loops of this process; one that does no work only sends heartbeats."""

    def __init__(self, runtime: Runtime, *, is_working: bool = True) -> None:
        self._runtime = runtime
        self._flows: tuple[_Stoppable, ...] = ()
        self._others: tuple[_Worker, ...] = ()
        if is_working:
            self._flows = (
                Flow(runtime, flows.DELIVERIES),
                Flow(runtime, flows.LANDINGS),
                Flow(runtime, flows.CONTROL),
                Flow(runtime, flows.EVIDENCE),
                Flow(runtime, flows.REPORTS),
                Flow(runtime, flows.NOTICES),
                Flow(runtime, flows.COLLECTING),
                Flow(runtime, flows.NOTIFICATIONS),
            )
            self._others = (
                Timers(runtime),
                Polls(runtime),
                Sweeps(runtime, loops.deciding(runtime.options.periods)),
                Sweeps(runtime, loops.awaited(runtime.options.periods)),
                Sweeps(runtime, loops.missed(runtime.options.periods), at_start=True),
                Sweeps(runtime, loops.patient(runtime.options.periods)),
                Sweeps(runtime, loops.WATCHDOG),
                Sweeps(runtime, ((ClockWatch().look, loops.CLOCK_PERIOD),), at_start=True),
                Sweeps(runtime, loops.HOUSEKEEPING, at_start=True),
                Sweeps(runtime, loops.RADAR),
                Sweeps(runtime, loops.PREPARATION, at_start=True),
            )
        if not runtime.store.is_alone:
            self._others = (Sweeps(runtime, loops.HEARTBEAT, at_start=True), *self._others)
        self._loops: list[asyncio.Task[None]] = []
        self._is_stopping = False

    async def drain(self) -> bool:
        """Do one round of everything that is due; return whether there was anything."""
        was_due = [await worker.drain() for worker in (*self._others, *self._flows)]
        return any(was_due)

    async def run(self) -> None:
        """Run every loop until `stop`."""
        try:
            async with asyncio.TaskGroup() as group:
                self._loops = [
                    group.create_task(self._restarted(worker)) for worker in self._others
                ]
                for flow in self._flows:
                    group.create_task(self._restarted(flow))
        finally:
            for flow in self._flows:
                await flow.abandon()

    async def stop(self) -> None:
        """Begin nothing new; `run` returns when everything that is running has ended."""
        self._is_stopping = True
        for loop in self._loops:
            loop.cancel()
        for flow in self._flows:
            flow.stop()

    async def _restarted(self, worker: _Worker) -> None:
        """Run one loop; after a crash start it again, with pauses of 1, 2, 4 … 60 s."""
        pause_s = 1.0
        while not self._is_stopping:
            began = self._runtime.clock.monotonic_s()
            error = await failure_of(type(worker).__name__, worker.run())
            if self._is_stopping:
                return
            if error is not None and not isinstance(error, DatabaseUnavailable):
                now, job = self._runtime.clock.now(), worker.job
                found = Trouble(TroubleName.WORKER_CRASHED, now, note=job)
                self._runtime.troubles.report(found, job)
            if self._runtime.clock.monotonic_s() - began > RESTART_MAX_S:
                pause_s = 1.0
            is_away = isinstance(error, DatabaseUnavailable)
            longest_s = AWAY_MAX_S if is_away else RESTART_MAX_S
            await self._runtime.clock.sleep(min(pause_s, longest_s))
            pause_s = min(pause_s * 2, longest_s)
