"""Time that runs faster: one authority for the service and the sandbox of a test."""

import asyncio
import time
from datetime import datetime

from bot.sandbox.timeline import RunningClock


class FastClock:
    """A clock of the service that shares the sandbox's own running clock.

    Everything that waits, waits `speed` times shorter; stamps and periods stay consistent.
    """

    def __init__(self, speed: float) -> None:
        self.shared = RunningClock(speed)

    def now(self) -> datetime:
        """World time, cut to milliseconds."""
        present = self.shared.now()
        return present.replace(microsecond=present.microsecond // 1000 * 1000)

    def monotonic_s(self) -> float:
        """Seconds of world time that never run backwards."""
        return time.monotonic() * self.shared.speed

    async def sleep(self, seconds: float) -> None:
        """Wait for so much world time."""
        await asyncio.sleep(seconds / self.shared.speed)
