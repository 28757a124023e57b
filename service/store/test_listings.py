"""The lists of unhealthy and of failing tests: each question has an index in its order.

Lists of tests are told as answers to three questions: how many there are, those behind a key,
those before one (`service/operations/test_pages.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import orjson
from sqlalchemy import (
    BindParameter,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    desc,
    func,
    select,
    tuple_,
)

from service.store.tables.tests import CaseOverrideRow, CaseRow, CaseStateRow, TicketRow
from service.vocabulary import Health, Override

Key = tuple[str | int | float, ...]
"""A row's place in a list's order, as a page token can hold it."""


class ListedCase(NamedTuple):
    """A test among others; texts are empty when missing.

    `reason` is None until the test was judged. `override` is UNSPECIFIED when nobody said
    anything, and may have expired.
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
    reason: str | None
    override: Override
    override_reason: str
    override_at: datetime | None
    expires_at: datetime | None
    ticket: str | None


@dataclass(frozen=True, slots=True)
class Span:
    """Failing tests are listed over `[since, until)`."""

    since: datetime
    until: datetime


cases = CaseRow.__table__
states = CaseStateRow.__table__
overrides = CaseOverrideRow.__table__
tickets = TicketRow.__table__

HERE: BindParameter[int] = bindparam("of_repository")
STATUS: BindParameter[str] = bindparam("of_status")
LIMIT: BindParameter[int] = bindparam("at_most")

_SAME_STATE = and_(states.c.repository_id == cases.c.repository_id, states.c.no == cases.c.no)
_SAME_TICKET = and_(tickets.c.repository_id == cases.c.repository_id, tickets.c.no == cases.c.no)
SAME_OVERRIDE = and_(
    overrides.c.repository_id == cases.c.repository_id,
    overrides.c.no == cases.c.no,
    overrides.c.is_open.is_(True),
)
RECORDS = (
    select(
        cases.c.no,
        cases.c.id,
        cases.c.name,
        cases.c.classname,
        cases.c.parent,
        cases.c.file,
        cases.c.variant,
        cases.c.owners,
        cases.c.status,
        cases.c.status_since,
        cases.c.impact_rank,
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
    .outerjoin(tickets, _SAME_TICKET)
    .where(cases.c.repository_id == HERE)
)
SELECT_NUMBERED = RECORDS.where(cases.c.no.in_(bindparam("of_numbers", expanding=True)))

_UNHEALTHY = RECORDS.where(cases.c.status == STATUS).limit(LIMIT)
_KEY = tuple_(cases.c.impact_rank, cases.c.id)
_GIVEN_KEY = tuple_(bindparam("of_rank"), bindparam("of_id"))
_DOWN = (cases.c.impact_rank, cases.c.id)
_UP = (desc(cases.c.impact_rank), desc(cases.c.id))
# The bounds on the rank alone say nothing new, but are what an index is asked for.
SELECT_UNHEALTHY_AFTER = _UNHEALTHY.where(
    cases.c.impact_rank >= bindparam("of_rank"), _KEY > _GIVEN_KEY
).order_by(*_DOWN)
SELECT_UNHEALTHY_BEFORE = _UNHEALTHY.where(
    cases.c.impact_rank <= bindparam("of_rank"), _KEY < _GIVEN_KEY
).order_by(*_UP)
SELECT_UNHEALTHY_FIRST = _UNHEALTHY.order_by(*_DOWN)
SELECT_UNHEALTHY_LAST = _UNHEALTHY.order_by(*_UP)
COUNT_UNHEALTHY = (
    select(func.count())
    .select_from(cases)
    .where(cases.c.repository_id == HERE, cases.c.status == STATUS)
)


@dataclass(frozen=True, slots=True)
class UnhealthyRows:
    """Tests of one status, most impact first."""

    repository_id: int
    status: Health

    def count(self, session: Connection) -> int:
        """How many there are."""
        many: int = session.execute(COUNT_UNHEALTHY, self._binds()).scalar_one()
        return many

    def after(self, session: Connection, key: Key | None, limit: int) -> list[ListedCase]:
        """Those behind the key, or the first ones."""
        if key is None:
            return self._found(session, SELECT_UNHEALTHY_FIRST, None, limit)
        return self._found(session, SELECT_UNHEALTHY_AFTER, key, limit)

    def before(self, session: Connection, key: Key | None, limit: int) -> list[ListedCase]:
        """Those before the key, or the last ones, in the list's order."""
        question = SELECT_UNHEALTHY_LAST if key is None else SELECT_UNHEALTHY_BEFORE
        return self._found(session, question, key, limit)[::-1]

    def key(self, row: ListedCase) -> Key:
        """A row's place in the order."""
        return -row.impact, row.id

    def _found(
        self,
        session: Connection,
        question: Select[*tuple[object, ...]],
        key: Key | None,
        limit: int,
    ) -> list[ListedCase]:
        told: dict[str, object] = {**self._binds(), "at_most": limit}
        if key is not None:
            told |= {"of_rank": key[0], "of_id": key[1]}
        return [_listed(row) for row in session.execute(question, told)]

    def _binds(self) -> dict[str, object]:
        return {"of_repository": self.repository_id, "of_status": self.status.value}


def records(session: Connection, repository_id: int, nos: Sequence[int]) -> list[ListedCase]:
    """Tests by their numbers, in that order."""
    if not nos:
        return []
    told = {"of_repository": repository_id, "of_numbers": nos}
    found = {row.no: _listed(row) for row in session.execute(SELECT_NUMBERED, told)}
    return [found[no] for no in nos if no in found]


def _listed(row: Row[*tuple[object, ...]]) -> ListedCase:
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
        reason=row.reason,
        override=Override.UNSPECIFIED if row.override is None else Override(row.override),
        override_reason=row.override_reason or "",
        override_at=row.override_at,
        expires_at=row.expires_at,
        ticket=row.html_url,
    )
