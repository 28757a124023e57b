"""Tests that failed over a span: how often, in which order, and in which ways.

Counted days have their failed attempts packed by test, uploads of the other days have the number
of a test for each failed attempt. Adding both into a list that is indexed by test number takes
less than half the time that grouping rows takes the database.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import neg

from sqlalchemy import BindParameter, Connection, and_, bindparam, func, select

from service.database import bulk
from service.database.types import Utc
from service.testhealth.reports.results import Outcome
from service.testhealth.store import bitmaps, days
from service.testhealth.store.attempts import attempts, groups
from service.testhealth.store.days import Span
from service.testhealth.store.tables_evidence import FailureDailyRow
from service.testhealth.store.uploads import uploads

SHOWN_MAX = 5
"""Ways to fail that are shown of a test."""


@dataclass(frozen=True, slots=True)
class CommonFailure:
    """One way to fail: its headline, how many attempts failed so, and when the last one did.

    `stack` is that of one of these attempts, empty if reports had none.
    """

    headline: str
    count: int
    last_at: datetime
    stack: str


@dataclass(frozen=True, slots=True)
class FailingTests:
    """The tests that failed in a span, those first that failed most often, then by number.

    `nos` are their numbers in order, `counts` the failed attempts of each.
    """

    nos: tuple[int, ...]
    counts: tuple[int, ...]

    def count(self, _session: Connection) -> int:
        """Return how many tests failed."""
        return len(self.nos)

    def top(self, _session: Connection, limit: int) -> list[int]:
        """Return the first numbers in the order of the list."""
        placed = zip(map(neg, self.counts), self.nos, strict=True)
        return [no for _, no in heapq.nsmallest(limit, placed)]

    def among(self, _session: Connection, nos: Sequence[int]) -> set[int]:
        """Return those of these numbers that are in the list."""
        return {no for no in nos if self.after(_session, no - 1, 1) == [no]}

    def after(self, _session: Connection, no: int, limit: int) -> list[int]:
        """Return the lowest numbers above this one, the lowest first."""
        first = bisect_right(self.nos, no)
        return list(self.nos[first : first + limit])

    def before(self, _session: Connection, no: int, limit: int) -> list[int]:
        """Return the highest numbers below this one, the lowest first."""
        end = bisect_left(self.nos, no)
        return list(self.nos[max(0, end - limit) : end])


failure_daily = FailureDailyRow.__table__

_HERE: BindParameter[int] = bindparam("of_repository")
_SINCE: BindParameter[datetime] = bindparam("since", type_=Utc)
_UNTIL: BindParameter[datetime] = bindparam("until", type_=Utc)

SELECT_FAILED = select(uploads.c.failed).where(
    uploads.c.repository_id == _HERE,
    uploads.c.is_eligible.is_(True),
    uploads.c.ran_at >= _SINCE,
    uploads.c.ran_at < _UNTIL,
)
SELECT_DAILY = select(
    failure_daily.c.no, failure_daily.c.key, failure_daily.c.failed, failure_daily.c.last_at
).where(
    failure_daily.c.repository_id == _HERE,
    bulk.among(failure_daily.c.day, "of_days"),
    bulk.among(failure_daily.c.no, "of_numbers"),
)
SELECT_ATTEMPTS = (
    select(attempts.c.no, attempts.c.failure, func.count(), func.max(attempts.c.ran_at, type_=Utc))
    .where(
        attempts.c.repository_id == _HERE,
        bulk.among(attempts.c.no, "of_numbers"),
        attempts.c.is_eligible.is_(True),
        attempts.c.outcome == Outcome.FAILED.value,
        attempts.c.failure.is_not(None),
        attempts.c.ran_at >= _SINCE,
        attempts.c.ran_at < _UNTIL,
    )
    .group_by(attempts.c.no, attempts.c.failure)
)
_keys = bulk.placed()
SELECT_HEADLINES = select(_keys.c.value, groups.c.headline, groups.c.sample).select_from(
    _keys.outerjoin(groups, and_(groups.c.repository_id == _HERE, groups.c.key == _keys.c.value))
)


def counted(session: Connection, repository_id: int, span: Span, last_no: int) -> FailingTests:
    """Count the failed attempts of a span; `last_no` is the highest number of a test."""
    counts = [0] * (last_no + 1)
    of_days, gaps = days.failed(session, repository_id, span)
    for packed in of_days:
        for no, count in bitmaps.counts_in(packed):
            counts[no] += count
    for gap in gaps:
        asked = {"of_repository": repository_id, "since": gap.since, "until": gap.until}
        for (packed,) in session.execute(SELECT_FAILED, asked):
            for no in bitmaps.numbers_in(packed):
                counts[no] += 1
    nos = tuple(no for no, count in enumerate(counts) if count)
    return FailingTests(nos, tuple(filter(None, counts)))


def common_failures(
    session: Connection, repository_id: int, nos: Sequence[int], span: Span
) -> dict[int, tuple[CommonFailure, ...]]:
    """Return the number of each test → its ways to fail, the most common first, then the newest.

    Tests without any are left out.
    """
    ways = _ways(session, repository_id, nos, span)
    first = {
        no: sorted(((count, at, key) for key, (count, at) in of_test.items()), reverse=True)
        for no, of_test in ways.items()
    }
    shown = {no: each[:SHOWN_MAX] for no, each in first.items()}
    keys = {key for each in shown.values() for _, _, key in each}
    asked = {"of_repository": repository_id} | bulk.text_params(sorted(keys))
    rows = session.execute(SELECT_HEADLINES, asked) if keys else ()
    texts = {key: (headline or "", stack or "") for key, headline, stack in rows}
    return {
        no: tuple(CommonFailure(texts[key][0], count, at, texts[key][1]) for count, at, key in each)
        for no, each in shown.items()
    }


def _ways(
    session: Connection, repository_id: int, nos: Sequence[int], span: Span
) -> dict[int, dict[str, tuple[int, datetime]]]:
    """Return each test's ways to fail: how often, and when it last did."""
    ways: dict[int, dict[str, tuple[int, datetime]]] = {}
    if not nos:
        return ways
    cover = days.cover(session, repository_id, span)
    asked: dict[str, object] = {"of_repository": repository_id, "of_numbers": nos}

    def add(rows: Iterable[tuple[int, str, int, datetime]]) -> None:
        for no, key, count, at in rows:
            of_test = ways.setdefault(no, {})
            before, last_at = of_test.get(key, (0, at))
            of_test[key] = before + count, max(last_at, at)

    add(session.execute(SELECT_DAILY, asked | {"of_days": cover.days}))
    for gap in cover.gaps:
        during = {"since": gap.since, "until": gap.until}
        add(session.execute(SELECT_ATTEMPTS, asked | during))
    return ways
