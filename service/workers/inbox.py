"""Deliveries, worked on in order within a repository and side by side across them."""

import asyncio

from service.operations import deliveries
from service.runtime import Runtime

LANES = 8
"""Repositories whose deliveries are worked on at the same time (ARCHITECTURE.md 7)."""
POLL_S = 2.0


class Inbox:
    """The worker of the inbox."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def drain(self) -> bool:
        """Work on every delivery that is due, until none is; whether there was any."""
        found = False
        while rows := await deliveries.claim(self._runtime, LANES):
            found = True
            async with asyncio.TaskGroup() as group:
                for row in rows:
                    group.create_task(deliveries.take_up(self._runtime, row))
        return found

    async def run(self) -> None:
        """Wait for deliveries and work on them."""
        await deliveries.release(self._runtime)
        while True:
            seen = self._runtime.wakeups.version("inbox")
            if not await self.drain():
                await self._runtime.wakeups.wait("inbox", seen, POLL_S)
