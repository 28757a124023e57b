"""The store: opened once, runs transaction functions, closed at the end.

A transaction function is plain (`fn(session, …)`), runs on one of the store's threads, cannot
await the world, and may be run again from the start, so it changes nothing but rows. Which
database it is, only this package knows.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from sqlalchemy import URL, Connection, Engine, make_url
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import ArgumentError, DBAPIError

from service import time_limits, troubles
from service.clock import Clock, Ids
from service.crash_points import CrashPoints
from service.database import diagnosis, migrate, postgresql, sqlite, sqlite_file
from service.database.tables_tenants import DeploymentRow
from service.errors import DatabaseAway, DatabaseUnavailable, StartRefused
from service.memory import Memory
from service.troubles import Part, Trouble, Troubles

P = ParamSpec("P")
T = TypeVar("T")

Tx: TypeAlias = Connection
"""The first argument of a transaction function: all it may touch, and only for the call."""

Dialect = Literal["sqlite", "postgresql"]

_PART = Part.DATABASE
_READS, _WRITES = "reads", "writes"

AROUND_COMMIT: dict[str, tuple[str, str]] = {
    "accept": ("tx.accept.before_commit", "tx.accept.after_commit"),
    "turn": ("tx.turn.before_commit", "tx.turn.after_commit"),
    "permit": ("tx.permit.before_commit", "tx.permit.after_commit"),
    "settle": ("tx.settle.before_commit", "tx.settle.after_commit"),
}
"""The kinds of transactions that carry the work, and where crash tests strike around each."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The options of opening: `alone` takes the lock of a SQLite file, for the process that serves.

    Not alone: beside a serving process, for one short transaction; a pending migration is
    then only run when nobody serves.
    """

    migrate: bool = True
    pool: int = postgresql.POOL_MAX
    alone: bool = True


class Runner(Protocol):
    """The common operations of the two databases."""

    async def write(
        self, call: Callable[[Connection], T], around_commit: tuple[str, str] | None
    ) -> T:
        """Run it in a transaction and commit."""
        ...

    async def read(self, call: Callable[[Connection], T]) -> T:
        """Run it over one read-only snapshot."""
        ...

    async def access_version(self) -> int:
        """A number that changes with whatever decides who may see what."""
        ...

    async def show_life(self, instance_id: str) -> None:
        """Show others that this process lives, until closed."""
        ...

    async def is_newest(self, queue_id: int, version: int, /) -> bool:
        """Return whether this version of a queue, committed or read in this process, is current."""
        ...

    async def close(self) -> None:
        """Let go of threads and connections."""
        ...


class Store:
    """Rows that outlive the process."""

    def __init__(self, runner: Runner, dialect: Dialect, clock: Clock) -> None:
        self.runner = runner
        """The way to reach the database; tests put their faults in between."""
        self.troubles = Troubles(clock)
        """The troubles of this process, those of its database among them."""
        self._clock = clock
        self.dialect = dialect
        self.caches = Memory()
        """The memory of this process of the database, as of commits that it has heard of."""
        self.is_alone = dialect == "sqlite"
        """True if no other process works on it: one that serves a SQLite file holds its lock."""

    async def run(
        self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """One write transaction: what `fn` returns, after the commit.

        What it raises rolls it back and comes here. Raises DatabaseUnavailable when the
        database cannot take it now. It may have happened all the same, when the connection broke
        at the commit or the time limit passed: a write is safe to repeat, or its outcome is read.
        """
        return await self._write(_bound(fn, *args, **kwargs), None)

    async def run_kind(
        self,
        kind: str,
        fn: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """As `run`, for a kind of `AROUND_COMMIT`: crash tests strike around its commit."""
        return await self._write(_bound(fn, *args, **kwargs), AROUND_COMMIT[kind])

    async def _write(
        self, call: Callable[[Connection], T], around_commit: tuple[str, str] | None
    ) -> T:
        try:
            return await self._watched(self.runner.write(call, around_commit), _WRITES)
        except DatabaseUnavailable:
            # It may be committed, and then every cached value of it is outdated.
            self.caches.clear()
            raise

    async def read(
        self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """One read-only snapshot: what `fn` returns. Raises DatabaseUnavailable."""
        return await self._watched(self.runner.read(_bound(fn, *args, **kwargs)), _READS)

    async def _watched(self, asked: Awaitable[T], side: str) -> T:
        """Wait as `_named`; report that the database answers again.

        A write proves that it can be read as well.
        """
        asked_s = self._clock.monotonic_s()
        answer = await self._named(asked, side)
        for proved in (_READS, side):
            self.troubles.end(_PART, side=proved, asked_s=asked_s)
        return answer

    async def _named(self, asked: Awaitable[T], side: str) -> T:
        """Wait as `_limited`; report that the database is in trouble, and let the error name it."""
        try:
            return await _limited(asked)
        except DatabaseUnavailable as refused:
            name = diagnosis.trouble_of(refused)
            if name is not None:
                now = self._clock.now()
                self.troubles.report(Trouble(name, now), side)
                again = f"Try again in {refused.retry_after_s} seconds."
                refused.detail = f"{troubles.sentences(self.troubles.of_part(_PART), now)} {again}"
            raise

    async def access_version(self) -> int:
        """A number that changes with every token, repository or queue that comes, goes or changes.

        What was answered under one number may be answered again while it stands, also when another
        process has written (docs/design/security.md 1: a revocation is effective from the next
        request).
        """
        return await self._named(self.runner.access_version(), _READS)

    async def show_life(self, instance_id: str) -> None:
        """Show others who serve this database that the process lives, until closed.

        Again after a time: then a sign that was lost is shown anew. Raises DatabaseUnavailable.
        """
        await self._named(self.runner.show_life(instance_id), _WRITES)

    async def is_newest(self, queue_id: int, version: int) -> bool:
        """Return whether this committed version of a queue is the newest one."""
        return await self._named(self.runner.is_newest(queue_id, version), _READS)

    async def close(self) -> None:
        """Finish what waits, then end every thread and connection."""
        await self.runner.close()


async def _limited(asked: Awaitable[T]) -> T:
    """Wait for the database, but no longer than service/time_limits.py allows.

    Raises DatabaseUnavailable when the time has passed: what was asked may still happen.
    """
    try:
        async with asyncio.timeout(time_limits.limit_s()):
            return await asked
    except TimeoutError as late:
        raise DatabaseUnavailable(
            "The database did not answer in time; try again in 30 seconds.",
            retry_after_s=DatabaseUnavailable.RETRY_AFTER_S,
        ) from late


def _bound(
    fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
) -> Callable[[Connection], T]:
    return lambda session: fn(session, *args, **kwargs)


async def open_store(
    url: str,
    *,
    clock: Clock,
    ids: Ids,
    crash_points: CrashPoints,
    options: StoreOptions | None = None,
) -> Store:
    """Open, check, lock and migrate the database at `sqlite:///path` or `postgresql://…`.

    Raises DatabaseAway when waiting may help, else StartRefused, with a sentence for the operator
    (docs/design/transactions.md 4).
    """
    chosen = options or StoreOptions()
    where = address(url)
    if where.get_backend_name() == "sqlite":
        opened = await asyncio.to_thread(_open_sqlite, where, crash_points, chosen)
        store = Store(opened, "sqlite", clock)
        # Memory may not have heard of what was committed after its caller's time limit.
        opened.on_unheard = store.caches.clear
    else:
        engine = await asyncio.to_thread(_open_postgresql, where, chosen)
        runner = postgresql.PostgresqlRunner(engine, chosen.pool, crash_points, clock, ids)
        store = Store(runner, "postgresql", clock)
    async with AsyncExitStack() as undo:
        undo.push_async_callback(store.close)
        await store.run(_name_deployment, ids.uuid())
        undo.pop_all()
    return store


def address(url: str) -> URL:
    """The parsed address. Raises StartRefused for anything but the two databases."""
    try:
        where = make_url(url)
    except ArgumentError:
        raise _refused_address() from None
    is_file = where.drivername == "sqlite" and where.database not in (None, "", ":memory:")
    if not is_file and where.drivername not in ("postgresql", "postgres"):
        raise _refused_address()
    return where


def _refused_address() -> StartRefused:
    # The address itself stays out of the text: it may hold a password.
    return StartRefused(
        "HEADGATE_DATABASE_URL must be sqlite:///path/to/file.db or "
        "postgresql://user@host/database."
    )


def _open_sqlite(
    where: URL, crash_points: CrashPoints, options: StoreOptions
) -> sqlite.SqliteRunner:
    path = Path(where.database or "")
    with ExitStack() as undo:
        try:
            sqlite_file.prepare(path)
            lock = sqlite_file.LockFile(path)
            if options.alone:
                lock.take()
                undo.callback(lock.release)
            _check_sqlite(path, lock, options)
            runner = sqlite.SqliteRunner(path, crash_points)
        except (OSError, sqlite3.Error, DBAPIError) as failed:
            refusal = DatabaseAway if _passes(failed) else StartRefused
            raise refusal(f"The database {path} cannot be opened: {_said(failed)}") from failed
        undo.pop_all()
    runner.hold(lock)
    return runner


def _check_sqlite(path: Path, lock: sqlite_file.LockFile, options: StoreOptions) -> None:
    engine = sqlite_file.engine_of(path)
    if lock.was_unclean:
        sqlite_file.refuse_damaged(engine, path)
    with engine.connect() as connection:
        revision = migrate.revision_of(connection)
    if not migrate.is_older(revision):
        return
    if not options.migrate:
        raise _pending(revision)
    if not options.alone:
        lock.take()
    migrate.upgrade_sqlite(engine, path)
    if not options.alone:
        lock.release()


def _open_postgresql(where: URL, options: StoreOptions) -> Engine:
    engine = postgresql.engine_of(where, options.pool)
    with ExitStack() as undo:
        undo.callback(engine.dispose)
        try:
            _check_postgresql(engine, options)
        except DBAPIError as failed:
            refusal = DatabaseAway if postgresql.is_away(failed) else StartRefused
            raise refusal(
                f"The database of HEADGATE_DATABASE_URL cannot be opened: {failed.orig}"
            ) from failed
        undo.pop_all()
    return engine


def _passes(failed: Exception) -> bool:
    """Return whether a SQLite file that cannot be opened may open later: the disk is full, say."""
    if isinstance(failed, OSError):
        return failed.errno in sqlite_file.PASSING
    origin = failed.orig if isinstance(failed, DBAPIError) else failed
    return (getattr(origin, "sqlite_errorcode", 0) & 0xFF) in sqlite.PASSING


def _check_postgresql(engine: Engine, options: StoreOptions) -> None:
    with engine.connect() as connection:
        version = connection.dialect.server_version_info or ()
        revision = migrate.revision_of(connection)
    if version < (postgresql.VERSION_MIN,):
        raise StartRefused(
            f"PostgreSQL {'.'.join(map(str, version))} is too old: "
            f"{postgresql.VERSION_MIN} or newer is needed."
        )
    if not migrate.is_older(revision):
        return
    if not options.migrate:
        raise _pending(revision)
    migrate.upgrade_postgresql(engine)


def _pending(revision: str | None) -> StartRefused:
    found = "no schema yet" if revision is None else f"schema {revision}"
    return StartRefused(
        f"The database has {found}; this version of Headgate needs schema {migrate.HEAD}. A "
        "migration is pending: run headgate migrate."
    )


def _name_deployment(session: Connection, fresh: str) -> None:
    """The first to open names it; two may be first at once."""
    statement = upsert(DeploymentRow.__table__).on_conflict_do_nothing()
    session.execute(statement, {"id": 1, "uuid": fresh})


async def is_behind(url: str) -> bool:
    """Return whether the schema is older than this program's, or not there yet; changes nothing.

    Raises StartRefused when it is newer and this program does not run on it, or the database cannot
    be opened.
    """
    return await asyncio.to_thread(_is_behind, address(url))


def _is_behind(where: URL) -> bool:
    if where.get_backend_name() == "sqlite":
        path = Path(where.database or "")
        if not path.exists():
            return True
        engine = sqlite_file.engine_of(path)
    else:
        engine = postgresql.engine_of(where, 1)
    with ExitStack() as after:
        after.callback(engine.dispose)
        try:
            with engine.connect() as connection:
                return migrate.is_pending(connection)
        except (sqlite3.Error, DBAPIError) as failed:
            raise StartRefused(f"The database cannot be opened: {_said(failed)}") from failed


async def back_up(url: str, copy: Path) -> None:
    """Copy a SQLite database to a new file, also while a process serves from it.

    Raises StartRefused for another database, a file that exists, or a copy that fails.
    """
    where = address(url)
    if where.get_backend_name() != "sqlite":
        raise StartRefused("Only a SQLite database is copied to a file: use pg_dump.")
    await asyncio.to_thread(_back_up, Path(where.database or ""), copy)


def _back_up(path: Path, copy: Path) -> None:
    if not path.exists():
        raise StartRefused(f"There is no database {path} to copy.")
    try:
        with sqlite_file.engine_of(path).connect() as connection:
            migrate.back_up(connection, copy)
    except FileExistsError:
        raise StartRefused(f"{copy} exists already: give the copy a new name.") from None
    except (OSError, sqlite3.Error, DBAPIError) as failed:
        raise StartRefused(f"{path} could not be copied to {copy}: {_said(failed)}") from failed


def _said(failed: Exception) -> str:
    """The driver's own words, without the statement."""
    return str(failed.orig if isinstance(failed, DBAPIError) else failed).strip()
