"""The databases that a benchmark runs over: each kind there is, and fresh ones of it."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.harness import needs
from tests.harness.databases import DURABLE, OPTIONS, Server

Fresh = Callable[[], AbstractContextManager[str]]
"""Makes an empty database, and gives its address until the block ends."""


@contextmanager
def kinds() -> Iterator[dict[str, Fresh]]:
    """Name of each kind → how to get one: SQLite, and PostgreSQL where there is a server."""
    with server_of(OPTIONS) as server:
        yield made_by(server)


@contextmanager
def server_of(options: str) -> Iterator[Server | None]:
    """A PostgreSQL server with these options, None where there are no programs of it."""
    if needs.lack_of_postgres() is not None:
        yield None
        return
    folder = Path(tempfile.gettempdir()) / f"headgate-postgres-{os.getpid()}-bench"
    server = Server(folder, options)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def durable() -> AbstractContextManager[Server | None]:
    """A server that confirms only what a disk has; SQLite does so in any case."""
    return server_of(DURABLE)


def made_by(server: Server | None) -> dict[str, Fresh]:
    """Name of each kind → how to get one."""
    made: dict[str, Fresh] = {"sqlite": sqlite_file}
    return made if server is None else made | {"postgresql": server.database}


@contextmanager
def sqlite_file() -> Iterator[str]:
    """The address of a SQLite file in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/bench.db"


def addresses() -> Iterator[str]:
    """A fresh database of each kind, one after the other."""
    with kinds() as found:
        for fresh in found.values():
            with fresh() as url:
                yield url
