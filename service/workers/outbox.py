"""Effects, performed: control actions in order per run, notices best effort."""

import asyncio

from service.operations import effects
from service.runtime import Runtime

AT_ONCE = 32
"""Effects under way at the same time; the provider's own limiter paces its calls."""
POLL_S = 2.0


class Outbox:
    """The worker of the outbox."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._free = AT_ONCE

    async def drain(self) -> bool:
        """Perform everything due, in rounds, until nothing is; whether there was anything."""
        found = False
        while rows := await effects.claim(self._runtime, AT_ONCE):
            found = True
            async with asyncio.TaskGroup() as group:
                for row in rows:
                    group.create_task(effects.carry_out(self._runtime, row))
        return found

    async def run(self) -> None:
        """Start every effect as soon as it is due; a slow one holds up no other."""
        await effects.reopen(self._runtime)
        async with asyncio.TaskGroup() as group:
            while True:
                seen = self._runtime.wakeups.version("outbox")
                rows = await effects.claim(self._runtime, self._free) if self._free else ()
                for row in rows:
                    self._free -= 1
                    task = group.create_task(effects.carry_out(self._runtime, row))
                    task.add_done_callback(self._freed)
                if not rows:
                    await self._runtime.wakeups.wait("outbox", seen, await self._pause_s())

    def _freed(self, task: asyncio.Task[None]) -> None:
        self._free += 1

    async def _pause_s(self) -> float:
        """Until the next waiting effect is due, at most the polling period."""
        due = await effects.next_due(self._runtime)
        if due is None:
            return POLL_S
        wait_s = (due - self._runtime.clock.now()).total_seconds()
        return min(max(wait_s, 0.01), POLL_S)
