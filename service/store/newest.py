"""What is newest in a PostgreSQL database that other processes write, too."""

from collections.abc import Callable, Mapping, Set
from typing import NamedTuple, TypeVar

from sqlalchemy import URL, Connection, NullPool, create_engine
from sqlalchemy.exc import DBAPIError

T = TypeVar("T")

LOOK = (
    "SELECT 0, access_version FROM deployment "
    "UNION ALL SELECT id, version FROM merge_queue WHERE id = ANY(%s)"
)
"""The driver's own statement: it is asked before every answer. No queue has id 0."""


class Newest(NamedTuple):
    """The version of who may see what, and of the queues that were asked for and are there."""

    access_version: int
    queues: Mapping[int, int]


class Look:
    """A session of its own that looks, without a transaction. Used by one thread at a time."""

    def __init__(self, url: URL, connect_args: Mapping[str, object]) -> None:
        # Beside the pool, so that whoever works finds all of its connections.
        self._engine = create_engine(
            url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=dict(connect_args)
        )
        self._session: Connection | None = None

    def ask(self, question: Callable[[Connection], T]) -> T:
        """What one statement answers as committed now. Raises DBAPIError."""
        if self._session is None:
            self._session = self._engine.connect()
        try:
            return question(self._session)
        except DBAPIError:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the session; the next look opens another one."""
        if self._session is not None:
            self._session.invalidate()
            self._session.close()
            self._session = None


def of_queues(session: Connection, queue_ids: Set[int]) -> Newest:
    """What is newest of all, and of these queues."""
    rows = session.exec_driver_sql(LOOK, (sorted(queue_ids),)).all()
    versions = {row[0]: row[1] for row in rows}
    return Newest(versions.pop(0, 0), versions)
