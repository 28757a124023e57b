"""What is forgotten of tests: evidence after weeks, counts after a year, then the tests themselves.

Each function forgets some rows that are older than an instant, and says how many (FLAKY.md 4).
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, bindparam, delete, select

from service.testhealth.detector import figures
from service.testhealth.store import evidence_rows
from service.testhealth.store.tables_evidence import (
    ArtifactRow,
    CaseAttemptRow,
    DailyRow,
    FailureDailyRow,
    FailureGroupRow,
    ImpactRow,
    NoiseRow,
    OutcomeSetRow,
    UploadRow,
)
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
        TicketIssueRow,
        ImpactRow,
        CaseRow,
    )
)
"""What goes with a test."""


def forget_impacts(session: Connection, before: datetime) -> int:
    """Pull requests that a test hit long ago."""
    return len(_forget(session, impacts, impacts.c.last_at < before))


def forget_days(session: Connection, before: datetime) -> int:
    """Days of tests; a test whose last day this was, and has not run since, goes with it."""
    is_old = daily.c.day < figures.day_of(before)
    found = _forget(session, daily, is_old, TESTS_AT_ONCE)
    _forget_tests(session, {(repository_id, no) for repository_id, no, _ in found}, before)
    return len(found)


def forget_strangers(session: Connection, before: datetime) -> int:
    """Tests that only untrusted uploads ever had, which have no days."""
    is_old = cases.c.is_known.is_(False) & (cases.c.last_run_at < before)
    key = (cases.c.repository_id, cases.c.no)
    found = session.execute(select(*key).where(is_old).limit(TESTS_AT_ONCE)).all()
    _forget_tests(session, {(row.repository_id, row.no) for row in found}, before)
    return len(found)


def _forget_tests(session: Connection, tests: set[tuple[int, int]], before: datetime) -> None:
    """Those of the tests that have not run since."""
    by_repository: dict[int, list[int]] = {}
    for repository_id, no in sorted(tests):
        by_repository.setdefault(repository_id, []).append(no)
    for repository_id, nos in by_repository.items():
        # Before anything is looked at: who takes an upload in has this row first, too.
        evidence_rows.lock(session, repository_id)
        old = select(cases.c.no).where(
            cases.c.repository_id == repository_id,
            cases.c.no.in_(nos),
            cases.c.last_run_at < before,
        )
        gone = session.execute(old).scalars().all()
        for table in OF_TESTS if gone else ():
            session.execute(
                delete(table).where(table.c.repository_id == repository_id, table.c.no.in_(gone))
            )


def _by_time(table: Table, column: str) -> Forget:
    def forget(session: Connection, before: datetime) -> int:
        return len(_forget(session, table, table.c[column] < before))

    return forget


def _by_day(table: Table) -> Forget:
    def forget(session: Connection, before: datetime) -> int:
        return len(_forget(session, table, table.c.day < figures.day_of(before)))

    return forget


def _forget(
    session: Connection, table: Table, is_old: ColumnElement[bool], at_most: int = BATCH
) -> Sequence[Row[*tuple[int, ...]]]:
    """Delete some old rows; their keys, column by column."""
    key = tuple(table.primary_key)
    found = session.execute(select(*key).where(is_old).limit(at_most)).all()
    if found:
        # Row by row: SQLite looks a list of keys with several columns up in no index.
        names = [f"of_{column.name}" for column in key]
        this = and_(*(column == bindparam(f"of_{column.name}") for column in key))
        told = [dict(zip(names, row, strict=True)) for row in found]
        # Somebody may use one again that was old when it was found.
        session.execute(delete(table).where(this, is_old), told)
    return found


EVIDENCE: tuple[Forget, ...] = (
    _by_time(CaseAttemptRow.__table__, "ran_at"),
    _by_time(UploadRow.__table__, "ran_at"),
    _by_time(ArtifactRow.__table__, "at"),
    _by_time(OutcomeSetRow.__table__, "used_at"),
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
