"""Look at a database without changing it: which one it is, its schema, and what puts it at risk."""

import asyncio
import sqlite3
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, Connection
from sqlalchemy.exc import DBAPIError

from service.database import migrate, postgresql, sqlite_file
from service.database.database import address
from service.errors import StartRefused

SAFE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
"""Settings of a PostgreSQL server without which it can lose what it has confirmed."""

_STRONGER = frozenset({"remote_write", "remote_apply"})
"""Values of `synchronous_commit` that wait for a standby as well."""


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """A database that can be opened; `revision` None: it has no schema yet.

    `risks` are settings of the server, as `fsync = off`.
    """

    kind: str
    revision: str | None
    is_behind: bool
    risks: tuple[str, ...] = ()


async def inspect(url: str) -> DatabaseState:
    """Return how a database is. Raises StartRefused where `serve` would refuse it."""
    where = address(url)
    look = _of_sqlite if where.get_backend_name() == "sqlite" else _of_postgresql
    return await asyncio.to_thread(look, where)


def _of_sqlite(where: URL) -> DatabaseState:
    path = Path(where.database or "")
    mounts = sqlite_file.MOUNTS
    sqlite_file.refuse_network(path, mounts.read_text("utf-8") if mounts.exists() else "")
    kind = f"SQLite {sqlite3.sqlite_version}"
    if not path.exists():
        return DatabaseState(kind, None, is_behind=True)
    engine = sqlite_file.engine_of(path)
    try:
        with engine.connect() as connection:
            revision = migrate.revision_of(connection)
        sqlite_file.refuse_damaged(engine, path)
    except (sqlite3.Error, DBAPIError) as failed:
        raise _refused(f"The database {path}", failed) from failed
    return DatabaseState(kind, revision, migrate.is_older(revision))


def _of_postgresql(where: URL) -> DatabaseState:
    with ExitStack() as after:
        engine = postgresql.engine_of(where, 1)
        after.callback(engine.dispose)
        try:
            with engine.connect() as connection:
                version = connection.dialect.server_version_info or ()
                revision = migrate.revision_of(connection)
                risks = _risks(connection)
        except DBAPIError as failed:
            raise _refused("The database of HEADGATE_DATABASE_URL", failed) from failed
    number = ".".join(map(str, version))
    if version < (postgresql.VERSION_MIN,):
        raise StartRefused(
            f"PostgreSQL {number} is too old: {postgresql.VERSION_MIN} or newer is needed."
        )
    return DatabaseState(f"PostgreSQL {number}", revision, migrate.is_older(revision), risks)


def _risks(connection: Connection) -> tuple[str, ...]:
    found = {name: connection.exec_driver_sql(f"SHOW {name}").scalar() for name in SAFE}
    return tuple(
        f"{name} = {value}"
        for name, value in found.items()
        if value != SAFE[name] and value not in _STRONGER
    )


def _refused(what: str, failed: Exception) -> StartRefused:
    words = failed.orig if isinstance(failed, DBAPIError) else failed
    return StartRefused(f"{what} cannot be opened: {str(words).strip()}")
