"""Read what failures of tests cost on each counted day, and which week was alerted about."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, func, literal_column, or_, select, update

from service.testhealth.store.cases import Place
from service.testhealth.store.days import days
from service.testhealth.store.figures import daily
from service.testhealth.store.quarantine import settings_table
from service.testhealth.store.queue_waits import waits


class DayCost(NamedTuple):
    """A test on a day: the CI time that its failures lost, in milliseconds."""

    day: int
    no: int
    cost_ms: int


class DayWait(NamedTuple):
    """A test on a day: its failures that turned out flaky in the queue, and what waited for them.

    Failures are shared by the tests that failed together; number 0 stands for no test.
    """

    day: int
    no: int
    failures: float
    wait_ms: int


def known(session: Connection, repository_id: int) -> tuple[int, int] | None:
    """Return the first and the last day whose costs are counted, None if there are none."""
    bounds = select(func.min(days.c.day), func.max(days.c.day))
    first, last = session.execute(bounds.where(*_counted(repository_id))).one()
    return None if first is None else (first, last)


def of_days(session: Connection, repository_id: int, first: int, end: int) -> Sequence[DayCost]:
    """Return what failures cost on days in `[first, end)`, tests that cost nothing left out."""
    statement = select(daily.c.day, daily.c.no, daily.c.cost_ms).where(
        daily.c.repository_id == repository_id,
        # A literal: SQLite recognizes a partial index only by equal text.
        daily.c.cost_ms > literal_column("0"),
        daily.c.day.in_(_days(repository_id, first, end)),
    )
    return [DayCost(*row) for row in session.execute(statement)]


def queue_waits(session: Connection, repository_id: int, first: int, end: int) -> Sequence[DayWait]:
    """Return what waited in queues on days in `[first, end)`."""
    statement = select(waits.c.day, waits.c.no, waits.c.failures, waits.c.wait_ms).where(
        waits.c.repository_id == repository_id,
        waits.c.day.in_(_days(repository_id, first, end)),
    )
    return [DayWait(*row) for row in session.execute(statement)]


def watched(session: Connection, week: int) -> tuple[Place, ...]:
    """Return the repositories with a limit for the costs of a week that was not alerted about."""
    alerted = settings_table.c.alerted_week
    statement = select(settings_table.c.org_id, settings_table.c.repository_id).where(
        settings_table.c.flake_cost_alert_minutes.is_not(None),
        or_(alerted.is_(None), alerted < week),
    )
    return tuple(Place(*row) for row in session.execute(statement))


def note_alert(session: Connection, repository_id: int, week: int) -> bool:
    """Note the alert about a week; False: it, or a later one, is noted already."""
    alerted = settings_table.c.alerted_week
    noted = session.execute(
        update(settings_table)
        .where(settings_table.c.repository_id == repository_id)
        .where(or_(alerted.is_(None), alerted < week))
        .values(alerted_week=week)
    )
    return noted.rowcount == 1


def _counted(repository_id: int) -> tuple[ColumnElement[bool], ...]:
    here = days.c.repository_id == repository_id
    return (here, days.c.is_counted.is_(True), days.c.has_costs.is_(True))


def _days(repository_id: int, first: int, end: int) -> Select[int]:
    within = (days.c.day >= first, days.c.day < end)
    return select(days.c.day).where(*_counted(repository_id), *within)
