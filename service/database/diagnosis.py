"""Say which trouble makes the database unavailable, by the driver's error."""

import sqlite3
from collections.abc import Iterator

from service.errors import DatabaseUnavailable
from service.troubles import TroubleName

_SQLITE = {
    sqlite3.SQLITE_IOERR: TroubleName.DATABASE_DISK_FAILS,
    sqlite3.SQLITE_FULL: TroubleName.DATABASE_FULL,
    sqlite3.SQLITE_BUSY: TroubleName.DATABASE_LOCKED,
    sqlite3.SQLITE_LOCKED: TroubleName.DATABASE_LOCKED,
    sqlite3.SQLITE_READONLY: TroubleName.DATABASE_READ_ONLY,
}
"""Primary result codes; the others say that the file cannot be used at all."""

_POSTGRESQL = {
    "58030": TroubleName.DATABASE_DISK_FAILS,
    "53100": TroubleName.DATABASE_FULL,
    "25006": TroubleName.DATABASE_READ_ONLY,
    "55P03": TroubleName.DATABASE_LOCKED,
    "57014": TroubleName.DATABASE_SILENT,
}
"""Codes of the server; the others of `postgresql.UNAVAILABLE` say that it cannot be used at all."""

_CONTENTION = frozenset({"40001", "40P01"})
"""Serialization failure and deadlock: transactions were in each other's way, which passes."""


def trouble_of(refused: DatabaseUnavailable) -> TroubleName | None:
    """Return the trouble that made the database unavailable; None if it is none that lasts."""
    name: TroubleName | None = TroubleName.DATABASE_UNREACHABLE
    for error in _causes(refused):
        origin = getattr(error, "orig", None) or error
        code = getattr(origin, "sqlite_errorcode", None)
        state = getattr(origin, "sqlstate", None)
        if code is not None:
            name = _SQLITE.get(code & 0xFF, TroubleName.DATABASE_UNREACHABLE)
        elif state is not None:
            name = None if state in _CONTENTION else _POSTGRESQL.get(state, name)
        elif "timeout" in f"{type(origin).__name__} {origin}".lower():
            name = TroubleName.DATABASE_SILENT
    return name


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause = error.__cause__
    while cause is not None:
        yield cause
        cause = cause.__cause__
