"""What nobody needs any more, removed in small steps; estimates, told anew (ARCHITECTURE.md 7)."""

from datetime import timedelta

from service.mergequeue.operations import estimates
from service.process import retention
from service.runtime import Runtime

PERIOD_S = 3600.0
ESTIMATES_PERIOD = timedelta(minutes=10)


class Housekeeping:
    """The worker of retention and of estimates."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._estimates_at = runtime.clock.now()

    async def drain(self) -> bool:
        """Remove everything past its time, tell estimates when due; whether there was anything."""
        found = await self._tell_estimates()
        return await retention.prune(self._runtime) or found

    async def run(self) -> None:
        """Once an hour; estimates every ten minutes."""
        rounds = int(PERIOD_S / ESTIMATES_PERIOD.total_seconds())
        while True:
            await self.drain()
            for _ in range(rounds):
                await self._runtime.clock.sleep(ESTIMATES_PERIOD.total_seconds())
                await self._tell_estimates()

    async def _tell_estimates(self) -> bool:
        now = self._runtime.clock.now()
        if now < self._estimates_at:
            return False
        self._estimates_at = now + ESTIMATES_PERIOD
        return await estimates.refresh(self._runtime)
