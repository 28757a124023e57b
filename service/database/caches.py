"""Values in memory that repeat what the database holds, kept by the capabilities that read it."""

from collections.abc import Callable
from typing import TypeVar, cast

T = TypeVar("T")


class Caches:
    """One cache of each kind, made when it is first needed. Used from any thread."""

    def __init__(self) -> None:
        self._caches: dict[Callable[[], object], object] = {}

    def of(self, kind: Callable[[], T]) -> T:
        """Return the cache of this kind, a class or another function that makes one."""
        cache = self._caches.get(kind)
        if cache is None:
            cache = self._caches.setdefault(kind, kind())
        return cast(T, cache)

    def clear(self) -> None:
        """Drop every cache."""
        self._caches.clear()
