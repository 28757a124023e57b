"""What is newest in a PostgreSQL database that other processes write, too.

It is asked before nearly every answer, so it has a thread and a session of its own: readers that
are busy never delay it.
"""

from collections.abc import Mapping, Set
from contextlib import suppress
from typing import NamedTuple

import psycopg
from sqlalchemy import Connection, Engine
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

LOOK = (
    "SELECT 0, access_version FROM deployment "
    "UNION ALL SELECT id, version FROM merge_queue WHERE id = ANY(%s)"
)
"""No queue has id 0."""


class Newest(NamedTuple):
    """The version of who may see what, and of the queues that were asked for and are there."""

    access_version: int
    queues: Mapping[int, int]


class Look:
    """A session that looks, without a transaction. Used from one thread at a time."""

    def __init__(self, engine: Engine) -> None:
        """`engine` makes a session in autocommit whenever it is asked for one."""
        self._engine = engine
        self._session: Connection | None = None
        self._cursor: DBAPICursor | None = None

    def newest(self, queue_ids: Set[int]) -> Newest:
        """Return what is committed now. Raises DBAPIError; the next look opens another session."""
        try:
            cursor = self._opened() if self._cursor is None else self._cursor
            cursor.execute(LOOK, (list(queue_ids),))
            versions = dict(cursor.fetchall())
        except psycopg.Error as error:
            self.close()
            # Whatever is worse than an error of the statement ends the session.
            is_lost = error.diag.severity_nonlocalized != "ERROR"
            raise DBAPIError(LOOK, None, error, connection_invalidated=is_lost) from error
        return Newest(versions.pop(0, 0), versions)

    def _opened(self) -> DBAPICursor:
        self._session = self._engine.connect()
        self._cursor = self._session.connection.cursor()
        return self._cursor

    def close(self) -> None:
        """End the session."""
        session, self._session, self._cursor = self._session, None, None
        if session is not None:
            with suppress(SQLAlchemyError):
                session.invalidate()
                session.close()
