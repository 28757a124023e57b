"""What nobody needs any more, removed in small steps (ARCHITECTURE.md 6)."""

from service.operations import retention
from service.runtime import Runtime

PERIOD_S = 3600.0


class Housekeeping:
    """The worker of retention."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def drain(self) -> bool:
        """Remove everything past its time; whether there was anything."""
        return await retention.prune(self._runtime)

    async def run(self) -> None:
        """Once an hour."""
        while True:
            await self.drain()
            await self._runtime.clock.sleep(PERIOD_S)
