"""What is forgotten of tests: evidence after weeks, counts after a year, then the tests themselves.

Each function forgets some rows that are older than an instant, and says how many (FLAKY.md 4).
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Table, delete, select, tuple_

from service.flaky import figures
from service.store.tables.test_evidence import (
    CaseAttemptRow,
    CodeGroupRow,
    DailyRow,
    FailureDailyRow,
    FailureGroupRow,
    ImpactRow,
    NoiseRow,
    OutcomeSetRow,
    UploadRow,
)
from service.store.tables.tests import (
    CaseAliasRow,
    CaseOverrideRow,
    CaseRow,
    CaseStateEventRow,
    CaseStateRow,
    TicketRow,
)

BATCH = 1000
"""Rows one transaction deletes at most (RELIABILITY.md 4.1)."""

TESTS_AT_ONCE = 100
"""Tests one transaction deletes at most, for each has rows in many tables."""

Forget = Callable[[Connection, datetime], int]

daily = DailyRow.__table__
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
        ImpactRow,
        CaseRow,
    )
)
"""What goes with a test."""


def forget_impacts(session: Connection, before: datetime) -> int:
    """Pull requests that a test hit long ago."""
    return _forget(session, impacts, impacts.c.last_at < before)


def forget_days(session: Connection, before: datetime) -> int:
    """Days of tests; a test whose last day this was, and has not run since, goes with it."""
    key = (daily.c.repository_id, daily.c.no)
    is_old = daily.c.day < figures.day_of(before)
    found = session.execute(select(*key, daily.c.day).where(is_old).limit(TESTS_AT_ONCE)).all()
    if found:
        days = [tuple(row) for row in found]
        session.execute(delete(daily).where(tuple_(*key, daily.c.day).in_(days)))
        _forget_tests(session, sorted({(row.repository_id, row.no) for row in found}), before)
    return len(found)


def forget_strangers(session: Connection, before: datetime) -> int:
    """Tests that only untrusted uploads ever had, which have no days."""
    key = (cases.c.repository_id, cases.c.no)
    is_old = cases.c.is_known.is_(False) & (cases.c.last_run_at < before)
    found = session.execute(select(*key).where(is_old).limit(TESTS_AT_ONCE)).all()
    _forget_tests(session, [(row.repository_id, row.no) for row in found], before)
    return len(found)


def _forget_tests(session: Connection, tests: Sequence[tuple[int, int]], before: datetime) -> None:
    """Those of the tests that have not run since."""
    key = tuple_(cases.c.repository_id, cases.c.no)
    old = select(cases.c.repository_id, cases.c.no).where(
        key.in_(tests), cases.c.last_run_at < before
    )
    gone = [tuple(row) for row in session.execute(old)] if tests else []
    if gone:
        for table in OF_TESTS:
            session.execute(
                delete(table).where(tuple_(table.c.repository_id, table.c.no).in_(gone))
            )


def _by_time(table: Table, column: str) -> Forget:
    def forget(session: Connection, before: datetime) -> int:
        return _forget(session, table, table.c[column] < before)

    return forget


def _by_day(table: Table) -> Forget:
    def forget(session: Connection, before: datetime) -> int:
        return _forget(session, table, table.c.day < figures.day_of(before))

    return forget


def _forget(session: Connection, table: Table, is_old: ColumnElement[bool]) -> int:
    key = tuple(table.primary_key)
    found = [tuple(row) for row in session.execute(select(*key).where(is_old).limit(BATCH))]
    if found:
        session.execute(delete(table).where(tuple_(*key).in_(found)))
    return len(found)


EVIDENCE: tuple[Forget, ...] = (
    _by_time(CaseAttemptRow.__table__, "ran_at"),
    _by_time(UploadRow.__table__, "ran_at"),
    _by_time(OutcomeSetRow.__table__, "used_at"),
    _by_time(CodeGroupRow.__table__, "last_at"),
)
"""What single runs were."""

HISTORY: tuple[Forget, ...] = (
    _by_day(FailureDailyRow.__table__),
    _by_time(FailureGroupRow.__table__, "last_at"),
    _by_day(NoiseRow.__table__),
    forget_days,
    forget_strangers,
)
"""What is counted, and the tests that it is counted of."""
