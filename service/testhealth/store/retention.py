"""Delete old data of tests: evidence after weeks, counts after a year, then the tests.

Each function deletes some rows that are older than an instant, and returns how many.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, bindparam, delete, select

from service.testhealth.detector import figures
from service.testhealth.store import cases as test_cases
from service.testhealth.store import days
from service.testhealth.store import figures as test_figures
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.tables_costs import (
    QueueWaitRow,
    TimesOfDayRow,
    TimesOfWeekRow,
    UploadTimesRow,
)
from service.testhealth.store.tables_evidence import (
    ArtifactRow,
    CaseAttemptRow,
    DailyRow,
    DayRow,
    EarlyFailureRow,
    FailureDailyRow,
    FailureGroupRow,
    ImpactRow,
    NoiseRow,
    OutcomeSetRow,
    UploadRow,
)
from service.testhealth.store.tables_repeats import RepeatPlanRow, RepeatsRow
from service.testhealth.store.tables_tests import (
    CaseAliasRow,
    CaseOverrideRow,
    CaseRow,
    CaseStateEventRow,
    CaseStateRow,
    TicketIssueRow,
    TicketRow,
)

BATCH = 1000
"""Rows that one transaction deletes at most."""

TESTS_AT_ONCE = 100
"""Tests that one transaction deletes at most, for each has rows in many tables."""

Forget = Callable[[Connection, datetime], int]

daily = DailyRow.__table__
failure_daily = FailureDailyRow.__table__
test_days = DayRow.__table__
times_of_day = TimesOfDayRow.__table__
queue_wait = QueueWaitRow.__table__
cases = CaseRow.__table__
impacts = ImpactRow.__table__
OF_TESTS = tuple(
    row.__table__
    for row in (
        CaseStateRow,
        CaseStateEventRow,
        CaseOverrideRow,
        CaseAliasRow,
        TicketRow,
        TicketIssueRow,
        ImpactRow,
        TimesOfWeekRow,
        CaseRow,
    )
)
"""Tables whose rows are deleted with a test."""


def forget_impacts(session: Connection, before: datetime) -> int:
    """Delete pull requests that a test failed for long ago."""
    return len(_forget(session, impacts, impacts.c.last_at < before))


def forget_days(session: Connection, before: datetime) -> int:
    """Delete counts of some tests on the oldest day, and those tests that never ran later."""
    oldest = session.execute(
        select(test_days.c.repository_id, test_days.c.day)
        .where(test_days.c.day < figures.day_of(before), test_days.c.is_counted.is_(True))
        .order_by(test_days.c.day)
        .limit(1)
    ).first()
    if oldest is None:
        return 0
    of_day, of_failures, day = (
        and_(table.c.repository_id == oldest.repository_id, table.c.day == oldest.day)
        for table in (daily, failure_daily, test_days)
    )
    first = select(daily.c.no).where(of_day).order_by(daily.c.no).limit(TESTS_AT_ONCE)
    nos = session.execute(first).scalars().all()
    until = nos[-1] if len(nos) == TESTS_AT_ONCE else 2**31 - 1
    _forget_tests(session, oldest.repository_id, nos, before)
    session.execute(delete(daily).where(of_day, daily.c.no <= until))
    session.execute(delete(failure_daily).where(of_failures, failure_daily.c.no <= until))
    if len(nos) < TESTS_AT_ONCE:
        for table in (times_of_day, queue_wait):
            here = table.c.repository_id == oldest.repository_id
            session.execute(delete(table).where(here, table.c.day == oldest.day))
        session.execute(delete(test_days).where(day))
    return max(1, len(nos))


def forget_strangers(session: Connection, before: datetime) -> int:
    """Delete tests that only untrusted uploads ever had, which have no counts."""
    is_old = cases.c.is_known.is_(False) & (cases.c.first_run_at < before)
    key = (cases.c.repository_id, cases.c.no)
    rows = session.execute(select(*key).where(is_old).limit(TESTS_AT_ONCE)).all()
    by_repository: dict[int, list[int]] = {}
    for row in rows:
        by_repository.setdefault(row.repository_id, []).append(row.no)
    for repository_id, nos in sorted(by_repository.items()):
        _forget_tests(session, repository_id, nos, before)
    return len(rows)


def _forget_tests(
    session: Connection, repository_id: int, nos: Sequence[int], before: datetime
) -> None:
    """Delete those of the tests that have not run since an instant."""
    if not nos:
        return
    # The lock comes before the look: an upload that is taken in holds it, too.
    test_cases.lock(session, repository_id)
    runs = test_figures.last_runs(session, OutcomeSets(), repository_id, nos)
    old = select(cases.c.no).where(
        cases.c.repository_id == repository_id,
        cases.c.no.in_([no for no in nos if no not in runs or runs[no] < before]),
        cases.c.is_known.is_(True) | (cases.c.first_run_at < before),
    )
    gone = session.execute(old).scalars().all()
    if gone:
        for table in OF_TESTS:
            session.execute(
                delete(table).where(table.c.repository_id == repository_id, table.c.no.in_(gone))
            )
        test_cases.note_removal(session, repository_id)


def _by_time(table: Table, column: str) -> Forget:
    return lambda session, before: len(_forget(session, table, table.c[column] < before))


def _of_counted_days(table: Table, column: str) -> Forget:
    """Forget whole days before the oldest open one: uploads of that day are yet to be counted."""

    def forget(session: Connection, before: datetime) -> int:
        limit, oldest_open = figures.day_of(before), days.oldest_open(session)
        if oldest_open is not None:
            limit = min(limit, oldest_open)
        return len(_forget(session, table, table.c[column] < figures.beginning_of(limit)))

    return forget


def _noise(session: Connection, before: datetime) -> int:
    noise = NoiseRow.__table__
    return len(_forget(session, noise, noise.c.day < figures.day_of(before)))


def _forget(
    session: Connection, table: Table, is_old: ColumnElement[bool]
) -> Sequence[Row[*tuple[int, ...]]]:
    """Delete some old rows; return their keys."""
    key = tuple(table.primary_key)
    rows = session.execute(select(*key).where(is_old).limit(BATCH)).all()
    if rows:
        # Row by row: SQLite looks a list of keys with several columns up in no index.
        names = [f"of_{column.name}" for column in key]
        this = and_(*(column == bindparam(f"of_{column.name}") for column in key))
        asked = [dict(zip(names, row, strict=True)) for row in rows]
        # A row that was old when it was found may be used again by now.
        session.execute(delete(table).where(this, is_old), asked)
    return rows


EVIDENCE: tuple[Forget, ...] = (
    _of_counted_days(CaseAttemptRow.__table__, "ran_at"),
    _of_counted_days(UploadRow.__table__, "ran_at"),
    _of_counted_days(UploadTimesRow.__table__, "ran_at"),
    _by_time(ArtifactRow.__table__, "at"),
    _by_time(EarlyFailureRow.__table__, "heard_at"),
    _by_time(RepeatPlanRow.__table__, "asked_at"),
    _of_counted_days(RepeatsRow.__table__, "ran_at"),
    _of_counted_days(OutcomeSetRow.__table__, "used_at"),
)
"""Forget single runs."""

HISTORY: tuple[Forget, ...] = (
    _by_time(FailureGroupRow.__table__, "last_at"),
    _noise,
    forget_days,
    forget_strangers,
)
"""Forget counts, and the tests that they are of."""
