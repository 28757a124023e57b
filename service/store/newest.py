"""What is newest in a PostgreSQL database that other processes write, too.

It is asked before nearly every answer, so it is asked on the event loop itself, over the driver's
bare protocol: two changes of threads, or an ORM's connection, cost several times the question.
"""

import asyncio
from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

import psycopg
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGconn, PGresult
from sqlalchemy import URL, Connection, NullPool, create_engine
from sqlalchemy.exc import DBAPIError

LOOK = (
    "SELECT 0, access_version FROM deployment "
    "UNION ALL SELECT id, version FROM merge_queue WHERE id = ANY($1)"
)
"""In the server's own form. No queue has id 0."""

PREPARE = f"PREPARE look (bigint[]) AS {LOOK}"
"""Once a session: to plan it takes the server longer than to answer it."""


class Newest(NamedTuple):
    """The version of who may see what, and of the queues that were asked for and are there."""

    access_version: int
    queues: Mapping[int, int]


class Look:
    """A session of its own that looks, without a transaction.

    Used from one event loop, for one question at a time.
    """

    def __init__(self, url: URL, connect_args: Mapping[str, object]) -> None:
        # Beside the pool, so that whoever works finds all of its connections.
        self._engine = create_engine(
            url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=dict(connect_args)
        )
        self._wire: Wire | None = None

    async def newest(self, queue_ids: Set[int]) -> Newest:
        """As committed now. Raises DBAPIError."""
        if self._wire is None or self._wire.is_broken:
            self.close()
            self._wire = Wire(await asyncio.to_thread(self._opened))
        try:
            return _newest(await self._wire.ask(_array(queue_ids)))
        except psycopg.Error as error:
            self.close()
            # Whatever is worse than an error of the statement ends the session.
            is_lost = error.diag.severity_nonlocalized != "ERROR"
            raise DBAPIError(LOOK, None, error, connection_invalidated=is_lost) from error

    def _opened(self) -> Connection:
        session = self._engine.connect()
        session.exec_driver_sql(PREPARE)
        return session

    def close(self) -> None:
        """Let go of the session; the next look opens another one."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None


class Wire:
    """The way to the server and back for one question after the other."""

    def __init__(self, session: Connection) -> None:
        self._session = session
        self._pgconn = _pgconn_of(session)
        # A question is small and nothing is before it on its way, so sending never waits.
        self._pgconn.nonblocking = 0
        self._loop = asyncio.get_running_loop()
        self._socket = self._pgconn.socket
        self._loop.add_reader(self._socket, self._take)
        self._result: PGresult | None = None
        self._answer: asyncio.Future[PGresult] | None = None
        self.is_broken = False

    async def ask(self, queue_ids: bytes) -> PGresult:
        """The rows. Raises psycopg.Error, without the server's code where that did not answer."""
        self._answer = self._loop.create_future()
        try:
            self._pgconn.send_query_prepared(b"look", [queue_ids], result_format=Format.BINARY)
            return await self._answer
        finally:
            # Who stops waiting leaves an answer on its way, which must be nobody else's.
            self.is_broken = self.is_broken or not self._answer.done() or self._answer.cancelled()
            self._answer = None

    def _take(self) -> None:
        """Take in what has come, also where nobody asked: the end of the session, say."""
        try:
            self._pgconn.consume_input()
            while not self._pgconn.is_busy():
                result = self._pgconn.get_result()
                if result is None:
                    self._tell()
                    return
                self._result = result
        except psycopg.Error as error:
            self._break(error)

    def _tell(self) -> None:
        result, self._result = self._result, None
        if self._answer is None or self._answer.done() or result is None:
            return
        if result.status == ExecStatus.TUPLES_OK:
            self._answer.set_result(result)
        else:
            self._answer.set_exception(psycopg.errors.error_from_result(result))

    def _break(self, error: psycopg.Error) -> None:
        self.is_broken = True
        self._loop.remove_reader(self._socket)
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    def close(self) -> None:
        """End the session; whoever still waits for it is told so by cancelling."""
        if self._answer is not None:
            self._answer.cancel()
        self._loop.remove_reader(self._socket)
        self._session.invalidate()
        self._session.close()


def _pgconn_of(session: Connection) -> PGconn:
    driver = session.connection.driver_connection
    if not isinstance(driver, psycopg.Connection):
        raise TypeError(f"not a connection to PostgreSQL: {driver!r}")
    return driver.pgconn


def _array(ids: Iterable[int]) -> bytes:
    return b"{%b}" % b",".join(b"%d" % one for one in ids)


def _newest(result: PGresult) -> Newest:
    versions = {
        _number(result.get_value(row, 0)): _number(result.get_value(row, 1))
        for row in range(result.ntuples)
    }
    return Newest(versions.pop(0, 0), versions)


def _number(value: bytes | None) -> int:
    return int.from_bytes(value or b"", "big")
