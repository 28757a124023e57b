"""Tests as lists, pages and answers show them, and the list of unhealthy tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson
from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
)

from service.database import bulk
from service.testhealth.detector.quarantine import QuarantineSetting
from service.testhealth.store.cases import IS_UNHEALTHY
from service.testhealth.store.failing import CommonFailure
from service.testhealth.store.figures import Rates
from service.testhealth.store.numbered import Numbered
from service.testhealth.store.tables_tests import (
    CaseOverrideRow,
    CaseRow,
    CaseStateEventRow,
    CaseStateRow,
    TicketRow,
)
from service.vocabulary import Health, Override


class ListedCase(NamedTuple):
    """A test with its health and what people decided about it; texts are empty when missing.

    `cost_ms` is the CI time that it lost in a week. `override` may have expired; UNSPECIFIED: there
    is none. `reason` is empty until the test was judged. `operations/records.py:described` fills it
    in then, with `setting`, by which the test is quarantined now, None if it is not. Only some
    lists have the fields from `rates` on.
    """

    no: int
    id: str
    name: str
    classname: str
    parent: str
    file: str
    variant: str
    owners: tuple[str, ...]
    status: Health
    since: datetime
    impact: int
    cost_ms: int
    first_run_at: datetime
    last_failed_at: datetime | None
    reason: str
    override: Override
    override_reason: str
    override_at: datetime | None
    expires_at: datetime | None
    ticket: str | None
    line: int | None = None
    setting: QuarantineSetting | None = None
    rates: Rates | None = None
    failures: tuple[CommonFailure, ...] = ()
    quarantined_since: datetime | None = None

    @property
    def quarantined(self) -> bool:
        """Return whether its failures count as passed now."""
        return self.setting is not None

    @property
    def lost(self) -> timedelta:
        """The CI time that it lost in a week."""
        return timedelta(milliseconds=self.cost_ms)


cases = CaseRow.__table__
states = CaseStateRow.__table__
events = CaseStateEventRow.__table__
overrides = CaseOverrideRow.__table__
tickets = TicketRow.__table__

HERE: BindParameter[int] = bindparam("of_repository")
STATUS: BindParameter[str] = bindparam("of_status")

_SAME_STATE = and_(states.c.repository_id == cases.c.repository_id, states.c.no == cases.c.no)
SAME_TICKET = and_(tickets.c.repository_id == cases.c.repository_id, tickets.c.no == cases.c.no)
SAME_OVERRIDE = and_(
    overrides.c.repository_id == cases.c.repository_id,
    overrides.c.no == cases.c.no,
    overrides.c.is_open.is_(True),
)


def _has(repository_id: Column[int], no: Column[int]) -> ColumnElement[bool]:
    return exists().where(repository_id == cases.c.repository_id, no == cases.c.no)


RECORDS = (
    select(
        cases.c.no,
        cases.c.id,
        cases.c.name,
        cases.c.classname,
        cases.c.parent,
        cases.c.file,
        cases.c.line,
        cases.c.variant,
        cases.c.owners,
        cases.c.status,
        cases.c.status_since,
        cases.c.impact_rank,
        cases.c.cost_rank,
        cases.c.first_run_at,
        cases.c.last_failed_at,
        states.c.reason,
        overrides.c.override,
        overrides.c.reason.label("override_reason"),
        overrides.c.at.label("override_at"),
        overrides.c.expires_at,
        tickets.c.html_url,
    )
    .select_from(cases)
    .outerjoin(states, _SAME_STATE)
    .outerjoin(overrides, SAME_OVERRIDE)
    .outerjoin(tickets, SAME_TICKET)
    .where(cases.c.repository_id == HERE)
)
IS_OF_STATUS = and_(cases.c.status == STATUS, IS_UNHEALTHY)
SELECT_NUMBERED = RECORDS.where(bulk.among(cases.c.no, "of_numbers"))
SELECT_MARKED = select(cases.c.no).where(
    cases.c.repository_id == HERE,
    bulk.among(cases.c.no, "of_numbers"),
    or_(
        IS_UNHEALTHY,
        _has(overrides.c.repository_id, overrides.c.no),
        _has(events.c.repository_id, events.c.no),
    ),
)

_UNHEALTHY = Numbered(
    select(cases.c.no).where(cases.c.repository_id == HERE, IS_OF_STATUS),
    cases.c.no,
    (cases.c.impact_rank, cases.c.no),
)
COUNT_UNHEALTHY = (
    select(func.count()).select_from(cases).where(cases.c.repository_id == HERE, IS_OF_STATUS)
)


@dataclass(frozen=True, slots=True)
class UnhealthyTests:
    """Tests of one status, those first that hit most pull requests, then by number."""

    repository_id: int
    status: Health

    def count(self, session: Connection) -> int:
        """Return how many there are."""
        return session.execute(COUNT_UNHEALTHY, self._asked()).scalar_one()

    def top(self, session: Connection, limit: int) -> list[int]:
        """Return the first numbers in the order of the list."""
        return [int(row.no) for row in _UNHEALTHY.top(session, self._asked(), limit)]

    def among(self, session: Connection, nos: Sequence[int]) -> set[int]:
        """Return those of these numbers that are in the list."""
        return _UNHEALTHY.among(session, self._asked(), nos)

    def after(self, session: Connection, no: int, limit: int) -> list[int]:
        """Return the lowest numbers above this one, the lowest first."""
        return _UNHEALTHY.after(session, self._asked(), no, limit)

    def before(self, session: Connection, no: int, limit: int) -> list[int]:
        """Return the highest numbers below this one, the lowest first."""
        return _UNHEALTHY.before(session, self._asked(), no, limit)

    def _asked(self) -> dict[str, object]:
        return {"of_repository": self.repository_id, "of_status": self.status.value}


def marked(session: Connection, repository_id: int, nos: Sequence[int]) -> list[int]:
    """Return those of the tests that may be, or have been, quarantined.

    They are unhealthy, or have a history or an override.
    """
    asked = {"of_repository": repository_id, "of_numbers": nos}
    return list(session.execute(SELECT_MARKED, asked).scalars()) if nos else []


def listed_cases(session: Connection, repository_id: int, nos: Sequence[int]) -> list[ListedCase]:
    """Return tests by their numbers, in that order."""
    if not nos:
        return []
    asked = {"of_repository": repository_id, "of_numbers": nos}
    rows = {row.no: row for row in session.execute(SELECT_NUMBERED, asked)}
    return [listed_case(rows[no]) for no in nos if no in rows]


def listed_case(row: Row[*tuple[object, ...]]) -> ListedCase:
    """Return a row of `RECORDS` as a test."""
    return ListedCase(
        no=row.no,
        id=row.id,
        name=row.name,
        classname=row.classname,
        parent=row.parent,
        file=row.file,
        variant=row.variant,
        owners=tuple(orjson.loads(row.owners)),
        status=Health(row.status),
        since=row.status_since,
        impact=-row.impact_rank,
        cost_ms=-row.cost_rank,
        first_run_at=row.first_run_at,
        last_failed_at=row.last_failed_at,
        reason=row.reason or "",
        override=Override.UNSPECIFIED if row.override is None else Override(row.override),
        override_reason=row.override_reason or "",
        override_at=row.override_at,
        expires_at=row.expires_at,
        ticket=row.html_url,
        line=row.line,
    )
