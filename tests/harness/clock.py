"""Time that runs faster: one authority for the service and the sandbox of a test."""

import asyncio
import functools
import os
import selectors
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection

from bot.sandbox.timeline import RunningClock
from service.database.sqlite import SqliteRunner

T = TypeVar("T")

BEAT_S = 0.01
STALL_S = 0.05
"""Of a longer pause between two beats only so much counts."""
STEP_S = 1e-6
"""The shortest part of a wait that is left to wait for."""
TASKS = "/proc/self/task"


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

    While a thread, such as the writer of the database, or a child, such as git, has work, a timer
    waits as long as in real time. `at_work` counts what threads were given: their states do not
    show it while they wait for the interpreter or for a database server. Children that were there
    before are of others, such as the server that forks processes of tests. Needs Linux, which
    shows children and states of threads.
    """

    REST_S = 0.001
    BUSY_REST_S = 0.005

    def __init__(self) -> None:
        super().__init__()
        self.passed_s = 0.0
        self.at_work = 0
        self.of_others = _children()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready; if nothing is, let the time of `timeout` pass at once."""
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        began_s, rest_s = time.monotonic(), self.REST_S
        while True:
            # The rest lets a thread that waits for the interpreter begin.
            ready = super().select(rest_s)
            is_busy = not ready and self._is_busy()
            ready = ready or super().select(0)
            if ready:
                return ready
            if timeout is not None and not (is_busy and time.monotonic() - began_s < timeout):
                self.passed_s += timeout
                return []
            rest_s = self.BUSY_REST_S if is_busy else self.REST_S

    def _is_busy(self) -> bool:
        """Return whether a thread or a child has work."""
        return self.at_work > 0 or _has_busy_thread() or bool(_children() - self.of_others)


def _children() -> set[int]:
    """Return the child processes that run, or have ended and were not waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return set()
    return {
        int(child)
        for task in os.listdir(TASKS)
        for child in _content_of(f"{TASKS}/{task}/children").split()
    }


def _has_busy_thread() -> bool:
    """Return whether another thread runs or waits for a disk (proc(5): states R and D)."""
    own = str(threading.get_native_id())
    others = (task for task in os.listdir(TASKS) if task != own)
    return any(_state_in(_content_of(f"{TASKS}/{task}/stat")) in b"RD" for task in others)


def _state_in(stat: bytes) -> bytes:
    return stat.rpartition(b") ")[2][:1] or b"X"


def _content_of(path: str) -> bytes:
    """Return what is in a file of a thread; empty if the thread has ended."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return b""


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose time stands still while the process works, and jumps when it rests."""

    def __init__(self) -> None:
        self.jumping = JumpingSelector()
        super().__init__(self.jumping)

    def time(self) -> float:
        """Return the seconds that have passed in jumps."""
        return self.jumping.passed_s

    def disregard_children(self) -> None:
        """Let time pass beside the children that run now: they are of others."""
        self.jumping.of_others = _children()

    def run_in_executor(  # type: ignore[override]  # as typeshed has it, without its overloads
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Run a function in a thread; no time passes until it has ended."""
        return self.counted(super().run_in_executor(executor, func, *args))

    def counted(self, work: asyncio.Future[T]) -> asyncio.Future[T]:
        """Let no time pass until a thread has ended this."""
        self.jumping.at_work += 1
        work.add_done_callback(self._ended)
        return work

    def _ended(self, _: object) -> None:
        self.jumping.at_work -= 1


write = SqliteRunner.write


@functools.wraps(write)
async def counted_write(
    runner: SqliteRunner, call: Callable[[Connection], T], around_commit: tuple[str, str] | None
) -> T:
    """Write, and let a jumping loop know that the thread of the writer has work."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, JumpingLoop):
        return await write(runner, call, around_commit)
    return await loop.counted(asyncio.ensure_future(write(runner, call, around_commit)))


SqliteRunner.write = counted_write  # type: ignore[assignment,method-assign]  # as it is, counted


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
        if seconds > 0:
            # Less than a step may be too little for a number of seconds to change at all.
            seconds = max(seconds, STEP_S)
        until = self.monotonic_s() + seconds
        await asyncio.sleep(seconds / self.shared.speed)
        left = until - self.monotonic_s()
        if left > 0:
            await self.sleep(left)
