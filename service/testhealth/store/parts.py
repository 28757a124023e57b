"""What rates hold of each test besides what was counted today (FLAKY.md 7.2).

Whole days come from counts, and from sets that are not counted yet. Of the day that a window
cuts, and of what lies ahead of the present instant, single attempts and the sets of uploads are
read, and that is most of the work. But what an upload holds of a test never changes, few uploads
pass an edge between two questions, and few come late: so what was read is kept as long as the
same uploads lie in the parts, and before today.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple, TypeVar

from cachetools import LRUCache
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    bindparam,
    case,
    func,
    literal,
    select,
    union_all,
)

from service.database import bulk
from service.database.codec import Raw
from service.database.direct import Direct
from service.database.types import Id, Utc
from service.testhealth.reports.results import Outcome
from service.testhealth.store import tallies as stored_tallies
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.tables_evidence import UncountedRow
from service.testhealth.store.tables_tests import TestedRepositoryRow
from service.testhealth.store.tallies import tallies
from service.testhealth.store.uploads_rows import attempts, daily, uploads

T = TypeVar("T")

WEEK, DAY, AHEAD = "week", "day", "ahead"
"""Parts of days: the first of either window, and what lies ahead of the present instant."""

TALLIED = "tallied"
"""Whole days before today, as far as uploads of them are not in the days of tests yet."""

SIGNS = {WEEK: (1, 0), DAY: (0, 1), AHEAD: (-1, -1), TALLIED: (1, 0)}
"""Part → what it adds to the week, and to the last day."""

REPOSITORIES_MAX = 64
TESTS_MAX = 10_000
"""Tests of which something is kept, for each of so many repositories: some 2 MiB each."""

Told = dict[str, object]
"""Where the windows begin and end: what statements are told."""


class Held(NamedTuple):
    """Attempts of a test but for those of today, for either window."""

    week_passed: int
    week_failed: int
    day_passed: int
    day_failed: int


class Stamp(NamedTuple):
    """What was read stands as long as the days and the uploads in the parts are the same."""

    week_from: object
    day_from: object
    of_parts: Raw


class TakenIn(NamedTuple):
    """The newest revision of a repository's evidence, and that of the last removal.

    `is_whole`: all that has come was counted, of any repository.
    """

    revision: int
    removal: int
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Kept:
    """What was read of tests, and what had been taken in by then."""

    stamp: Stamp
    as_of: TakenIn
    known: Mapping[int, Held]


shared = TestedRepositoryRow.__table__

_HERE: BindParameter[int] = bindparam("of_repository")
_NUMBERS = "of_numbers"


def within(column: ColumnElement[object], part: str) -> ColumnElement[bool]:
    """Whether an instant lies in the part."""
    after = column > bindparam(f"{part}_after", type_=Utc)
    if part == AHEAD:
        return after
    return after & (column < bindparam(f"{part}_before", type_=Utc))


def _uploads_in(part: str) -> tuple[ColumnElement[bool], ...]:
    return (
        uploads.c.repository_id == _HERE,
        uploads.c.is_eligible.is_(True),
        within(uploads.c.ran_at, part),
    )


# As time goes on uploads only leave a part, those that come have a higher revision, and removals
# are numbered: so equal answers mean the same uploads. Of whole days before today only an upload
# that comes late changes anything, or one that was not counted to its end: such are rare, so that
# it does not matter of which repository they are.
SELECT_STAMP = Direct(
    select(
        shared.c.revision,
        select(func.min(UncountedRow.__table__.c.upload)).scalar_subquery(),
        # Counted, so that no index by time leads through all uploads of the repository.
        select(func.count(case((uploads.c.ran_at < bindparam("day_before", type_=Utc), 1))))
        .where(
            uploads.c.repository_id == _HERE,
            uploads.c.is_eligible.is_(True),
            uploads.c.revision > bindparam("of_newest", type_=Id),
        )
        .scalar_subquery(),
        shared.c.removal,
        *(
            select(figure).where(*_uploads_in(part)).scalar_subquery()
            for part in (WEEK, DAY, AHEAD)
            for figure in (func.count(uploads.c.id), func.max(uploads.c.revision))
        ),
    ).where(shared.c.repository_id == _HERE)
)
SELECT_DAYS = Direct(
    select(daily.c.no, func.sum(daily.c.passed), func.sum(daily.c.failed))
    .where(
        daily.c.repository_id == _HERE,
        bulk.among(daily.c.no, _NUMBERS),
        daily.c.day >= bindparam("week_from"),
        daily.c.day < bindparam("day_from"),
    )
    .group_by(daily.c.no)
)
SELECT_ATTEMPTS = Direct(
    union_all(
        *(
            select(literal(part), attempts.c.no, attempts.c.outcome, func.count())
            .where(
                attempts.c.repository_id == _HERE,
                bulk.among(attempts.c.no, _NUMBERS),
                attempts.c.is_eligible.is_(True),
                within(attempts.c.ran_at, part),
            )
            .group_by(attempts.c.no, attempts.c.outcome)
            for part in (WEEK, DAY, AHEAD)
        )
    )
)
SELECT_SETS = Direct(
    union_all(
        *(
            select(literal(part), uploads.c.passed, literal(0), func.count())
            .where(*_uploads_in(part), uploads.c.passed.is_not(None))
            .group_by(uploads.c.passed)
            for part in (WEEK, DAY, AHEAD)
        ),
        select(literal(TALLIED), tallies.c.passed, tallies.c.counted_to, func.sum(tallies.c.weight))
        .where(
            tallies.c.repository_id == _HERE,
            tallies.c.passed.is_not(None),
            tallies.c.day >= bindparam("week_from"),
            tallies.c.day < bindparam("day_from"),
        )
        .group_by(tallies.c.passed, tallies.c.counted_to),
    )
)


class CutDays:
    """What was read of the tests that were asked for. Used from several threads."""

    def __init__(self, sets: OutcomeSets) -> None:
        self._sets = sets
        self._kept: LRUCache[int, Kept] = LRUCache(REPOSITORIES_MAX)
        self._lock = Lock()

    def held(
        self, session: Connection, repository_id: int, nos: Sequence[int], told: Told
    ) -> tuple[TakenIn, Mapping[int, Held]]:
        """As of when, and number of each of these tests, perhaps of others, → what is held."""
        with self._lock:
            kept = self._kept.get(repository_id)
        now, known = _stamped(session, told, kept)
        missing = [no for no in nos if no not in known]
        if missing:
            read = self._read(session, repository_id, missing, told)
            known = {**known, **read} if len(known) < TESTS_MAX else read | only(known, nos)
        # While something is being counted, what was read before it stands as of then.
        if missing or now.as_of.is_whole:
            with self._lock:
                self._kept[repository_id] = replace(now, known=known)
        return now.as_of, known

    def _read(
        self, session: Connection, repository_id: int, nos: Sequence[int], told: Told
    ) -> dict[int, Held]:
        figures: dict[tuple[int, Outcome], Counter[int]] = defaultdict(Counter)
        numbered = told | {_NUMBERS: nos}
        for part, no, word, many in SELECT_ATTEMPTS.rows(session, numbered):
            for window, sign in enumerate(SIGNS[part]):
                figures[window, Outcome(word)][no] += sign * many
        for no, passed, failed in SELECT_DAYS.rows(session, numbered):
            figures[0, Outcome.PASSED][no] += passed
            figures[0, Outcome.FAILED][no] += failed
        self._add_sets(session, repository_id, (nos, told), figures)
        columns = [
            figures[window, outcome]
            for window in (0, 1)
            for outcome in (Outcome.PASSED, Outcome.FAILED)
        ]
        return {no: Held(*(column[no] for column in columns)) for no in nos}

    def _add_sets(
        self,
        session: Connection,
        repository_id: int,
        asked: tuple[Sequence[int], Told],
        figures: Mapping[tuple[int, Outcome], Counter[int]],
    ) -> None:
        nos, told = asked
        rows = SELECT_SETS.rows(session, told)
        for window in (0, 1):
            weights = [
                (key, counted_to, SIGNS[part][window] * many)
                for part, key, counted_to, many in rows
                if SIGNS[part][window]
            ]
            passed = stored_tallies.weighed(session, self._sets, repository_id, weights, nos)
            figures[window, Outcome.PASSED].update(passed)


def _stamped(session: Connection, told: Told, kept: Kept | None) -> tuple[Kept, Mapping[int, Held]]:
    """As of when is read, and what is kept that still holds."""
    newest = 0 if kept is None else kept.as_of.revision
    rows = SELECT_STAMP.rows(session, told | {"of_newest": newest})
    revision, uncounted, late, removal, *of_parts = rows[0] if rows else (0, None, 0, 0)
    stamp = Stamp(told["week_from"], told["day_from"], (removal, *of_parts))
    holds = kept is not None and kept.as_of.is_whole and newest <= revision and not late
    known = kept.known if kept is not None and holds and kept.stamp == stamp else {}
    return Kept(stamp, TakenIn(revision, removal, uncounted is None), {}), known


def only(known: Mapping[int, T], nos: Sequence[int]) -> dict[int, T]:
    """What is known of these tests alone."""
    return {no: known[no] for no in nos if no in known}
