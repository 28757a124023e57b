"""The sign that a process lives, which ends with it: a lock of a PostgreSQL session of its own.

It only accelerates: where a process stands still its session does not, and heartbeats tell.
"""

import zlib
from contextlib import suppress

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

SPACE = 0x4C495645
"""First half of the keys of these locks ("LIVE")."""

SHOW = text("SELECT pg_try_advisory_lock_shared(:space, :key)")
HIDE = text("SELECT pg_advisory_unlock_all()")
STILL = text("SELECT 1")
SELECT_SHOWN = text(
    "SELECT l.objid::bigint FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
    "WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.objsubid = 2 "
    "AND l.classid::bigint = :space"
)


def key_of(instance_id: str) -> int:
    """Second half of the key of its lock: 31 bits, which the server reads alike in every type."""
    return zlib.crc32(instance_id.encode()) >> 1


class Sign:
    """The lock of this process, shown until closed. Used by one thread at a time."""

    def __init__(self, engine: Engine) -> None:
        """`engine` makes a session in autocommit whenever it is asked for one."""
        self._engine = engine
        self._session: Connection | None = None

    def show(self, instance_id: str) -> None:
        """Show it, or show it again where its session has broken. Raises DBAPIError."""
        if self._session is not None:
            try:
                self._session.execute(STILL)
            except DBAPIError:
                self._drop()
            else:
                return
        self._session = self._engine.connect()
        self._session.execute(SHOW, {"space": SPACE, "key": key_of(instance_id)})

    def close(self) -> None:
        """Show it no more; of a session that ends the server may learn only a moment later."""
        if self._session is not None:
            with suppress(SQLAlchemyError):
                self._session.execute(HIDE)
        self._drop()

    def _drop(self) -> None:
        if self._session is not None:
            self._session.invalidate()
            self._session.close()
            self._session = None
