"""The SQLite file itself: where it may lie, who may open it, and how.

See docs/design/transactions.md 4.
"""

import errno
import fcntl
import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import ConnectionPoolEntry

from service.errors import StartRefused

VERSION_MIN = (3, 35)
"""The first with RETURNING."""

BUSY_TIMEOUT_MS = 5000

NETWORK_FILE_SYSTEMS = frozenset(
    {
        "9p",
        "afs",
        "ceph",
        "cifs",
        "fuse.glusterfs",
        "fuse.sshfs",
        "glusterfs",
        "ncpfs",
        "nfs",
        "nfs4",
        "smb2",
        "smb3",
        "smbfs",
    }
)
"""File systems on which locks or write-ahead logs do not hold."""

PASSING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
"""Errors of the system after which the file may be opened later."""

MOUNTS = Path("/proc/self/mountinfo")

PRAGMAS: dict[str, str | int] = {
    "journal_mode": "wal",
    "synchronous": 2,
    "foreign_keys": 1,
    "busy_timeout": BUSY_TIMEOUT_MS,
    "trusted_schema": 0,
}
"""The values that every connection must answer when asked."""


class LockFile:
    """The right to be the process of a database: an exclusive lock on `<database>.lock`.

    The file names the holder's pid while held and is empty after a clean stop.
    """

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(f"{database.name}.lock")
        self._descriptor: int | None = None
        self.was_unclean = False

    def take(self) -> None:
        """Raises StartRefused naming the process that holds it."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise StartRefused(
                f"The database {self.path.with_suffix('')} is in use by process {holder}. "
                "Stop it first, or give this one another HEADGATE_DATABASE_URL."
            ) from None
        self.was_unclean = bool(os.read(descriptor, 32).strip())
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Say that the stop was clean, and let others in; releasing again changes nothing.

        On a disk that takes no writes any more the stop counts as unclean.
        """
        if self._descriptor is not None:
            with suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def prepare(path: Path) -> None:
    """Make folder and file if absent, for our user alone.

    Raises StartRefused for a SQLite too old, a network file system, or a file that cannot be
    written.
    """
    if sqlite3.sqlite_version_info < VERSION_MIN:
        raise StartRefused(f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or newer is needed.")
    refuse_network(path, MOUNTS.read_text("utf-8", "replace") if MOUNTS.exists() else "")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as failed:
        if failed.errno in PASSING:
            raise
        raise StartRefused(
            f"The database {path} cannot be opened for writing: {failed.strerror}. "
            "HEADGATE_DATABASE_URL names it."
        ) from failed


def refuse_network(path: Path, mounts: str) -> None:
    """Raises StartRefused when the path lies on a network file system.

    `mounts` is the system's list (proc_pid_mountinfo(5)), empty where there is none.
    """
    place = path.absolute().parent.resolve() / path.name
    deepest, kind = Path("/"), ""
    for line in mounts.splitlines():
        fields, _, source = line.partition(" - ")
        point = Path(fields.split(" ")[4].replace("\\040", " "))
        if place.is_relative_to(point) and len(point.parts) >= len(deepest.parts):
            deepest, kind = point, source.split(" ")[0]
    if kind in NETWORK_FILE_SYSTEMS:
        raise StartRefused(
            f"The database {path} lies on a network file system ({kind} at {deepest}), where "
            "SQLite can lose data. Use a local disk, or PostgreSQL by HEADGATE_DATABASE_URL."
        )


def engine_of(path: Path, *, read_only: bool = False) -> Engine:
    """Connections that begin and commit only when told; each proves its pragmas."""
    engine = create_engine(
        f"sqlite:///{path}",
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        connect_args={"check_same_thread": False, "timeout": BUSY_TIMEOUT_MS / 1000},
    )

    @event.listens_for(engine, "connect")
    def set_pragmas(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        wanted = PRAGMAS | ({"query_only": 1} if read_only else {})
        cursor = connection.cursor()
        cursor.execute("PRAGMA auto_vacuum=INCREMENTAL")
        for name, value in wanted.items():
            cursor.execute(f"PRAGMA {name}={value}")
            cursor.execute(f"PRAGMA {name}")
            found = cursor.fetchone()
            if found is None or found[0] != value:
                raise StartRefused(f"{path}: SQLite's {name} is {found} instead of {value}.")
        cursor.close()

    return engine


def refuse_damaged(engine: Engine, path: Path) -> None:
    """After an unclean stop: raises StartRefused when the file is damaged."""
    try:
        with engine.connect() as connection:
            found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
    except DatabaseError as failed:
        found = str(failed.orig)
    if found != "ok":
        raise StartRefused(f"The database {path} is damaged ({found}). Restore a backup.")


def driver_of(connection: Connection) -> sqlite3.Connection:
    """The driver's own connection."""
    driver = connection.connection.driver_connection
    if not isinstance(driver, sqlite3.Connection):
        raise TypeError(f"not a connection to SQLite: {driver!r}")
    return driver


class Watch:
    """A read-only connection that notices the commits of others, in this process or not.

    A look locks and unlocks the file, which takes microseconds: it happens on the event loop.
    """

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA query_only=1")
        self._seen = -1
        self._access_version = -1

    def access_version(self) -> int:
        """Return `deployment.access_version` as committed now."""
        (seen,) = self._connection.execute("PRAGMA data_version").fetchone()
        if seen != self._seen:
            row = self._connection.execute("SELECT access_version FROM deployment").fetchone()
            self._seen, self._access_version = seen, row[0] if row is not None else 0
        return self._access_version

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
