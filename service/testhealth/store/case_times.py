"""The times of tests: stored with uploads, counted with days, added up for two weeks.

As with other counts a day is always counted from the beginning (`day_counts.py`), so the order of
uploads does not matter, and an upload that is removed takes its times along.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    bindparam,
    case,
    delete,
    func,
    insert,
    select,
    update,
)

from service.database import bulk
from service.database.codec import Raw
from service.testhealth.filters import TimeOrder
from service.testhealth.reports.results import Outcome
from service.testhealth.store import days, sketches
from service.testhealth.store.all_tests import owned_by
from service.testhealth.store.attempts import attempts, cases
from service.testhealth.store.cases import Place, keys_of
from service.testhealth.store.days import OpenDay
from service.testhealth.store.days import days as test_days
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.sketches import Counts, UploadTimes
from service.testhealth.store.tables_costs import TimesOfDayRow, TimesOfWeekRow, UploadTimesRow
from service.testhealth.store.uploads import Upload, eligible_since, uploads
from service.testhealth.times import Times

WEEK = 7
"""Days."""

upload_times = UploadTimesRow.__table__
of_days = TimesOfDayRow.__table__
of_weeks = TimesOfWeekRow.__table__


def put(session: Connection, place: Place, upload: Upload, times: bytes | None) -> None:
    """Store the times of the tests that passed at once in an upload."""
    if times is not None:
        row = {"upload": upload.id, "ran_at": upload.ran_at, "times": times}
        session.execute(insert(upload_times), row | keys_of(place))


# Days.


@dataclass(frozen=True, slots=True)
class TimesRead:
    """All that the uploads of a day say of times; `attempts` are those that stand apart."""

    day: OpenDay
    uploads: tuple[tuple[bytes, bytes], ...]
    attempts: tuple[tuple[int, int], ...]


def read(session: Connection, sets: OutcomeSets, day: OpenDay) -> TimesRead:
    """Read what the uploads of a day say of times."""
    here = day.place.repository_id
    in_day = (*eligible_since(here, day.span.since), uploads.c.ran_at < day.span.until)
    passes = session.execute(
        select(uploads.c.passed, upload_times.c.times)
        .join(upload_times, upload_times.c.upload == uploads.c.id)
        .where(*in_day, uploads.c.passed.is_not(None))
    ).all()
    bits = dict(sets.bits(session, here, {row.passed for row in passes}))
    apart = session.execute(
        select(attempts.c.no, attempts.c.duration_ms)
        .select_from(uploads)
        .join(attempts, attempts.c.upload == uploads.c.id)
        .where(*in_day, attempts.c.outcome != Outcome.SKIPPED.value)
        .where(attempts.c.duration_ms.is_not(None))
    )
    return TimesRead(
        day,
        tuple((bits[row.passed], row.times) for row in passes if row.passed in bits),
        tuple((row.no, row.duration_ms) for row in apart),
    )


def added_up(read_: TimesRead) -> dict[int, bytes]:
    """Return each part of the day's tests → its times, as stored. Pure; may take a second."""
    parts: dict[int, Counts] = {}
    for no, duration_ms in read_.attempts:
        key = no << 8 | sketches.bucket_of(duration_ms / 1000)
        parts.setdefault(no // sketches.PART, Counts())[key] += 1
    for bits, times in read_.uploads:
        upload = UploadTimes(bits, times)
        for part in upload.parts():
            upload.count(parts.setdefault(part, Counts()), part)
    packed = {part: sketches.packed(counts) for part, counts in parts.items()}
    return {part: times for part, times in packed.items() if times is not None}


def write(session: Connection, day: OpenDay, parts: Mapping[int, bytes]) -> bool:
    """Write the times of a day instead of what was there; False: the day has changed."""
    if not days.lock(session, day):
        return False
    of = (of_days.c.repository_id == day.place.repository_id, of_days.c.day == day.day)
    session.execute(delete(of_days).where(*of))
    common = {"day": day.day, **keys_of(day.place)}
    rows = [common | {"part": part, "times": times} for part, times in sorted(parts.items())]
    if rows:
        session.execute(insert(of_days), rows)
    return True


# Weeks.


class Unsummed(NamedTuple):
    """A repository with counted days that the times of its weeks do not hold; the newest day."""

    place: Place
    through: int


def unsummed(session: Connection) -> tuple[Unsummed, ...]:
    """Return the repositories whose times of weeks are to be made anew."""
    changed = (
        select(test_days.c.org_id, test_days.c.repository_id)
        .where(test_days.c.is_summed.is_(False), test_days.c.is_counted.is_(True))
        .distinct()
        .subquery()
    )
    newest = (
        select(func.max(test_days.c.day))
        .where(test_days.c.repository_id == changed.c.repository_id)
        .where(test_days.c.is_counted.is_(True))
        .scalar_subquery()
    )
    found = session.execute(select(changed.c.org_id, changed.c.repository_id, newest))
    return tuple(Unsummed(Place(org, repository), day) for org, repository, day in found)


def parts_of(session: Connection, of: Unsummed) -> tuple[int, ...]:
    """Return the parts of tests with times in the two weeks, or in what was stored before."""
    recent = select(of_days.c.part).distinct().where(*_within(of, 2 * WEEK))
    stored = (
        select(of_weeks.c.no // sketches.PART)
        .distinct()
        .where(of_weeks.c.repository_id == of.place.repository_id)
    )
    parts = {*session.execute(recent).scalars(), *session.execute(stored).scalars()}
    return tuple(sorted(parts))


Stored = Sequence[tuple[int, bytes]]
"""Days with the times of a part."""


def days_of_part(session: Connection, of: Unsummed, part: int) -> Stored:
    """Return the times of a part in the two weeks, of counted days alone."""
    statement = (
        select(of_days.c.day, of_days.c.times)
        .join(
            test_days,
            (test_days.c.repository_id == of_days.c.repository_id)
            & (test_days.c.day == of_days.c.day),
        )
        .where(*_within(of, 2 * WEEK), of_days.c.part == part, test_days.c.is_counted.is_(True))
    )
    return [(row.day, row.times) for row in session.execute(statement)]


def _within(of: Unsummed, many: int) -> tuple[ColumnElement[bool], ...]:
    return (
        of_days.c.repository_id == of.place.repository_id,
        of_days.c.day > of.through - many,
        of_days.c.day <= of.through,
    )


WeekRow = tuple[int, ...]
"""The columns of `INSERT_WEEKS`."""

_COLUMNS = (
    *("no", "runs", "total_rank", "median_rank", "p95_rank"),
    *("runs_before", "total_ms_before", "median_ms_before", "p95_ms_before"),
)
INSERT_WEEKS = bulk.inserted(
    of_weeks,
    [of_weeks.c[name] for name in _COLUMNS],
    [of_weeks.c[name] for name in ("through", "org_id", "repository_id")],
)


def summed(of: Unsummed, stored: Stored) -> list[WeekRow]:
    """Return the rows of a part. Pure, and takes some tenths of a second."""
    since = of.through - WEEK
    this = dict(sketches.times_of(sketches.added(times for day, times in stored if day > since)))
    before = dict(sketches.times_of(sketches.added(times for day, times in stored if day <= since)))
    none = Times()
    return [
        (no, now.runs, -now.total_ms, -now.median_ms, -now.p95_ms, *before.get(no, none))
        for no in sorted(this.keys() | before.keys())
        for now in (this.get(no, none),)
    ]


def write_week(session: Connection, of: Unsummed, part: int, rows: Sequence[WeekRow]) -> None:
    """Write the times of a part's tests instead of what was there."""
    here, first = of.place.repository_id, part * sketches.PART
    in_part = (of_weeks.c.no >= first, of_weeks.c.no < first + sketches.PART)
    session.execute(delete(of_weeks).where(of_weeks.c.repository_id == here, *in_part))
    bulk.send(session, INSERT_WEEKS, rows, through=of.through, **keys_of(of.place))


def note_summed(session: Connection, of: Unsummed, versions: Mapping[int, int]) -> None:
    """Note that the times of weeks hold the repository's days, as far as they are those read."""
    for day, version in versions.items():
        session.execute(
            update(test_days)
            .where(test_days.c.repository_id == of.place.repository_id, test_days.c.day == day)
            .where(test_days.c.version == version, test_days.c.is_counted.is_(True))
            .values(is_summed=True)
        )


def versions(session: Connection, of: Unsummed) -> dict[int, int]:
    """Return the version of each counted day that is not in the times of weeks yet."""
    statement = select(test_days.c.day, test_days.c.version).where(
        test_days.c.repository_id == of.place.repository_id,
        test_days.c.is_summed.is_(False),
        test_days.c.is_counted.is_(True),
    )
    return {row.day: row.version for row in session.execute(statement)}


# Answers.


class Timed(NamedTuple):
    """The times of a test in the week to a day, and in the week before."""

    no: int
    now: Times
    before: Times


def timed(row: Raw) -> Timed:
    """Return a row of `TIMED`."""
    no, runs, total, median, p95 = map(int, row[:5])
    return Timed(no, Times(runs, -total, -median, -p95), Times(*row[5:]))


TIMED = tuple(of_weeks.c[name] for name in _COLUMNS)


def through_of(session: Connection, repository_id: int) -> int | None:
    """Return the newest day whose times are summed; None: there are none."""
    return session.execute(
        select(func.max(of_weeks.c.through)).where(of_weeks.c.repository_id == repository_id)
    ).scalar()


_KNOWN = (
    select(*TIMED)
    .join(
        cases, (cases.c.repository_id == of_weeks.c.repository_id) & (cases.c.no == of_weeks.c.no)
    )
    .where(of_weeks.c.repository_id == bindparam("of_repository"), cases.c.is_known.is_(True))
)
_BY = {
    order: _KNOWN.where(of_weeks.c.runs > 0)
    .order_by(of_weeks.c[f"{order.value}_rank"], of_weeks.c.no)
    .limit(bindparam("at_most"))
    for order in TimeOrder
}


def slowest(
    session: Connection, repository_id: int, order: TimeOrder, owner: str, at_most: int
) -> tuple[Timed, ...]:
    """Return the tests that took longest; `owner` empty: of all owners."""
    statement = _BY[order]
    if owner:
        statement = statement.where(owned_by(owner))
    asked = {"of_repository": repository_id, "at_most": at_most}
    return tuple(map(timed, session.execute(statement, asked)))


def totals(session: Connection, repository_id: int) -> tuple[int, int, int]:
    """Return how many tests ran in the week, and the milliseconds of it and of the one before."""
    row = session.execute(
        select(
            func.count().filter(of_weeks.c.runs > 0),
            func.coalesce(func.sum(-of_weeks.c.total_rank), 0),
            func.coalesce(func.sum(of_weeks.c.total_ms_before), 0),
        ).where(of_weeks.c.repository_id == repository_id)
    ).one()
    count, now_ms, before_ms = map(int, row)
    return count, now_ms, before_ms


class TimedFile(NamedTuple):
    """A file, a variant, and the sum of the medians of its tests in it, in milliseconds."""

    file: str
    variant: str
    median_ms: int


def files(session: Connection, repository_id: int) -> tuple[TimedFile, ...]:
    """Return the time of each file with times, in each variant; tests without a file are left out.

    A test that did not run in the week has the median of the week before.
    """
    median_ms = case(
        (of_weeks.c.runs > 0, -of_weeks.c.median_rank), else_=of_weeks.c.median_ms_before
    )
    statement = (
        select(cases.c.file, cases.c.variant, func.sum(median_ms))
        .select_from(of_weeks)
        .join(
            cases,
            (cases.c.repository_id == of_weeks.c.repository_id) & (cases.c.no == of_weeks.c.no),
        )
        .where(of_weeks.c.repository_id == repository_id)
        .where(cases.c.is_known.is_(True), cases.c.file != "")
        .group_by(cases.c.file, cases.c.variant)
        .order_by(cases.c.file, cases.c.variant)
    )
    return tuple(
        TimedFile(file, variant, int(ms)) for file, variant, ms in session.execute(statement)
    )
