"""Small questions to PostgreSQL on connections of their own, beside the pool.

Readers and writers that are busy never delay them. Each connection is in autocommit, is kept open,
and is opened anew after it has broken.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping, Set
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

import psycopg
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

Subject = TypeVar("Subject")
Answer = TypeVar("Answer")

SELECT_VERSIONS = text(
    "SELECT 0 AS id, access_version AS version FROM deployment "
    "UNION ALL SELECT id, version FROM merge_queue WHERE id = ANY(:queue_ids)"
)
"""The access version under id 0, which no queue has."""

LOCKS = 0x4C495645
"""First half of the keys of liveness locks ("LIVE")."""

LOCK = text("SELECT pg_try_advisory_lock_shared(:locks, :key)")
UNLOCK = text("SELECT pg_advisory_unlock_all()")
PING = text("SELECT 1")
SELECT_LOCKED = text(
    "SELECT l.objid::bigint FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
    "WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.objsubid = 2 "
    "AND l.classid::bigint = :locks"
)


class Newest(NamedTuple):
    """The access version, and the versions of those of the given queues that exist."""

    access_version: int
    queues: Mapping[int, int]


class _KeptConnection:
    """A connection of `engine` that stays open. Used by one thread at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: Connection | None = None

    def opened(self) -> Connection:
        """Return the connection, opened if need be. Raises DBAPIError."""
        if self._open is None:
            self._open = self._engine.connect()
        return self._open

    @property
    def is_open(self) -> bool:
        """Return whether it was opened and not closed since."""
        return self._open is not None

    def close(self) -> None:
        """Close it, in whatever state it is."""
        connection, self._open = self._open, None
        if connection is not None:
            with suppress(SQLAlchemyError):
                connection.invalidate()
                connection.close()


class VersionProbe:
    """Reads the newest versions, which other processes may have written."""

    def __init__(self, engine: Engine) -> None:
        self._kept = _KeptConnection(engine)

    def newest(self, queue_ids: Set[int]) -> Newest:
        """Return what is committed now. Raises DBAPIError; the next call opens a connection."""
        try:
            rows = self._kept.opened().execute(SELECT_VERSIONS, {"queue_ids": list(queue_ids)})
            versions = {row.id: row.version for row in rows}
        except DBAPIError as error:
            self._kept.close()
            # Errors graver than that of a statement end the connection on the server's side.
            if isinstance(error.orig, psycopg.Error):
                error.connection_invalidated |= error.orig.diag.severity_nonlocalized != "ERROR"
            raise
        return Newest(versions.pop(0, 0), versions)

    def close(self) -> None:
        """End the connection."""
        self._kept.close()


class Joined(Generic[Subject, Answer]):
    """One question for all callers that wait for its answer. Used from one event loop.

    Before nearly every response the process asks which version is the newest. Callers that come
    while such a question is under way share the next one. So each gets an answer that is newer than
    its call, and many at a time cost as much as one.
    """

    def __init__(self, ask: Callable[[Set[Subject]], Awaitable[Answer]]) -> None:
        self._ask = ask
        self._subjects: set[Subject] = set()
        self._asking = asyncio.Lock()
        self._next: asyncio.Task[Answer] | None = None

    async def answer(self, *subjects: Subject) -> Answer:
        """Return the answer to a question that begins after this call, about at least these.

        Raises what the question raises.
        """
        self._subjects.update(subjects)
        if self._next is None:
            self._next = asyncio.create_task(self._ask_next())
            self._next.add_done_callback(_heard)
        # The others go on waiting when this caller is cancelled.
        return await asyncio.shield(self._next)

    async def _ask_next(self) -> Answer:
        async with self._asking:
            subjects, self._subjects, self._next = self._subjects, set(), None
            return await self._ask(subjects)


def _heard(asked: "asyncio.Task[Answer]") -> None:
    """Take the answer or the error, for which nobody may be waiting any more."""
    if not asked.cancelled():
        asked.exception()


class LivenessLock:
    """The lock that shows others that this process lives; the server frees it with the connection.

    It only speeds up what heartbeats find out: a process that hangs keeps its connection.
    """

    def __init__(self, engine: Engine) -> None:
        self._kept = _KeptConnection(engine)

    def hold(self, instance_id: str) -> None:
        """Take the lock, or take it again if its connection has broken. Raises DBAPIError."""
        if self._kept.is_open:
            try:
                self._kept.opened().execute(PING)
            except DBAPIError:
                self._kept.close()
            else:
                return
        self._kept.opened().execute(LOCK, {"locks": LOCKS, "key": lock_key(instance_id)})

    def close(self) -> None:
        """Free the lock; the server may notice the end of the connection only a moment later."""
        if self._kept.is_open:
            with suppress(SQLAlchemyError):
                self._kept.opened().execute(UNLOCK)
        self._kept.close()


def lock_key(instance_id: str) -> int:
    """Return the second half of a lock's key: 31 bits, the same number in every integer type."""
    return zlib.crc32(instance_id.encode()) >> 1


def locked_keys(session: Connection) -> frozenset[int]:
    """Return the keys of all processes that hold their lock."""
    return frozenset(session.execute(SELECT_LOCKED, {"locks": LOCKS}).scalars())
