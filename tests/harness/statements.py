"""SQL that a process of tests compiles once, instead of once for each engine.

Nearly every test opens databases of its own, and each of their engines begins with an empty
cache: compiling was a sixth of the time of a story. What is executed stays the same. Processes
that are forked have what was compiled before.
"""

from collections.abc import Iterator, MutableMapping
from typing import Any

from sqlalchemy import Compiled, Engine
from sqlalchemy.util import LRUCache

STATEMENTS_MAX = 5000

Key = tuple[Any, ...]


class Shared(MutableMapping[Key, Compiled]):
    """Compiled statements, found by the kind of the database instead of by the engine's dialect.

    All engines of one kind in a run speak to one version, with the same options.
    """

    def __init__(self) -> None:
        self._kept: LRUCache[Key, Compiled] = LRUCache(STATEMENTS_MAX)

    def __getitem__(self, key: Key) -> Compiled:
        return self._kept[_of_kind(key)]

    def __setitem__(self, key: Key, compiled: Compiled) -> None:
        self._kept[_of_kind(key)] = compiled

    def __delitem__(self, key: Key) -> None:
        del self._kept[_of_kind(key)]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


def _of_kind(key: Key) -> Key:
    dialect, *rest = key
    return (type(dialect), *rest)


def pytest_configure() -> None:
    """Let every engine of this process use one cache of compiled statements.

    Not by an event of SQLAlchemy: with any of them each statement looks for listeners.
    """
    shared = Shared()
    begin = Engine.__init__

    def begin_sharing(engine: Engine, *args: Any, **more: Any) -> None:
        begin(engine, *args, **more)
        engine.update_execution_options(compiled_cache=shared)

    Engine.__init__ = begin_sharing  # type: ignore[assignment,method-assign]  # as it is, shared
