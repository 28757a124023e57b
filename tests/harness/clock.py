"""Time that runs faster: one authority for the service and the sandbox of a test."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime

from bot.sandbox.timeline import RunningClock

BEAT_S = 0.01
STALL_S = 0.05
"""Of a longer pause between two beats only so much counts."""


class BeatingClock(RunningClock):
    """A running clock that stands still while the process does not get on.

    On a busy machine a process may stop for seconds. World time would run on thirty times as fast,
    and time limits of minutes would end in a test that asks for no such thing.
    """

    def __init__(self, speed: float) -> None:
        self._counted_s = 0.0
        self._last_s = time.monotonic()
        super().__init__(speed)

    def elapsed_s(self) -> float:
        """Real seconds in which the process got on."""
        return self._counted_s + min(time.monotonic() - self._last_s, STALL_S)

    async def beat(self) -> None:
        """Show that the process gets on, until cancelled."""
        while True:
            self._counted_s, self._last_s = self.elapsed_s(), time.monotonic()
            await asyncio.sleep(BEAT_S)


class FastClock:
    """A clock of the service that shares the sandbox's own running clock.

    Everything that waits, waits `speed` times shorter; stamps and periods stay consistent.
    """

    def __init__(self, speed: float) -> None:
        self.shared = BeatingClock(speed)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let the time go on."""
        beating = asyncio.create_task(self.shared.beat())
        try:
            yield
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating

    def now(self) -> datetime:
        """World time, cut to milliseconds."""
        present = self.shared.now()
        return present.replace(microsecond=present.microsecond // 1000 * 1000)

    def monotonic_s(self) -> float:
        """Seconds of world time that never run backwards."""
        return self.shared.elapsed_s() * self.shared.speed

    async def sleep(self, seconds: float) -> None:
        """Wait for so much world time."""
        until = self.monotonic_s() + seconds
        await asyncio.sleep(seconds / self.shared.speed)
        left = until - self.monotonic_s()
        if left > 0:
            await self.sleep(left)
