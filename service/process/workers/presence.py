"""Heartbeats, and what the dead left behind; only where other processes share the database."""

from service.process import presence
from service.runtime import Runtime


class Presence:
    """The worker of heartbeats."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def drain(self) -> bool:
        """Be there; whether anybody who is gone had left something."""
        return bool((await presence.beat(self._runtime)).gone)

    async def run(self) -> None:
        """Every five seconds."""
        while True:
            await self.drain()
            await self._runtime.clock.sleep(presence.BEAT.total_seconds())
