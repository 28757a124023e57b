"""Days of a repository's uploads: open, or counted.

Figures of a counted day come from `daily`, `failure_daily` and `test_day.failed`; figures of an
open day, and of the cut days at both ends of a span, come from the uploads themselves. So every
figure is exact at every moment, and a count that is half written is never read.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import BindParameter, Connection, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.types import Utc
from service.testhealth.detector import figures
from service.testhealth.store import bitmaps
from service.testhealth.store.cases import Place
from service.testhealth.store.tables_evidence import DayRow

OVER_FOR = timedelta(hours=1)
"""A day is counted so long after its end, because most late uploads come within the hour."""

QUIET_FOR = timedelta(minutes=5)
"""A day is counted so long after its last change: uploads of the past come many at a time."""


@dataclass(frozen=True, slots=True)
class Span:
    """The time in `[since, until)`."""

    since: datetime
    until: datetime


EVER = Span(datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class Cover:
    """A span as counted days that lie whole in it, and gaps whose uploads must be read."""

    days: tuple[int, ...]
    gaps: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class OpenDay:
    """A day of a repository that is not counted, at a version of its uploads."""

    place: Place
    day: int
    version: int

    @property
    def span(self) -> Span:
        """The time of the day."""
        return Span(figures.beginning_of(self.day), figures.beginning_of(self.day + 1))


days = DayRow.__table__

_HERE: BindParameter[int] = bindparam("of_repository")
_DAY: BindParameter[int] = bindparam("of_day")
_WITHIN = (
    days.c.repository_id == _HERE,
    days.c.is_counted.is_(True),
    days.c.day >= bindparam("from_day"),
    days.c.day < bindparam("before_day"),
)

SELECT_COUNTED = select(days.c.day).where(*_WITHIN).order_by(days.c.day)
SELECT_FAILED = select(days.c.day, days.c.failed).where(*_WITHIN).order_by(days.c.day)
_open = upsert(days)
OPEN = _open.on_conflict_do_update(
    index_elements=["repository_id", "day"],
    set_={
        "version": days.c.version + 1,
        "is_counted": False,
        "changed_at": _open.excluded.changed_at,
    },
)
SELECT_DUE = (
    select(days.c.org_id, days.c.repository_id, days.c.day, days.c.version)
    .where(
        days.c.is_counted.is_(False),
        days.c.day < bindparam("before_day"),
        days.c.changed_at <= bindparam("quiet_since", type_=Utc),
    )
    .order_by(days.c.repository_id, days.c.day)
)
SELECT_OLDEST_OPEN = select(func.min(days.c.day)).where(days.c.is_counted.is_(False))
_OF_DAY = (days.c.repository_id == _HERE, days.c.day == _DAY)
_OPEN_AT_VERSION = (
    *_OF_DAY,
    days.c.version == bindparam("of_version"),
    days.c.is_counted.is_(False),
)
LOCK = select(days.c.version).where(*_OPEN_AT_VERSION).with_for_update()
CLOSE = (
    update(days)
    .where(*_OPEN_AT_VERSION)
    .values(is_counted=True, has_costs=True, is_summed=False, failed=bindparam("to_failed"))
)


def cover(session: Connection, repository_id: int, span: Span) -> Cover:
    """Split a span of time at the repository's counted days."""
    asked = _asked(repository_id, span)
    counted = tuple(session.execute(SELECT_COUNTED, asked).scalars())
    return Cover(counted, tuple(_gaps(span, counted)))


def failed(
    session: Connection, repository_id: int, span: Span
) -> tuple[tuple[bytes, ...], tuple[Span, ...]]:
    """Split a span like `cover`; return the packed failed attempts of each counted day."""
    rows = session.execute(SELECT_FAILED, _asked(repository_id, span)).all()
    return tuple(row.failed for row in rows), tuple(_gaps(span, [row.day for row in rows]))


def open_day(session: Connection, place: Place, ran_at: datetime, now: datetime) -> None:
    """Open the day of an upload that is added or removed in this transaction."""
    row = {
        "org_id": place.org_id,
        "repository_id": place.repository_id,
        "day": figures.day_of(ran_at),
        "version": 1,
        "is_counted": False,
        "changed_at": now,
        "failed": b"",
    }
    session.execute(OPEN, row)


def due(session: Connection, now: datetime) -> tuple[OpenDay, ...]:
    """Return the open days that are over and quiet, in the order of repositories and days."""
    asked = {"before_day": figures.day_of(now - OVER_FOR), "quiet_since": now - QUIET_FOR}
    return tuple(
        OpenDay(Place(row.org_id, row.repository_id), row.day, row.version)
        for row in session.execute(SELECT_DUE, asked)
    )


def oldest_open(session: Connection) -> int | None:
    """Return the oldest open day of all repositories, None if there is none."""
    day: int | None = session.execute(SELECT_OLDEST_OPEN).scalar()
    return day


def lock(session: Connection, day: OpenDay) -> bool:
    """Keep the day as it is until this transaction ends; False if it has changed already."""
    return session.execute(LOCK, _of_day(day)).first() is not None


def close(session: Connection, day: OpenDay, failed_attempts: dict[int, int]) -> None:
    """Let the counts of a day stand; nothing happens if its uploads have changed meanwhile."""
    packed = bitmaps.packed_counts(failed_attempts)
    session.execute(CLOSE, _of_day(day) | {"to_failed": packed})


def _of_day(day: OpenDay) -> dict[str, object]:
    return {
        "of_repository": day.place.repository_id,
        "of_day": day.day,
        "of_version": day.version,
    }


def _asked(repository_id: int, span: Span) -> dict[str, object]:
    whole_from = figures.day_of(span.since)
    if figures.beginning_of(whole_from) < span.since:
        whole_from += 1
    return {
        "of_repository": repository_id,
        "from_day": whole_from,
        "before_day": figures.day_of(span.until),
    }


def _gaps(span: Span, counted: Iterable[int]) -> Iterator[Span]:
    at = span.since
    for day in counted:
        if at < figures.beginning_of(day):
            yield Span(at, figures.beginning_of(day))
        at = figures.beginning_of(day + 1)
    if at < span.until:
        yield Span(at, span.until)
