"""Time passes: queues whose clock has come, and reads that were put off to join a burst."""

from service.mergequeue.operations import reconcile
from service.process import signals
from service.runtime import Runtime

PAUSE_MIN_S = 0.02
"""Pause after each look, so that no clock can make the loop spin."""


class Ticks:
    """The worker of time. Nothing slow may enter: timeouts and settle times wait behind it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def drain(self) -> bool:
        """Let the present time count, everywhere; whether anything was due."""
        found = await reconcile.pass_time(self._runtime)
        return await signals.look_again(self._runtime) or found

    async def run(self) -> None:
        """Wait for the next clock: a queue's, or a put-off read's."""
        while True:
            seen = self._runtime.wakeups.version("ticks")
            pause_s = await self._pause_s()
            if pause_s > 0:
                await self._runtime.wakeups.wait("ticks", seen, pause_s)
            else:
                await self.drain()
                await self._runtime.clock.sleep(PAUSE_MIN_S)

    async def _pause_s(self) -> float:
        """Until something is due, at most the period of timers; not above zero: it is due."""
        longest = self._runtime.options.periods.timers.total_seconds()
        wake = await reconcile.next_wake(self._runtime)
        if wake is None:
            return longest
        return min((wake - self._runtime.clock.now()).total_seconds(), longest)
