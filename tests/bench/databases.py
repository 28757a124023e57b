"""The databases that a benchmark runs over: each kind there is, and fresh ones of it."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.harness import needs
from tests.harness.databases import Server

Fresh = Callable[[], AbstractContextManager[str]]
"""Makes an empty database, and gives its address until the block ends."""


@contextmanager
def kinds() -> Iterator[dict[str, Fresh]]:
    """Name of each kind → how to get one: SQLite, and PostgreSQL where there is a server."""
    if needs.lack_of_postgres() is not None:
        yield {"sqlite": sqlite_file}
        return
    server = Server(Path(tempfile.gettempdir()) / f"headgate-postgres-{os.getpid()}-bench")
    try:
        server.start()
        yield {"sqlite": sqlite_file, "postgresql": server.database}
    finally:
        server.stop()


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
