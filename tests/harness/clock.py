"""Time that runs faster: one authority for the service and the sandbox of a test."""

import asyncio
import os
import selectors
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path

from bot.sandbox.timeline import RunningClock

BEAT_S = 0.01
STALL_S = 0.05
"""Of a longer pause between two beats only so much counts."""
STEP_S = 1e-6
"""The shortest part of a wait that is left to wait for."""


class BeatingClock(RunningClock):
    """A running clock that stands still while the process does not get on.

    On a busy machine a process may stop for seconds. World time would run on thirty times as fast,
    and time limits of minutes would end in a test that asks for no such thing.
    """

    def __init__(self, speed: float) -> None:
        self._counted_s = 0.0
        self._last_s = time.monotonic()
        super().__init__(speed)

    def elapsed_s(self) -> float:
        """Real seconds in which the process got on."""
        return self._counted_s + min(time.monotonic() - self._last_s, STALL_S)

    async def beat(self) -> None:
        """Show that the process gets on, until cancelled."""
        while True:
            self._counted_s, self._last_s = self.elapsed_s(), time.monotonic()
            await asyncio.sleep(BEAT_S)


class JumpingSelector(selectors.DefaultSelector):
    """Jumps to the next timer as soon as the process has nothing to do.

    While a thread, such as the writer of the database, or a child, such as git, has work, nothing
    jumps. Needs Linux, which shows the states of threads.
    """

    REST_S = 0.001

    def __init__(self) -> None:
        super().__init__()
        self.passed_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready; if nothing is, let the time of `timeout` pass at once."""
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        while True:
            # The rest lets a thread that waits for the interpreter begin.
            ready = super().select(self.REST_S)
            is_busy = not ready and (_has_child() or _has_busy_thread())
            ready = ready or super().select(0)
            if ready:
                return ready
            if timeout is not None and not is_busy:
                self.passed_s += timeout
                return []


def _has_child() -> bool:
    """Return whether a child process runs, or has ended and was not waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _has_busy_thread() -> bool:
    """Return whether another thread runs or waits for a disk (proc(5): states R and D)."""
    own = str(threading.get_native_id())
    tasks = Path("/proc/self/task")
    stats = [(tasks / task / "stat") for task in os.listdir(tasks) if task != own]
    return any(_state_in(stat) in "RD" for stat in stats)


def _state_in(stat: Path) -> str:
    try:
        return stat.read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose time stands still while the process works, and jumps when it rests."""

    def __init__(self) -> None:
        self.jumping = JumpingSelector()
        super().__init__(self.jumping)

    def time(self) -> float:
        """Return the seconds that have passed in jumps."""
        return self.jumping.passed_s


class JumpingClock(RunningClock):
    """The clock of a `JumpingLoop`."""

    def __init__(self, loop: JumpingLoop) -> None:
        self._loop = loop
        super().__init__()

    def elapsed_s(self) -> float:
        """Seconds of the loop's time."""
        return self._loop.time()

    async def beat(self) -> None:
        """Do nothing: the loop moves the time."""


class FastClock:
    """A clock of the service that shares the sandbox's own running clock.

    Everything that waits, waits `speed` times shorter; stamps and periods stay consistent. In a
    `JumpingLoop` it is the loop's time, whatever the speed.
    """

    def __init__(self, speed: float) -> None:
        loop = asyncio.get_running_loop()
        self.shared: JumpingClock | BeatingClock
        if isinstance(loop, JumpingLoop):
            self.shared = JumpingClock(loop)
        else:
            self.shared = BeatingClock(speed)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let the time go on."""
        beating = asyncio.create_task(self.shared.beat())
        try:
            yield
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating

    def now(self) -> datetime:
        """World time, cut to milliseconds."""
        present = self.shared.now()
        return present.replace(microsecond=present.microsecond // 1000 * 1000)

    def monotonic_s(self) -> float:
        """Seconds of world time that never run backwards."""
        return self.shared.elapsed_s() * self.shared.speed

    async def sleep(self, seconds: float) -> None:
        """Wait for so much world time."""
        until = self.monotonic_s() + seconds
        await asyncio.sleep(seconds / self.shared.speed)
        left = until - self.monotonic_s()
        if left > 0:
            # Less than a step may be too little for a number of seconds to change at all.
            await self.sleep(max(left, STEP_S))
