"""Time passes: queues whose clock has come, and the sweeps that read the provider again."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.operations import reconcile, redelivery, signals
from service.runtime import Runtime

STEP_S = 0.5
"""How often the clock is looked at; a queue's own wake-up is never later than this."""

Sweep = Callable[[Runtime], Awaitable[None]]


@dataclass(slots=True)
class Turn:
    """One sweep with its period and when it is next due."""

    sweep: Sweep
    period: timedelta
    next_at: datetime


class Ticks:
    """The worker of time. Sweeps run one after another, so they never crowd the provider."""

    def __init__(self, runtime: Runtime) -> None:
        periods = runtime.options.periods
        now = runtime.clock.now()
        self._runtime = runtime
        self._turns = [
            Turn(sweep, period, now + period)
            for sweep, period in (
                (reconcile.read_running_checks, periods.run_checks),
                (reconcile.read_live_queues, periods.queues),
                (reconcile.read_all_queues, periods.idle),
                (reconcile.restore_branches, periods.orphans),
                (redelivery.ask_again, periods.redelivery),
            )
        ]

    async def drain(self) -> bool:
        """Let the present time count, everywhere; whether anything was due."""
        found = await reconcile.pass_time(self._runtime)
        found = await signals.look_again(self._runtime) or found
        for turn in self._turns:
            now = self._runtime.clock.now()
            if turn.next_at <= now:
                turn.next_at = now + turn.period
                await turn.sweep(self._runtime)
                found = True
        return found

    async def run(self) -> None:
        """Look at the clock again and again."""
        while True:
            await self.drain()
            await self._runtime.clock.sleep(STEP_S)
