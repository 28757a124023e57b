"""The parts of a process that a seed decides: its clock, its ids, its database."""

import asyncio
import os
import random
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from bot.sandbox import command
from bot.sandbox.timeline import RunningClock
from service.crash_points import CrashPoints
from service.database import sqlite
from service.database.sqlite import SqliteRunner
from service.errors import DatabaseUnavailable
from tests.whole_service.faults import DatabaseFaults, Write
from tests.whole_service.loop import VirtualLoop, rest

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


class SharedClock(RunningClock):
    """The stand-in's clock: the loop's time, from the same moment in every history."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.speed = 1.0
        self._since_s = 0.0
        self._then = START

    def elapsed_s(self) -> float:
        """The seconds of the loop."""
        return self._loop.time()


class ServiceClock:
    """The clock of the service's machine, which may be wrong; its waits are right all the same."""

    def __init__(self, shared: SharedClock) -> None:
        self._shared = shared
        self.off = timedelta()

    def now(self) -> datetime:
        """See `Clock.now`."""
        found = self._shared.now() + self.off
        return found.replace(microsecond=found.microsecond // 1000 * 1000)

    def monotonic_s(self) -> float:
        """See `Clock.monotonic_s`."""
        return self._shared.elapsed_s()

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        await rest(seconds)


class SeededIds:
    """Ids that a seed decides."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def uuid(self) -> str:
        """See `Ids.uuid`."""
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))


def away() -> DatabaseUnavailable:
    """The error of the store while its database cannot be used."""
    return DatabaseUnavailable("The database is away, as planned.", retry_after_s=1)


class _NoThread:
    """The thread of the writer, whose work the loop does."""

    def __init__(self, **_: object) -> None:
        pass

    def start(self) -> None:
        """Nothing."""

    def join(self) -> None:
        """Nothing."""


class InlineRunner(SqliteRunner):
    """Reads and writes in the loop's own thread; those that wait together share a commit."""

    faults: DatabaseFaults
    """Set by `inline`."""
    opened: "list[InlineRunner]"

    def __init__(self, path: Path, crash_points: CrashPoints) -> None:
        super().__init__(path, crash_points)
        self.opened.append(self)

    async def write(
        self, call: Callable[[Connection], Any], around_commit: tuple[str, str] | None
    ) -> Any:
        """Write, unless the faults want otherwise."""
        loop = asyncio.get_running_loop()
        fault = self.faults.of_write(around_commit)
        await rest(self.faults.pause_s())
        if fault is Write.FAILS or self.faults.is_away():
            raise away()
        if fault is Write.HANGS:
            await loop.create_future()
        answer: asyncio.Future[Any] = loop.create_future()
        self._jobs.put(sqlite._Job(call, around_commit, answer, self._unheard))
        if fault is Write.COMMITS_LATE:
            loop.call_later(self.faults.late_s(), self._work_off)
        else:
            loop.call_soon(self._work_off)
        value = await answer
        if fault is Write.ANSWER_LOST:
            raise away()
        return value

    def _work_off(self) -> None:
        group = []
        while not self._jobs.empty():
            job = self._jobs.get()
            if job is not None and not job.answer.cancelled():
                group.append(job)
        self._run_group(group)

    async def read(self, call: Callable[[Connection], Any]) -> Any:
        """Read, unless the faults want otherwise."""
        fails = self.faults.read_fails()
        await rest(self.faults.pause_s())
        if fails or self.faults.is_away():
            raise away()
        return await super().read(call)

    def die(self) -> None:
        """Let go of the file as the system does for a process that has died."""
        for connection in (*self._readers, self._writer):
            connection.close()
        self._watch.close()
        lock = self._lock
        if lock is not None and lock._descriptor is not None:
            os.close(lock._descriptor)
            lock._descriptor = None


@contextmanager
def inline(faults: DatabaseFaults, opened: list[InlineRunner]) -> Iterator[None]:
    """Let everything that is opened meanwhile work in the loop's own thread."""
    own = type("Own", (InlineRunner,), {"faults": faults, "opened": opened})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "Thread", _NoThread)
        patch.setattr(sqlite, "SqliteRunner", own)
        patch.setattr(command, "run_raw", _git)
        yield


async def _git(
    *args: str, cwd: Path, feed: bytes = b"", env: dict[str, str] | None = None
) -> tuple[int, bytes, bytes]:
    """Run git to its end while nothing else happens."""
    return _run(["git", *args], cwd, feed, {**command.isolated_environment(), **(env or {})})


def _run(
    words: list[str], cwd: Path, feed: bytes, environment: dict[str, str]
) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        words, cwd=cwd, env=environment, input=feed, capture_output=True, check=False
    )
    return done.returncode, done.stdout, done.stderr
