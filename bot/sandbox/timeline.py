"""The world's time, and everything that is due in it.

Nothing else in the sandbox waits, sleeps or reads a clock. A test hands in the clock that
also moves the service (any object with `now` and `advance`) and does the jobs by `run_due`
or `settle`; the command line gives a clock that runs by itself.
"""

import asyncio
import heapq
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol

SETTLE_JOBS_MAX = 50_000  # a world that wants more never comes to rest
JOBS_AT_ONCE = 32  # of a clock that runs by itself
IDLE_S = 3600.0

Act = Callable[[], Awaitable[None]]


class Clock(Protocol):
    """The clock of a sandbox; a test's own clock satisfies it."""

    def now(self) -> datetime:
        """The time of the world, with zone UTC."""
        ...

    def advance(self, seconds: float) -> None:
        """Move the world's time on."""
        ...


class ManualClock:
    """A clock that stands still until somebody moves it."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        """The time set so far."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move on by `seconds`."""
        self._now += timedelta(seconds=seconds)


class RunningClock:
    """Real time multiplied by `speed`, plus every advance.

    It never runs backwards, even when the machine's clock is set back.
    """

    def __init__(self, speed: float = 1.0) -> None:
        self.speed = speed
        self._since_s = self.elapsed_s()
        self._then = _wall_now()

    def elapsed_s(self) -> float:
        """Real seconds from some moment on."""
        return time.monotonic()

    def now(self) -> datetime:
        """World time, as of this moment."""
        return self._then + timedelta(seconds=self.elapsed_s() - self._since_s) * self.speed

    def advance(self, seconds: float) -> None:
        """Jump ahead by `seconds` of world time."""
        self._then += timedelta(seconds=seconds)

    def change_speed(self, speed: float) -> None:
        """Run at another speed from now on; the time itself does not jump."""
        self._then, self._since_s = self.now(), self.elapsed_s()
        self.speed = speed


@dataclass(order=True, slots=True)
class Job:
    """Something due at a moment of world time; equal moments keep their order."""

    due: datetime
    order: int
    name: str = field(compare=False)
    act: Act = field(compare=False)


class NeverSettles(Exception):
    """The world wanted more than SETTLE_JOBS_MAX jobs; the message names the next ones."""


class Timeline:
    """The jobs of one world, by the time they are due.

    `callers_now` is the time by which clients sign their tokens: the wall's unless the
    clock is shared with them.
    """

    def __init__(self, clock: Clock, callers_now: Callable[[], datetime] | None = None) -> None:
        self.clock = clock
        self.callers_now = callers_now or _wall_now
        self._jobs: list[Job] = []
        self._order = 0
        self._changed = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()

    def now(self) -> datetime:
        """The world's time, cut to microseconds."""
        return self.clock.now()

    def later(self, seconds: float, name: str, act: Act) -> None:
        """Do `act` when the world's clock has moved on by `seconds`."""
        self._order += 1
        due = self.now() + timedelta(seconds=seconds)
        heapq.heappush(self._jobs, Job(due, self._order, name, act))
        self._changed.set()

    async def sleep(self, seconds: float) -> None:
        """Wait until the world's clock has moved on by `seconds`."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def wake() -> None:
            if not over.done():
                over.set_result(None)

        self.later(seconds, "a call that hangs", wake)
        await over

    def next_due(self) -> datetime | None:
        """Return the time of the next job; None when there is none."""
        return self._jobs[0].due if self._jobs else None

    def is_busy(self) -> bool:
        """Return whether a job is being done at this moment."""
        return bool(self._running)

    def waiting(self) -> list[str]:
        """The names of all jobs, the next one first."""
        return [job.name for job in sorted(self._jobs)]

    def advance(self, seconds: float) -> None:
        """Move the world's clock on; what becomes due is done by whoever does the jobs."""
        self.clock.advance(seconds)
        self._changed.set()

    async def run_due(self) -> int:
        """Do every job that is due now, one after the other; how many there were."""
        done = 0
        while self._jobs and self._jobs[0].due <= self.now():
            await heapq.heappop(self._jobs).act()
            done += 1
        return done

    async def settle(self) -> int:
        """Move the clock from job to job until none is left; how many were done.

        Raises NeverSettles after SETTLE_JOBS_MAX jobs.
        """
        done = 0
        while self._jobs or self._running:
            while self._running:
                await asyncio.wait(self._running)
            due = self.next_due()
            if due is None:
                continue
            self.clock.advance(max(0.0, (due - self.now()).total_seconds()))
            done += await self.run_due()
            if done > SETTLE_JOBS_MAX:
                raise NeverSettles(f"still waiting: {', '.join(self.waiting()[:10])}")
        return done

    async def run(self) -> None:
        """Do jobs as a running clock reaches them, for ever."""
        while True:
            self._changed.clear()
            while self._jobs and self._jobs[0].due <= self.now():
                if len(self._running) >= JOBS_AT_ONCE:
                    await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                    continue
                job = heapq.heappop(self._jobs)
                task = asyncio.ensure_future(job.act())
                self._running.add(task)
                task.add_done_callback(partial(self._ended, job.name))
            # Not `wait_for`: up to Python 3.11 it swallows a cancel that comes with a wake-up.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._real_seconds_left()):
                    await self._changed.wait()

    async def end(self) -> None:
        """Cancel the jobs that are being done; a command of CI ends with its job."""
        jobs = list(self._running)
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        """Remove a job that has ended, and report its error at once, with its name."""
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()):
            context = {"message": f"{name} failed", "exception": error, "task": task}
            task.get_loop().call_exception_handler(context)

    def _real_seconds_left(self) -> float:
        due = self.next_due()
        if due is None:
            return IDLE_S
        speed = self.clock.speed if isinstance(self.clock, RunningClock) else 1.0
        return min(IDLE_S, max(0.0, (due - self.now()).total_seconds() / max(speed, 0.001)))


def _wall_now() -> datetime:
    """The real time."""
    return datetime.now(UTC)


def stamp(at: datetime) -> str:
    """The form of a time in JSON: `2026-01-02T03:04:05Z`."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
