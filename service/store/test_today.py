"""What passed in uploads of today that are not in the days of tests yet.

Every upload adds a row and its set never changes: so what was summed is kept, and a question
after an upload looks for its tests in that upload's set alone.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from cachetools import LRUCache
from sqlalchemy import Connection, bindparam, select

from service.store.codec import Raw
from service.store.direct import Direct
from service.store.tallies import tallies, weighed
from service.store.test_parts import REPOSITORIES_MAX, TESTS_MAX
from service.store.test_sets import OutcomeSets

SELECT_ROWS = Direct(
    select(tallies.c.id, tallies.c.passed, tallies.c.counted_to, tallies.c.weight).where(
        tallies.c.repository_id == bindparam("of_repository"),
        tallies.c.day >= bindparam("of_day"),
        tallies.c.passed.is_not(None),
    )
)


@dataclass(frozen=True, slots=True)
class Summed:
    """Rows since a day, and what they say of the tests that were asked for."""

    since: int
    rows: frozenset[Raw]
    passed: Mapping[int, int]


class TodaysPasses:
    """What was summed of the tests that were asked for. Used from several threads."""

    def __init__(self, sets: OutcomeSets) -> None:
        self._sets = sets
        self._kept: LRUCache[int, Summed] = LRUCache(REPOSITORIES_MAX)
        self._lock = Lock()

    def passed(
        self, session: Connection, repository_id: int, nos: Sequence[int], since: int
    ) -> Mapping[int, int]:
        """Number of each of these tests, and perhaps of others, → how often it passed at once."""
        told = {"of_repository": repository_id, "of_day": since}
        rows = frozenset(SELECT_ROWS.rows(session, told))
        with self._lock:
            kept = self._kept.get(repository_id)
        known: dict[int, int] = {}
        if kept is not None and kept.since == since and kept.rows <= rows:
            if kept.rows == rows and kept.passed.keys() >= set(nos):
                return kept.passed
            known = dict(kept.passed) if len(kept.passed) < TESTS_MAX else {}
            fresh = self._weigh(session, repository_id, rows - kept.rows, list(known))
            for no, many in fresh.items():
                known[no] += many
        missing = [no for no in nos if no not in known]
        found = self._weigh(session, repository_id, rows, missing)
        known.update((no, found[no]) for no in missing)
        with self._lock:
            self._kept[repository_id] = Summed(since, rows, known)
        return known

    def _weigh(
        self, session: Connection, repository_id: int, rows: frozenset[Raw], nos: Sequence[int]
    ) -> Counter[int]:
        weights = [row[1:] for row in rows]
        return weighed(session, self._sets, repository_id, weights, nos) if nos else Counter()
