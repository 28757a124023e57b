"""Brings a database's schema to the present revision, under a lock, or refuses to start.

Also the copies of a SQLite file: one before each upgrade, and backups on request.
"""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, inspect, text

from service.errors import StartRefused

REVISIONS: tuple[str, ...] = tuple(f"{number:04}" for number in range(1, 28))
"""Every revision, in order; the last is what this program works on."""

HEAD = REVISIONS[-1]

RUNS_FROM = "0008"
"""The oldest schema whose program also runs on this one; each upgrade stores it.

So an older program can tell whether it may run (docs/design/transactions.md 10).
"""

MIGRATIONS = Path(__file__).parent / "migrations"

PG_LOCK = 0x48454144
"""Key of the advisory lock under which one process migrates ("HEAD")."""

COPIES_KEPT = 3


def revision_of(connection: Connection) -> str | None:
    """Return the stored revision; None for an empty database.

    Raises StartRefused when it is a newer one, on which this program does not run.
    """
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if found is None:
        return None
    if found not in REVISIONS and _runs_from(connection) not in REVISIONS:
        raise StartRefused(
            f"The database has schema {found}; this version of Headgate knows schemas up to "
            f"{HEAD} and does not run on the newer one. Start the newer version again, or restore "
            "a backup."
        )
    return str(found)


def _runs_from(connection: Connection) -> str | None:
    """Return the oldest schema whose program runs on the stored one; None: it says nothing."""
    if not inspect(connection).has_table("schema_compatibility"):
        return None
    return connection.execute(text("SELECT runs_from FROM schema_compatibility")).scalar()


def is_pending(connection: Connection) -> bool:
    """Return whether the schema is older than this program's.

    Raises StartRefused when it is newer and this program does not run on it.
    """
    return is_older(revision_of(connection))


def is_older(revision: str | None) -> bool:
    """Return whether a revision that this program runs on is older than its own."""
    return revision is None or revision in REVISIONS[:-1]


def upgrade_sqlite(engine: Engine, path: Path) -> None:
    """Bring a SQLite file to the head in one transaction; a copy is made before.

    The caller holds the lock file. Raises StartRefused for a newer schema on which this program
    does not run, or where there is no room for the copy.
    """
    with engine.connect() as connection:
        before = revision_of(connection)
        if not is_older(before):
            return
        if before is not None:
            keep_copy(connection, path, before)
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        _run(connection)
        connection.exec_driver_sql("COMMIT")


def upgrade_postgresql(engine: Engine) -> None:
    """Bring a PostgreSQL database to the head in one transaction, one process at a time."""
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": PG_LOCK})
        if is_pending(connection):
            _run(connection)


def _run(connection: Connection) -> None:
    upgrade_to(connection, HEAD)


def upgrade_to(connection: Connection, revision: str) -> None:
    """Run the revisions up to this one, and store which programs run on the program's schema."""
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    command.upgrade(config, revision)
    # Like `alembic_version` it is not part of any revision: a program reads it before them.
    connection.execute(
        text("CREATE TABLE IF NOT EXISTS schema_compatibility (runs_from VARCHAR(32) NOT NULL)")
    )
    connection.execute(text("DELETE FROM schema_compatibility"))
    connection.execute(
        text("INSERT INTO schema_compatibility (runs_from) VALUES (:oldest)"),
        {"oldest": RUNS_FROM},
    )


def keep_copy(connection: Connection, path: Path, revision: str) -> None:
    """Copy a SQLite database to `<database>.before-<revision>`; the newest three stay.

    Raises StartRefused when there is no room.
    """
    copy = path.with_name(f"{path.name}.before-{revision}")
    try:
        copy.unlink(missing_ok=True)
        _copy(connection, copy)
    except (OSError, sqlite3.Error) as failed:
        with suppress(OSError):
            copy.unlink()
        raise StartRefused(
            f"The database could not be copied to {copy} before its upgrade: {failed}. "
            "Make room and start again."
        ) from failed
    copies = sorted(
        path.parent.glob(f"{path.name}.before-*"), key=lambda each: each.stat().st_mtime
    )
    for old in copies[:-COPIES_KEPT]:
        old.unlink()


def back_up(connection: Connection, copy: Path) -> None:
    """Copy the database of a SQLite connection to a new file while it is in use.

    Raises FileExistsError, and sqlite3.Error when the copy fails or is found damaged.
    """
    if copy.exists():
        raise FileExistsError(copy)
    _copy(connection, copy)
    with sqlite3.connect(copy) as check:
        (found,) = check.execute("PRAGMA integrity_check").fetchone()
    check.close()
    if found != "ok":
        raise sqlite3.DatabaseError(f"{copy}: {found}")


def _copy(connection: Connection, copy: Path) -> None:
    # Made empty first, so that no other user can ever read it.
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    driver = connection.connection.driver_connection
    if not isinstance(driver, sqlite3.Connection):
        raise TypeError("only a SQLite database is copied like this")
    driver.execute("VACUUM INTO ?", (str(copy),))
