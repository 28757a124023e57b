"""Values in memory that repeat what the database holds, kept by the capabilities that read it."""

from collections.abc import Callable
from typing import TypeVar, cast

T = TypeVar("T")


class Caches:
    """One cache of each kind, made when it is first needed. Used from any thread."""

    def __init__(self) -> None:
        self._caches: dict[type, object] = {}

    def of(self, kind: type[T], make: Callable[[], T] | None = None) -> T:
        """Return the cache of this class; `make` makes it if the class needs arguments."""
        cache = self._caches.get(kind)
        if cache is None:
            cache = self._caches.setdefault(kind, (make or kind)())
        return cast(T, cache)

    def clear(self) -> None:
        """Drop every cache."""
        self._caches.clear()
