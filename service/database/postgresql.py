"""PostgreSQL: the same functions on a pool of threads, each with a connection of its own.

READ COMMITTED for writing: a turn is guarded by its row lock and version. Reads have a
snapshot. Readers can never take all connections, so that a landing always finds one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Set
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import psycopg
from psycopg.abc import PQGen
from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolExhausted

from service.clock import Clock, Ids
from service.crash_points import CrashPoints
from service.database.probes import Joined, LivenessLock, Newest, VersionProbe
from service.errors import DatabaseUnavailable

T = TypeVar("T")

POOL_MAX = 8
READERS_MAX = 4

TRIES_MAX = 5
RETRY_MIN_S = 0.01
RETRY_MAX_S = 0.5
"""Bounds of the wait before a transaction runs again (docs/design/transactions.md 2)."""

VERSION_MIN = 14

SESSION = (
    "-c statement_timeout=15000 -c lock_timeout=5000 "
    "-c idle_in_transaction_session_timeout=30000 -c timezone=UTC"
)
"""Set on every connection (docs/design/transactions.md 4)."""

CONNECT: dict[str, object] = {
    "options": SESSION,
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 20_000,
}
"""The options of every connection; libpq's own times, the last in milliseconds."""

INTERRUPTED_EVERY_S = 0.1
WAIT_S = 20.0
"""The longest wait for the server's answer: above its own limit for a statement. A server that
hangs keeps neither that limit nor its connections, so the connection is given up then."""
LOOK_WAIT_S = 5.0
"""The same for small questions that requests wait for."""

AGAIN = frozenset({"40001", "40P01", "55P03"})
"""Serialization failure, deadlock, lock not available."""

UNAVAILABLE = ("08", "25006", "25P03", "53", "57", "58")
"""Beginnings of the codes that say "not now": connection, read-only, resources, operator."""


REFUSED_FOR_GOOD = (
    "password authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "role ",
    "does not exist",
)
"""Parts of a server's refusals that waiting does not mend."""


class LimitedConnection(psycopg.Connection[tuple[object, ...]]):
    """A connection that waits for its server so long and no longer, and is closed then."""

    wait_s = WAIT_S

    def wait(
        self, gen: PQGen[T], interval: float = INTERRUPTED_EVERY_S, timeout: float | None = None
    ) -> T:
        """Wait for the server. Raises psycopg.OperationalError without a code after `wait_s`."""
        try:
            return super().wait(gen, interval, self.wait_s if timeout is None else timeout)
        except psycopg.OperationalError as error:
            if error.sqlstate is None:
                # Its answer may come later, and would be taken for that of the next question.
                self.pgconn.finish()
            raise


class Prompt(LimitedConnection):
    """The same for small questions."""

    wait_s = LOOK_WAIT_S


class Again(Exception):
    """The transaction did not happen, for a reason that passes."""


class PostgresqlRunner:
    """Runs functions on the connections of one database."""

    def __init__(
        self, engine: Engine, pool: int, crash_points: CrashPoints, clock: Clock, ids: Ids
    ) -> None:
        readers = max(1, min(READERS_MAX, pool // 2))
        self._engine = engine
        self._snapshots = engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self._writing = ThreadPoolExecutor(max(1, pool - readers), "store-writer")
        self._reading = ThreadPoolExecutor(readers, "store-reader")
        self._probing = ThreadPoolExecutor(1, "store-probe")
        self._liveness = LivenessLock(_single_engine_of(engine.url))
        self._probe = VersionProbe(_single_engine_of(engine.url))
        self._newest: Joined[int, Newest] = Joined(self._probe_versions)
        self._crash_points = crash_points
        self._clock = clock
        self._ids = ids

    async def write(
        self, call: Callable[[Connection], T], around_commit: tuple[str, str] | None
    ) -> T:
        """The function's value, after its commit; again, at most 5 times, when that may help."""
        return await self._on(self._writing, partial(self._write, call, around_commit))

    async def read(self, call: Callable[[Connection], T]) -> T:
        """The function's value over one snapshot."""
        return await self._on(self._reading, partial(self._read, call))

    async def _on(self, threads: ThreadPoolExecutor, call: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        return await self._until_done(partial(loop.run_in_executor, threads, call))

    async def _until_done(self, attempt: Callable[[], Awaitable[T]]) -> T:
        for _ in range(TRIES_MAX - 1):
            try:
                return await attempt()
            except Again:
                await self._clock.sleep(self._jitter_s())
        try:
            return await attempt()
        except Again as again:
            raise DatabaseUnavailable.caused_by(again) from again

    def _jitter_s(self) -> float:
        # Chance comes with the ids; the last 48 bits of a random UUID are random.
        share = int(self._ids.uuid()[-12:], 16) / 16**12
        return RETRY_MIN_S + share * (RETRY_MAX_S - RETRY_MIN_S)

    def _write(self, call: Callable[[Connection], T], around_commit: tuple[str, str] | None) -> T:
        try:
            with self._engine.connect() as connection:
                value = call(connection)
                if around_commit is not None:
                    self._crash_points.reach(around_commit[0])
                _commit(connection)
        except DBAPIError as error:
            raise _meaning_of(error) from error
        except PoolExhausted as error:
            raise DatabaseUnavailable.caused_by(error) from error
        if around_commit is not None:
            self._crash_points.reach(around_commit[1])
        return value

    def _read(self, call: Callable[[Connection], T]) -> T:
        try:
            with self._snapshots.connect() as connection:
                return call(connection)
        except DBAPIError as error:
            raise _meaning_of(error) from error
        except PoolExhausted as error:
            raise DatabaseUnavailable.caused_by(error) from error

    async def access_version(self) -> int:
        """The counter of the triggers, as committed now: one question serves all who wait."""
        return (await self._newest.answer()).access_version

    async def is_newest(self, queue_id: int, version: int, /) -> bool:
        """Return whether no process has committed a newer one."""
        return (await self._newest.answer(queue_id)).queues.get(queue_id) == version

    async def _probe_versions(self, queue_ids: Set[int]) -> Newest:
        return await self._on(self._probing, partial(self._probe_now, queue_ids))

    def _probe_now(self, queue_ids: Set[int]) -> Newest:
        try:
            return self._probe.newest(queue_ids)
        except DBAPIError as error:
            raise _meaning_of(error) from error

    async def show_life(self, instance_id: str) -> None:
        """Hold the lock that says so, until closed."""
        await self._on(self._writing, partial(self._show_life, instance_id))

    def _show_life(self, instance_id: str) -> None:
        try:
            self._liveness.hold(instance_id)
        except DBAPIError as error:
            raise _meaning_of(error) from error

    async def close(self) -> None:
        """Finish what runs, end the threads, close every connection."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._writing.shutdown()
        self._reading.shutdown()
        self._probing.shutdown()
        self._probe.close()
        self._liveness.close()
        self._engine.dispose()


def engine_of(url: URL, pool: int) -> Engine:
    """A pool of exactly `pool` connections to the address."""
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_size=pool,
        max_overflow=0,
        pool_timeout=WAIT_S,
    )
    return _connected_by(engine, LimitedConnection)


def _single_engine_of(url: URL) -> Engine:
    """Connections beside the pool, each for as long as it is kept, in autocommit.

    Whoever works finds all connections of the pool free.
    """
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    return _connected_by(engine, Prompt)


def _connected_by(engine: Engine, kind: type[LimitedConnection]) -> Engine:
    @event.listens_for(engine, "do_connect")
    def connect(
        _dialect: object, _record: object, arguments: list[str], options: dict[str, object]
    ) -> LimitedConnection:
        # What the address says goes before.
        return kind.connect(*arguments, **{**CONNECT, **options})  # type: ignore[arg-type]  # parsed

    return engine


def _commit(connection: Connection) -> None:
    try:
        connection.commit()
    except DBAPIError as error:
        # Whether it is committed is unknown, so it may not run again: the caller finds out by
        # the row that his own key names.
        if _is_lost(error):
            raise DatabaseUnavailable.caused_by(error) from error
        raise


def _is_lost(error: DBAPIError) -> bool:
    """Return whether the connection broke, or never came about."""
    return error.connection_invalidated or _sqlstate_of(error) is None


def is_away(error: DBAPIError) -> bool:
    """Return whether a database that cannot be opened may be opened later.

    A server that refuses for good says so in words alone: libpq gives no code at the connecting.
    """
    state = _sqlstate_of(error)
    if state is not None:
        return state.startswith(UNAVAILABLE)
    return not any(words in str(error.orig) for words in REFUSED_FOR_GOOD)


def _sqlstate_of(error: DBAPIError) -> str | None:
    """The server's code; None when it did not answer."""
    return getattr(error.orig, "sqlstate", None)


def _meaning_of(error: DBAPIError) -> Exception:
    """Return Again, the error for giving up for now, or for a mistake of ours the error itself."""
    state = _sqlstate_of(error)
    if state in AGAIN or _is_lost(error):
        return Again(str(error.orig))
    if state is not None and state.startswith(UNAVAILABLE):
        return DatabaseUnavailable.caused_by(error)
    return error
