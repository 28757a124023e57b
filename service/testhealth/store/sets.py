"""Sets of passed and skipped tests: stored once each, and kept decoded while they are used."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from cachetools import LRUCache
from sqlalchemy import Connection, bindparam, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.testhealth.store import bitmaps
from service.testhealth.store.bitmaps import PackedSet
from service.testhealth.store.cases import Place, keys_of
from service.testhealth.store.tables_evidence import OutcomeSetRow

BYTES_MAX = 64 * 1024 * 1024
"""Memory of decoded sets: 5,000 sets of a repository with 100,000 tests."""

READ_AT_ONCE = 100
"""Sets that one statement reads."""

MANY = 500
"""Above so many tests, comparing whole sets is quicker than looking for each test."""

sets = OutcomeSetRow.__table__

_set = upsert(sets)
PUT_SET = _set.on_conflict_do_update(
    index_elements=["repository_id", "hash"],
    set_={"used_at": _set.excluded.used_at},
    where=sets.c.used_at < _set.excluded.used_at,
)
SELECT_SETS = select(sets.c.hash, sets.c.bits).where(
    sets.c.repository_id == bindparam("of_repository"),
    sets.c.hash.in_(bindparam("of_keys", expanding=True)),
)


def put_set(session: Connection, place: Place, given: PackedSet | None, at: datetime) -> str | None:
    """Store a set for an upload that ran `at`; return its key, None for the empty set."""
    if given is None:
        return None
    row = {"hash": given.key, "bits": given.compressed, "used_at": at}
    session.execute(PUT_SET, row | keys_of(place))
    return given.key


class OutcomeSets:
    """The sets used last, decoded. Used from several threads; a set never changes."""

    def __init__(self) -> None:
        self._kept: LRUCache[tuple[int, str], bytes] = LRUCache(BYTES_MAX, getsizeof=len)
        self._lock = Lock()

    def keep(self, repository_id: int, given: PackedSet) -> None:
        """Keep a set that was made here, for those who read it next."""
        self._keep(repository_id, given.key, given.bits)

    def bits(
        self, session: Connection, repository_id: int, keys: Iterable[str]
    ) -> Iterator[tuple[str, bytes]]:
        """Return each of these sets that exists; few are decoded at a time."""
        asked = sorted(set(keys))
        for first in range(0, len(asked), READ_AT_ONCE):
            yield from self._read(session, repository_id, asked[first : first + READ_AT_ONCE])

    def members(
        self, session: Connection, repository_id: int, keys: Iterable[str], nos: Sequence[int]
    ) -> dict[str, tuple[int, ...]]:
        """Return the key of each set → those of the tests that are in it."""
        wanted = bitmaps.bits_of(nos) if len(nos) > MANY else None
        return {
            key: tuple(no for no in nos if bitmaps.has(bits, no))
            if wanted is None
            else tuple(bitmaps.common(bits, wanted))
            for key, bits in self.bits(session, repository_id, keys)
        }

    def _read(
        self, session: Connection, repository_id: int, keys: Sequence[str]
    ) -> Iterator[tuple[str, bytes]]:
        with self._lock:
            cached = [(key, self._kept.get((repository_id, key))) for key in keys]
        yield from ((key, bits) for key, bits in cached if bits is not None)
        missing = [key for key, bits in cached if bits is None]
        if missing:
            asked = {"of_repository": repository_id, "of_keys": missing}
            for key, compressed in session.execute(SELECT_SETS, asked).all():
                bits = bitmaps.expanded(compressed)
                self._keep(repository_id, key, bits)
                yield key, bits

    def _keep(self, repository_id: int, key: str, bits: bytes) -> None:
        if len(bits) <= BYTES_MAX:
            with self._lock:
                self._kept[repository_id, key] = bits


@dataclass(frozen=True, slots=True)
class StoredSets:
    """The sets of one repository within a transaction."""

    session: Connection
    sets: OutcomeSets
    repository_id: int

    def keep(self, given: PackedSet) -> None:
        """Keep a set that was made here, for those who read it next."""
        self.sets.keep(self.repository_id, given)

    def members(self, keys: Iterable[str], nos: Sequence[int]) -> Mapping[str, Sequence[int]]:
        """Return the key of each set → those of the tests that are in it."""
        return self.sets.members(self.session, self.repository_id, keys, nos) if nos else {}

    def numbers(self, key: str) -> Iterable[int]:
        """Return all tests in a set, in order; a set that is gone is empty."""
        for _, bits in self.sets.bits(self.session, self.repository_id, [key]):
            return bitmaps.members(bits)
        return ()

    def size(self, key: str) -> int:
        """Return how many tests are in a set."""
        sets_of_key = self.sets.bits(self.session, self.repository_id, [key])
        return sum(bitmaps.size(bits) for _, bits in sets_of_key)
