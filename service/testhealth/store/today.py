"""What was counted of tests today: read once, then moved on with the uploads that come.

What an upload holds of a test never changes. Whether its set waits, or was added to the days of
tests meanwhile, makes no difference to what both say together.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from cachetools import LRUCache
from sqlalchemy import BindParameter, Connection, bindparam, func, select

from service.database import bulk
from service.database.direct import Direct
from service.database.types import Id, Utc
from service.testhealth.detector import figures
from service.testhealth.reports.results import Outcome
from service.testhealth.store.parts import REPOSITORIES_MAX, TESTS_MAX, TakenIn, only
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.tallies import tallies, weighed
from service.testhealth.store.uploads_rows import attempts, daily, uploads

CARRIED_MAX = 500
"""Tests that are moved on together: each is looked for in the set of every upload that comes."""

_PASSED, _FAILED = Outcome.PASSED.value, Outcome.FAILED.value
_HERE: BindParameter[int] = bindparam("of_repository")


class Counts(NamedTuple):
    """Attempts of a test since a day began."""

    passed: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Today:
    """What was counted since a day of the tests that were asked for, and as of when."""

    since: int
    as_of: TakenIn
    counts: Mapping[int, Counts]


SELECT_WAITING = Direct(
    select(tallies.c.passed, tallies.c.counted_to, func.sum(tallies.c.weight))
    .where(
        tallies.c.repository_id == _HERE,
        tallies.c.day >= bindparam("of_day"),
        tallies.c.passed.is_not(None),
    )
    .group_by(tallies.c.passed, tallies.c.counted_to)
)
SELECT_DAYS = Direct(
    select(daily.c.no, func.sum(daily.c.passed), func.sum(daily.c.failed))
    .where(
        daily.c.repository_id == _HERE,
        bulk.among(daily.c.no, "of_numbers"),
        daily.c.day >= bindparam("of_day"),
    )
    .group_by(daily.c.no)
)
# An upload without stored attempts is a row without a test.
SELECT_COME = Direct(
    select(uploads.c.id, uploads.c.passed, attempts.c.no, attempts.c.outcome)
    .select_from(uploads.outerjoin(attempts, attempts.c.upload == uploads.c.id))
    .where(
        uploads.c.repository_id == _HERE,
        uploads.c.is_eligible.is_(True),
        uploads.c.revision > bindparam("of_newest", type_=Id),
        uploads.c.ran_at >= bindparam("of_beginning", type_=Utc),
    )
)


class CountsOfToday:
    """What was counted of the tests that were asked for. Used from several threads."""

    def __init__(self, sets: OutcomeSets) -> None:
        self._sets = sets
        self._kept: LRUCache[int, Today] = LRUCache(REPOSITORIES_MAX)
        self._lock = Lock()

    def of(
        self, session: Connection, repository_id: int, nos: Sequence[int], day: tuple[int, TakenIn]
    ) -> Mapping[int, Counts]:
        """Number of each of these tests, and perhaps of others, → its attempts since the day."""
        since, as_of = day
        with self._lock:
            kept = self._kept.get(repository_id)
        known = {} if kept is None else self._moved(session, repository_id, (kept, day), nos)
        missing = [no for no in nos if no not in known]
        if missing:
            read = self._read(session, repository_id, missing, since)
            known = {**(known if len(known) < TESTS_MAX else only(known, nos)), **read}
        # While an upload is being counted, its days are not to be told from its attempts.
        if as_of.is_whole:
            with self._lock:
                self._kept[repository_id] = Today(since, as_of, known)
        return known

    def _moved(
        self,
        session: Connection,
        repository_id: int,
        moving: tuple[Today, tuple[int, TakenIn]],
        nos: Sequence[int],
    ) -> Mapping[int, Counts]:
        """What is kept as of now; nothing if more has changed than that uploads came."""
        kept, (since, as_of) = moving
        before = kept.as_of
        if not (as_of.is_whole and kept.since == since and as_of.removal <= before.revision):
            return {}
        if as_of.revision < before.revision:
            return {}
        told = {
            "of_repository": repository_id,
            "of_newest": before.revision,
            "of_beginning": figures.beginning_of(since),
        }
        come = SELECT_COME.rows(session, told)
        if not come:
            return kept.counts
        known = kept.counts
        if len(known) > CARRIED_MAX:
            known = only(known, nos)
        passed = Counter(no for _, _, no, outcome in come if outcome == _PASSED)
        keys = Counter({upload: key for upload, key, *_ in come if key is not None}.values())
        weights = [(key, 0, many) for key, many in keys.items()]
        passed.update(weighed(session, self._sets, repository_id, weights, list(known)))
        failed = Counter(no for _, _, no, outcome in come if outcome == _FAILED)
        return {
            no: Counts(counts.passed + passed[no], counts.failed + failed[no])
            for no, counts in known.items()
        }

    def _read(
        self, session: Connection, repository_id: int, nos: Sequence[int], since: int
    ) -> Mapping[int, Counts]:
        told = {"of_repository": repository_id, "of_numbers": nos, "of_day": since}
        days = {no: Counts(*counts) for no, *counts in SELECT_DAYS.rows(session, told)}
        waiting = SELECT_WAITING.rows(session, told)
        at_once = weighed(session, self._sets, repository_id, waiting, nos)
        found = {}
        for no in nos:
            passed, failed = days.get(no, Counts())
            found[no] = Counts(passed + at_once[no], failed)
        return found
