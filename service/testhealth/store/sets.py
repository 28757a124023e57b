"""Sets of passing tests, decoded once: many uploads of a green repository share one."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from threading import Lock

from cachetools import LRUCache
from sqlalchemy import Connection, bindparam, select

from service.testhealth.store import uploads_rows
from service.testhealth.store.uploads_rows import sets

BYTES_MAX = 64 * 1024 * 1024
"""What decoded sets may take (FLAKY.md 4)."""

LOOKED_FOR = 16
"""Tests of a set that are gone through in the time in which one is looked for."""

SELECT_SETS = select(sets.c.hash, sets.c.nos).where(
    sets.c.repository_id == bindparam("of_repository"),
    sets.c.hash.in_(bindparam("of_keys", expanding=True)),
)


class OutcomeSets:
    """The sets used last. Used from several threads; a set never changes under its key."""

    def __init__(self) -> None:
        self._kept: LRUCache[tuple[int, str], array[int]] = LRUCache(
            BYTES_MAX, getsizeof=lambda numbers: numbers.itemsize * len(numbers)
        )
        self._lock = Lock()

    def keep(self, repository_id: int, key: str, nos: "array[int]") -> None:
        """Have a set at hand whose members are known already."""
        if nos.itemsize * len(nos) <= BYTES_MAX:
            with self._lock:
                self._kept[repository_id, key] = nos

    def members(
        self, session: Connection, repository_id: int, keys: Iterable[str], nos: Sequence[int]
    ) -> dict[str, tuple[int, ...]]:
        """Key of each set → those of the tests that are in it."""
        wanted, found = frozenset(nos), {}
        for key, numbers in self._sets(session, repository_id, set(keys)).items():
            # To look for each of a few is quicker than to go through all, and the other way round.
            if len(wanted) * LOOKED_FOR < len(numbers):
                found[key] = tuple(no for no in nos if _holds(numbers, no))
            else:
                found[key] = tuple(wanted.intersection(numbers))
        return found

    def numbers(self, session: Connection, repository_id: int, key: str) -> Sequence[int]:
        """All tests of one set, sorted; none if there is no such set."""
        return self._sets(session, repository_id, {key}).get(key, ())

    def _sets(
        self, session: Connection, repository_id: int, keys: set[str]
    ) -> "dict[str, array[int]]":
        found: dict[str, array[int]] = {}
        with self._lock:
            for key in keys:
                numbers = self._kept.get((repository_id, key))
                if numbers is not None:
                    found[key] = numbers
        missing = sorted(keys - found.keys())
        if missing:
            told = {"of_repository": repository_id, "of_keys": missing}
            for row in session.execute(SELECT_SETS, told):
                found[row.hash] = uploads_rows.numbers_in(row.nos)
            for key in missing:
                if key in found:
                    self.keep(repository_id, key, found[key])
        return found


def _holds(numbers: "array[int]", no: int) -> bool:
    place = bisect_left(numbers, no)
    return place < len(numbers) and numbers[place] == no
