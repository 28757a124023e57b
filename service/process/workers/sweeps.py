"""Sweeps: the provider read again for what a lost webhook would have told, and time passed."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.accounts import installations
from service.evidence import lost_reports
from service.mergequeue.operations import missed_comments, reconcile, watch
from service.process import redelivery
from service.runtime import Periods, Runtime
from service.testhealth.operations import code_owners
from service.testhealth.operations import sweeps as test_sweeps

Sweep = Callable[[Runtime], Awaitable[None]]


def awaited(periods: Periods) -> tuple[tuple[Sweep, timedelta], ...]:
    """What somebody may be waiting for, and how often."""
    return (
        (reconcile.read_running_checks, periods.run_checks),
        (lost_reports.look_where_awaited, periods.run_checks),
        (reconcile.read_live_queues, periods.queues),
        (installations.read_all, periods.idle),
        (reconcile.read_all_queues, periods.idle),
        (reconcile.restore_branches, periods.orphans),
        (test_sweeps.expire, periods.tests),
    )


WATCH_PERIOD = timedelta(seconds=30)


def watched() -> tuple[tuple[Sweep, timedelta], ...]:
    """The watchdog. It goes apart: what it watches must not hold it up."""
    return ((watch.watch, WATCH_PERIOD),)


def missed(periods: Periods) -> tuple[tuple[Sweep, timedelta], ...]:
    """What people said while nobody listened. A sweep pauses between calls, so it goes apart."""
    return (
        (missed_comments.read_where_queued, periods.comments),
        (redelivery.ask_again, periods.redelivery),
        (missed_comments.read_where_unqueued, periods.idle),
    )


def patient(periods: Periods) -> tuple[tuple[Sweep, timedelta], ...]:
    """What may take long, and hurts nobody by it: kept apart from what is awaited."""
    return (
        (code_owners.look_after, periods.tests),
        (lost_reports.look_everywhere, periods.idle),
    )


@dataclass(slots=True)
class Turn:
    """One sweep with its period and when it is next due."""

    sweep: Sweep
    period: timedelta
    next_at: datetime


class Sweeps:
    """A worker of sweeps. They run one after another, so they never crowd the provider."""

    def __init__(
        self,
        runtime: Runtime,
        sweeps: Iterable[tuple[Sweep, timedelta]],
        *,
        at_start: bool = False,
    ) -> None:
        """`at_start`: the first round comes at once, not after a period."""
        now = runtime.clock.now()
        self._runtime = runtime
        self._turns = [
            Turn(sweep, period, now if at_start else now + period) for sweep, period in sweeps
        ]

    async def drain(self) -> bool:
        """Do every sweep that is due; whether there was any."""
        found = False
        for turn in self._turns:
            now = self._runtime.clock.now()
            if turn.next_at <= now:
                turn.next_at = now + turn.period
                await turn.sweep(self._runtime)
                found = True
        return found

    async def run(self) -> None:
        """Wait for the next one."""
        while True:
            await self.drain()
            next_at = min(turn.next_at for turn in self._turns)
            wait_s = (next_at - self._runtime.clock.now()).total_seconds()
            await self._runtime.clock.sleep(max(wait_s, 0.0))
