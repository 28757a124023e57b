"""SQLite: one writer thread with group commit, a few readers.

Functions queue up for the writer. Those waiting at that moment run one after another, each in
a savepoint of its own, and share one COMMIT; each caller is answered after it. A function
that raises rolls back its savepoint alone, unless the database gave up the whole transaction
(disk full, I/O error): then nobody is told "done", and all of that group run again one by
one, each in a commit of its own.
"""

import asyncio
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Generic, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from service.crash_points import CrashPoints
from service.database import sqlite_file
from service.errors import DatabaseUnavailable

T = TypeVar("T")

GROUP_MAX = 128
"""Functions that share one commit at most, so that the first of them is answered soon."""

READERS = 4

UNAVAILABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
    }
)
"""Primary result codes that say "not now"; any other is a mistake of ours."""


PASSING = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
    }
)
"""Of these the ones that need nobody's hand: `serve` waits for them to pass."""


class _Outcome(Generic[T]):
    """Holds the exception raised inside `with outcome:`, for the caller that waits.

    The waiting caller gets that very exception. A thread that serves many callers must survive
    the failure of one.
    """

    def __init__(self) -> None:
        self.value: T | None = None
        self.error: BaseException | None = None

    def __enter__(self) -> "_Outcome[T]":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.error = error
        return True


class _GaveUp(Exception):
    """The database ended the transaction by itself."""


@dataclass(slots=True)
class _Job:
    """A function waiting for the writer, and where its caller waits."""

    call: Callable[[Connection], object]
    around_commit: tuple[str, str] | None
    answer: asyncio.Future[object]
    unheard: Callable[[], None]
    outcome: _Outcome[object] = field(default_factory=_Outcome)

    def deliver(self) -> None:
        """Tell the caller, on its own event loop."""
        if self.answer.cancelled():
            if self.outcome.error is None:
                self.unheard()
            return
        if self.outcome.error is None:
            self.answer.set_result(self.outcome.value)
        else:
            self.answer.set_exception(_meaning_of(self.outcome.error))


class SqliteRunner:
    """Runs functions on the connections of one file."""

    def __init__(self, path: Path, crash_points: CrashPoints) -> None:
        self._crash_points = crash_points
        self.on_unheard: Callable[[], None] = _nothing
        """Called on the event loop after a commit for which the caller did not wait any more."""
        self._lock: sqlite_file.LockFile | None = None
        self._writer = sqlite_file.engine_of(path).connect()
        self._driver = sqlite_file.driver_of(self._writer)
        reading = sqlite_file.engine_of(path, read_only=True)
        self._readers = [reading.connect() for _ in range(READERS)]
        self._idle: SimpleQueue[Connection] = SimpleQueue()
        for reader in self._readers:
            self._idle.put(reader)
        self._watch = sqlite_file.Watch(path)
        self._reading = ThreadPoolExecutor(READERS, "store-reader")
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        # A daemon: a process that forgot to close the store must be able to exit.
        self._thread = Thread(target=self._work, name="store-writer", daemon=True)
        self._thread.start()

    def _unheard(self) -> None:
        """Call `on_unheard` as it is set by then."""
        self.on_unheard()

    def hold(self, lock: sqlite_file.LockFile) -> None:
        """Keep the database's lock until closed."""
        self._lock = lock

    async def write(
        self, call: Callable[[Connection], T], around_commit: tuple[str, str] | None
    ) -> T:
        """The function's value, after the commit that holds its changes."""
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._jobs.put(_Job(call, around_commit, answer, self._unheard))
        return await answer  # type: ignore[return-value]  # what call returned

    async def read(self, call: Callable[[Connection], T]) -> T:
        """The function's value over one snapshot."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reading, self._read, call)

    def _read(self, call: Callable[[Connection], T]) -> T:
        connection = self._idle.get()
        driver = sqlite_file.driver_of(connection)
        try:
            driver.execute("BEGIN")
            return call(connection)
        except (sqlite3.Error, DBAPIError) as error:
            raise _meaning_of(error) from error
        finally:
            if driver.in_transaction:
                driver.execute("ROLLBACK")
            self._idle.put(connection)

    async def access_version(self) -> int:
        """The counter of the triggers; read again only when any other connection has committed."""
        return self._watch.access_version()

    async def show_life(self, instance_id: str) -> None:
        """Nothing: who serves a file holds its lock."""

    async def is_newest(self, _queue_id: int, _version: int, /) -> bool:
        """Always: whoever serves a file holds its lock, and nobody else writes queues."""
        return True

    async def close(self) -> None:
        """Finish what waits, end the threads, close every connection, release the lock."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._jobs.put(None)
        self._thread.join()
        self._reading.shutdown()
        for reader in self._readers:
            reader.close()
        self._writer.close()
        self._watch.close()
        if self._lock is not None:
            self._lock.release()

    def _work(self) -> None:
        while (first := self._jobs.get()) is not None:
            group = [first]
            last = False
            while len(group) < GROUP_MAX:
                try:
                    job = self._jobs.get_nowait()
                except Empty:
                    break
                if job is None:
                    last = True
                    break
                group.append(job)
            # Callers that stopped waiting before the start are told that it did not happen.
            self._run_group([job for job in group if not job.answer.cancelled()])
            if last:
                return

    def _run_group(self, group: list[_Job]) -> None:
        if not group:
            return
        begun = self._begin()
        if begun.error is not None:
            _refuse(group, begun.error)
        else:
            whole = self._commit(group)
            if isinstance(whole.error, _GaveUp | sqlite3.Error) and len(group) > 1:
                for job in group:
                    self._run_group([job])
                return
            if whole.error is not None:
                _refuse(group, whole.error)
        _deliver(group)

    def _begin(self) -> _Outcome[None]:
        begun = _Outcome[None]()
        with begun:
            self._driver.execute("BEGIN IMMEDIATE")
        return begun

    def _commit(self, group: list[_Job]) -> _Outcome[None]:
        whole = _Outcome[None]()
        with whole:
            for job in group:
                self._attempt(job)
            self._reach(group, 0)
            self._driver.execute("COMMIT")
            self._reach(group, 1)
        with suppress(sqlite3.Error):
            if self._driver.in_transaction:
                self._driver.execute("ROLLBACK")
        return whole

    def _attempt(self, job: _Job) -> None:
        """One function in its savepoint. Raises _GaveUp when the transaction is gone."""
        self._driver.execute("SAVEPOINT job")
        job.outcome = _Outcome()
        with job.outcome:
            job.outcome.value = job.call(self._writer)
        if not self._driver.in_transaction:
            raise _GaveUp from job.outcome.error
        if job.outcome.error is not None:
            self._driver.execute("ROLLBACK TO job")
        self._driver.execute("RELEASE job")

    def _reach(self, group: list[_Job], side: int) -> None:
        for names in dict.fromkeys(job.around_commit for job in group):
            if names is not None:
                self._crash_points.reach(names[side])


def _nothing() -> None:
    pass


def _refuse(group: list[_Job], error: BaseException) -> None:
    for job in group:
        job.outcome.error = error


def _deliver(group: list[_Job]) -> None:
    """Wake each event loop once."""
    loops: dict[asyncio.AbstractEventLoop, list[_Job]] = defaultdict(list)
    for job in group:
        loops[job.answer.get_loop()].append(job)
    for loop, jobs in loops.items():
        # A closed loop has nobody left who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_deliver_here, jobs)


def _deliver_here(jobs: Iterable[_Job]) -> None:
    for job in jobs:
        job.deliver()


def _meaning_of(error: BaseException) -> BaseException:
    """Return what the caller is told: a database that cannot now, else the error itself."""
    origin = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(origin, _GaveUp):
        origin = origin.__cause__ or origin
        if isinstance(origin, _GaveUp):
            return DatabaseUnavailable.caused_by(origin)
        return _meaning_of(origin)
    code = getattr(origin, "sqlite_errorcode", None)
    # The low byte is the primary code, the rest says more (sqlite.org/rescode.html).
    if isinstance(origin, sqlite3.Error) and code is not None and code & 0xFF in UNAVAILABLE:
        return DatabaseUnavailable.caused_by(origin)
    return error
