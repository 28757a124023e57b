"""The counts of a day: read from its uploads, added up, and written for some tests at a time.

A day is always counted from the beginning, never by increments: the same code serves a day that
is over, a late upload and a removed upload, and repeating any step is safe.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import add
from typing import NamedTuple

from sqlalchemy import Connection, Row, Select, and_, case, delete, func, select
from sqlalchemy.sql.elements import ColumnElement

from service.database import bulk
from service.database.codec import Raw
from service.database.types import Utc
from service.testhealth.reports.results import Outcome
from service.testhealth.store import bitmaps, days
from service.testhealth.store.attempts import attempts
from service.testhealth.store.cases import keys_of
from service.testhealth.store.days import OpenDay
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.tables_evidence import DailyRow, FailureDailyRow
from service.testhealth.store.uploads import eligible_since, uploads

TESTS_AT_ONCE = 5000
"""Tests whose counts one transaction writes."""

daily = DailyRow.__table__
failure_daily = FailureDailyRow.__table__


class SetUse(NamedTuple):
    """The number of uploads of the day that hold a set, and when the last of them ran."""

    passed: str | None
    skipped: str | None
    is_mass: bool
    uploads: int
    last_at: datetime


class Daily(NamedTuple):
    """A test on a day, in the order of the columns that `INSERT_DAILY` takes."""

    no: int
    results: int
    passing_results: int
    passed: int
    failed: int
    skipped: int
    quarantined: int
    last_at: datetime
    cost_ms: int = 0


class FailureDaily(NamedTuple):
    """A test's way to fail on a day."""

    no: int
    key: str
    failed: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class DayRead:
    """All that the uploads of a day say of tests."""

    day: OpenDay
    uses: tuple[SetUse, ...]
    bits: Mapping[str, bytes]
    attempts: tuple[Daily, ...]
    failures: tuple[FailureDaily, ...]


class Part(NamedTuple):
    """The counts of the tests with numbers above `after`, up to and with `until`."""

    after: int
    until: int
    daily: Sequence[Daily]
    failures: Sequence[FailureDaily]


@dataclass(frozen=True, slots=True)
class DaySums:
    """The counts of a day: of each test, and of each way to fail."""

    day: OpenDay
    daily: tuple[Daily, ...]
    failures: tuple[FailureDaily, ...]

    @property
    def failed(self) -> dict[int, int]:
        """The failed attempts of each test that failed."""
        return {each.no: each.failed for each in self.daily if each.failed}

    def parts(self) -> Iterator[Part]:
        """Return parts that cover all numbers, so that counts of tests that are gone go, too."""
        after, place = 0, 0
        ends = [each.no for each in self.daily[TESTS_AT_ONCE - 1 :: TESTS_AT_ONCE]]
        for until in [*ends, 2**31 - 1]:
            some = self.daily[place : place + TESTS_AT_ONCE]
            failures = [each for each in self.failures if after < each.no <= until]
            yield Part(after, until, some, failures)
            after, place = until, place + TESTS_AT_ONCE


def _count(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


_COMMON = ("day", "org_id", "repository_id")
INSERT_DAILY, INSERT_FAILURES = (
    bulk.inserted(
        table,
        [table.c[name] for name in kind._fields],
        [table.c[name] for name in _COMMON],
    )
    for table, kind in ((daily, Daily), (failure_daily, FailureDaily))
)


def read(session: Connection, sets: OutcomeSets, day: OpenDay) -> DayRead:
    """Read what the uploads of a day say; a change since `day.version` makes it useless."""
    here = day.place.repository_id
    in_day = (*eligible_since(here, day.span.since), uploads.c.ran_at < day.span.until)
    kinds = (uploads.c.passed, uploads.c.skipped, uploads.c.is_mass)
    last_at = func.max(uploads.c.ran_at, type_=Utc)
    statement = select(*kinds, func.count(), last_at).where(*in_day).group_by(*kinds)
    uses = tuple(SetUse(*row) for row in session.execute(statement))
    keys = {key for use in uses for key in (use.passed, use.skipped) if key is not None}
    failures = (
        select(attempts.c.no, attempts.c.failure, func.count(), last_at)
        .select_from(uploads)
        .join(attempts, attempts.c.upload == uploads.c.id)
        .where(*in_day, attempts.c.outcome == Outcome.FAILED.value)
        .where(attempts.c.failure.is_not(None))
        .group_by(attempts.c.no, attempts.c.failure)
    )
    return DayRead(
        day=day,
        uses=uses,
        bits=dict(sets.bits(session, here, keys)),
        attempts=tuple(map(_of_attempts, session.execute(_attempts_of_tests(in_day)))),
        failures=tuple(FailureDaily(*row) for row in session.execute(failures)),
    )


def _attempts_of_tests(in_day: Sequence[ColumnElement[bool]]) -> Select[*Raw]:
    """Return a statement for the stored attempts, by test, in the order of `Daily`."""
    outcome = attempts.c.outcome
    of_upload = (
        select(
            attempts.c.no,
            _count(outcome == Outcome.PASSED.value).label("passed"),
            _count(outcome == Outcome.FAILED.value).label("failed"),
            _count(outcome == Outcome.SKIPPED.value).label("skipped"),
            _count(attempts.c.is_quarantined.is_(True)).label("quarantined"),
            _count(attempts.c.is_comparable.is_(True) & uploads.c.is_mass.is_(False)).label(
                "counts"
            ),
            func.max(uploads.c.ran_at, type_=Utc).label("ran_at"),
            func.sum(attempts.c.cost_ms).label("cost_ms"),
        )
        .select_from(uploads)
        .join(attempts, attempts.c.upload == uploads.c.id)
        .where(*in_day)
        .group_by(attempts.c.upload, attempts.c.no)
        .subquery()
        .c
    )
    return select(
        of_upload.no,
        _count(of_upload.passed + of_upload.failed > 0),
        _count(and_(of_upload.passed > 0, of_upload.counts > 0)),
        func.sum(of_upload.passed),
        func.sum(of_upload.failed),
        func.sum(of_upload.skipped),
        func.sum(of_upload.quarantined),
        func.max(of_upload.ran_at, type_=Utc),
        func.sum(of_upload.cost_ms),
    ).group_by(of_upload.no)


def added_up(read_: DayRead) -> DaySums:
    """Add up what the uploads of a day say. Pure, and takes up to a second."""
    passed, mass, skipped = Counter[int](), Counter[int](), Counter[int]()
    last_at: dict[int, datetime] = {}
    for use in sorted(read_.uses, key=lambda each: each.last_at):
        for key, counters in (
            (use.passed, (passed, mass) if use.is_mass else (passed,)),
            (use.skipped, (skipped,)),
        ):
            nos = list(bitmaps.members(read_.bits.get(key, b""))) if key is not None else []
            for counter in counters:
                _add(counter, nos, use.uploads)
            last_at.update(dict.fromkeys(nos, use.last_at))
    apart = {each.no: each for each in read_.attempts}
    rows = [
        _together(
            Daily(
                no=no,
                results=passed[no],
                passing_results=passed[no] - mass[no],
                passed=passed[no],
                failed=0,
                skipped=skipped[no],
                quarantined=0,
                last_at=at,
            ),
            apart.pop(no, None),
        )
        for no, at in last_at.items()
    ]
    rows = sorted([*rows, *apart.values()])
    failures = sorted(read_.failures, key=lambda each: (each.no, each.key))
    return DaySums(read_.day, tuple(rows), tuple(failures))


def write(session: Connection, sums: DaySums, part: Part) -> bool:
    """Write a part of the counts instead of what was there; False: the day has changed."""
    if not days.lock(session, sums.day):
        return False
    place, day = sums.day.place, sums.day.day
    for table in (daily, failure_daily):
        of_day = (table.c.repository_id == place.repository_id, table.c.day == day)
        in_part = (table.c.no > part.after, table.c.no <= part.until)
        session.execute(delete(table).where(*of_day, *in_part))
    for insert, rows in ((INSERT_DAILY, part.daily), (INSERT_FAILURES, part.failures)):
        bulk.send(session, insert, list(map(tuple, rows)), day=day, **keys_of(place))
    return True


def _add(counter: Counter[int], nos: Sequence[int], times: int) -> None:
    if times == 1:
        counter.update(nos)
        return
    for no in nos:
        counter[no] += times


def _of_attempts(row: Row[*Raw]) -> Daily:
    no, *counts, last_at, cost_ms = row
    return Daily._make([no, *map(int, counts), last_at, int(cost_ms)])


def _together(once: Daily, apart: Daily | None) -> Daily:
    """Add what sets and what stored attempts say of a test."""
    if apart is None:
        return once
    counts = map(add, once[1:-2], apart[1:-2])
    last_at = max(once.last_at, apart.last_at)
    return Daily._make([once.no, *counts, last_at, apart.cost_ms])
