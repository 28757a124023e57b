"""Loops driven by time: sweeps with a period each, and the timers of queues."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from service.accounts import installations
from service.evidence import lost_reports
from service.mergequeue.operations import (
    breaks,
    building,
    early_failures,
    entering,
    estimates,
    landing_evidence,
    lost_branches,
    missed_comments,
    radar,
    reconcile,
    restored,
    watch,
)
from service.process import presence, redelivery, retention, signals
from service.runtime import Periods, Runtime
from service.testhealth.operations import code_owners
from service.testhealth.operations import sweeps as test_sweeps
from service.troubles import Part

Sweep = Callable[[Runtime], Awaitable[object]]
Periodic = tuple[tuple[Sweep, timedelta], ...]
"""Sweeps, each with its period."""

ESTIMATES_PERIOD = timedelta(minutes=10)
WATCH_PERIOD = timedelta(seconds=30)
CLOCK_PERIOD = timedelta(seconds=5)
RADAR_PERIOD = timedelta(seconds=10)
SIGN_PERIOD = timedelta(minutes=10)
LEARN_PERIOD = timedelta(minutes=10)
PRUNE_PERIOD = timedelta(hours=1)
PREPARE_PERIOD = timedelta(days=1)

POLLS_IDLE_S = 600.0
"""The longest wait while no run is polled; a run that is to be polled wakes the worker."""

PAUSE_MIN_S = 0.02
"""Pause after each look at the timers, so that no clock can make the loop spin."""


def deciding(periods: Periods) -> Periodic:
    """Sweeps by which test runs end. They run apart: others may wait long for GitHub's limits."""
    return (
        (reconcile.read_running_checks, periods.run_checks),
        (lost_reports.look_where_awaited, periods.run_checks),
    )


def awaited(periods: Periods) -> Periodic:
    """Other sweeps for whose results somebody may be waiting."""
    return (
        (reconcile.read_live_queues, periods.queues),
        (entering.enter_everywhere, periods.queues),
        (installations.read_all, periods.idle),
        (reconcile.read_all_queues, periods.idle),
        (lost_branches.restore_branches, periods.orphans),
        (restored.look_again, periods.idle),
        (breaks.read_all, periods.queues),
        (test_sweeps.expire, periods.tests),
    )


def missed(periods: Periods) -> Periodic:
    """Sweeps for lost webhooks. They run apart, because they pause between calls."""
    return (
        (missed_comments.read_where_queued, periods.comments),
        (redelivery.ask_again, periods.redelivery),
        (missed_comments.read_where_unqueued, periods.idle),
    )


def patient(periods: Periods) -> Periodic:
    """Sweeps that may take long without harm, apart from those that are awaited."""
    return (
        (code_owners.look_after, periods.tests),
        (lost_reports.look_everywhere, periods.idle),
    )


WATCHDOG: Periodic = ((watch.watch, WATCH_PERIOD),)
"""Runs apart: what it watches must not delay it."""

HOUSEKEEPING: Periodic = (
    (estimates.refresh, ESTIMATES_PERIOD),
    (retention.prune, PRUNE_PERIOD),
    (landing_evidence.sign_waiting, SIGN_PERIOD),
    (early_failures.learn_from_ended, LEARN_PERIOD),
)

RADAR: Periodic = ((radar.look_everywhere, RADAR_PERIOD),)
"""Apart: git may compare for seconds, and nobody waits for it."""

PREPARATION: Periodic = ((building.prepare_all, PREPARE_PERIOD),)
"""At the start of a process and once a day; apart, because it reads a fact of each repository."""

HEARTBEAT: Periodic = ((presence.beat, presence.BEAT),)
"""Only where other processes share the database."""


@dataclass(slots=True)
class _Turn:
    """One sweep with its period, and when it is next due by the clock that never runs back."""

    sweep: Sweep
    period: timedelta
    next_s: float


class Sweeps:
    """A worker that runs sweeps one after another, so that they never crowd the provider."""

    def __init__(self, runtime: Runtime, sweeps: Periodic, *, at_start: bool = False) -> None:
        """`at_start`: the first round comes at once, not after a period."""
        now_s = runtime.clock.monotonic_s()
        self._runtime = runtime
        self.job = ""
        self._turns = [
            _Turn(sweep, period, now_s if at_start else now_s + period.total_seconds())
            for sweep, period in sweeps
        ]

    async def drain(self) -> bool:
        """Run every sweep that is due; return whether there was any."""
        was_due = False
        for turn in self._turns:
            now_s = self._runtime.clock.monotonic_s()
            if turn.next_s <= now_s:
                turn.next_s = now_s + turn.period.total_seconds()
                self.job = turn.sweep.__name__
                await turn.sweep(self._runtime)
                self._runtime.troubles.end(Part.WORKER, side=self.job)
                was_due = True
        return was_due

    async def run(self) -> None:
        """Run each sweep once a period, for ever."""
        while True:
            await self.drain()
            next_s = min(turn.next_s for turn in self._turns)
            await self._runtime.clock.sleep(max(next_s - self._runtime.clock.monotonic_s(), 0.0))


class Timers:
    """The worker of timeouts. It does nothing slow: settle times of queues wait behind it."""

    job = "timers"

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def drain(self) -> bool:
        """Take every queue past its timers, and make reads that were postponed to join a burst."""
        was_due = await reconcile.pass_time(self._runtime)
        return await signals.look_again(self._runtime) or was_due

    async def run(self) -> None:
        """Wait for the next timer, for ever."""
        while True:
            seen = self._runtime.wakeups.version("ticks")
            pause_s = await self._pause_s()
            if pause_s > 0:
                self._runtime.troubles.end(Part.WORKER, side=self.job)
                await self._runtime.wakeups.wait("ticks", seen, pause_s)
            else:
                await self.drain()
                self._runtime.troubles.end(Part.WORKER, side=self.job)
                await self._runtime.clock.sleep(PAUSE_MIN_S)

    async def _pause_s(self) -> float:
        """Return the seconds until a timer is due, at most their period; zero or less if due."""
        longest_s = self._runtime.options.periods.timers.total_seconds()
        wake_at = await reconcile.next_wake(self._runtime)
        if wake_at is None:
            return longest_s
        return min((wake_at - self._runtime.clock.now()).total_seconds(), longest_s)


class Polls:
    """The worker that reads the steps of live CI runs, apart from the timers: a read may wait."""

    job = "polls"

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def drain(self) -> bool:
        """Poll every run that is due; return whether there was any."""
        return await early_failures.poll_due(self._runtime)

    async def run(self) -> None:
        """Wait for the next poll, for ever."""
        while True:
            seen = self._runtime.wakeups.version("polls")
            next_at = early_failures.next_poll_at(self._runtime)
            now = self._runtime.clock.now()
            wait_s = POLLS_IDLE_S if next_at is None else (next_at - now).total_seconds()
            wait_s = min(wait_s, POLLS_IDLE_S)
            if wait_s > 0:
                await self._runtime.wakeups.wait("polls", seen, wait_s)
            else:
                await self.drain()
                self._runtime.troubles.end(Part.WORKER, side=self.job)
                await self._runtime.clock.sleep(PAUSE_MIN_S)
