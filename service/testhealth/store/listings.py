"""The lists of unhealthy and of failing tests: each question has an index in its order.

Lists of tests are told as answers to three questions: how many there are, those behind a key,
those before one (`service/testhealth/operations/pages.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import orjson
from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    and_,
    bindparam,
    desc,
    exists,
    func,
    or_,
    select,
    tuple_,
)

from service.database import bulk
from service.database.codec import Raw
from service.database.direct import Direct
from service.database.types import instant
from service.testhealth.store.tables_tests import (
    CaseOverrideRow,
    CaseRow,
    CaseStateEventRow,
    CaseStateRow,
    TicketRow,
)
from service.vocabulary import Health, Override

Key = tuple[str | int | float, ...]
"""A row's place in a list's order, as a page token can hold it."""

LISTED_MAX = 10_000
"""Tests kept as they were last read, of any repository: some 20 MiB."""


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
    first_run_at: datetime
    has_failed: bool
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
events = CaseStateEventRow.__table__
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
        cases.c.variant,
        cases.c.owners,
        cases.c.status,
        cases.c.status_since,
        cases.c.impact_rank,
        cases.c.first_run_at,
        cases.c.last_failed_at.is_not(None).label("has_failed"),
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
SELECT_NUMBERED = Direct(RECORDS.where(bulk.among(cases.c.no, "of_numbers")))

SELECT_MARKED = Direct(
    select(cases.c.no).where(
        cases.c.repository_id == HERE,
        bulk.among(cases.c.no, "of_numbers"),
        or_(
            cases.c.status != Health.HEALTHY.value,
            _has(overrides.c.repository_id, overrides.c.no),
            _has(events.c.repository_id, events.c.no),
        ),
    )
)

_UNHEALTHY = RECORDS.where(cases.c.status == STATUS).limit(LIMIT)
_KEY = tuple_(cases.c.impact_rank, cases.c.id)
_GIVEN_KEY = tuple_(bindparam("of_rank"), bindparam("of_id"))
_DOWN = (cases.c.impact_rank, cases.c.id)
_UP = (desc(cases.c.impact_rank), desc(cases.c.id))
# The bounds on the rank alone say nothing new, but are what an index is asked for.
SELECT_UNHEALTHY_AFTER = Direct(
    _UNHEALTHY.where(cases.c.impact_rank >= bindparam("of_rank"), _KEY > _GIVEN_KEY).order_by(
        *_DOWN
    )
)
SELECT_UNHEALTHY_BEFORE = Direct(
    _UNHEALTHY.where(cases.c.impact_rank <= bindparam("of_rank"), _KEY < _GIVEN_KEY).order_by(*_UP)
)
SELECT_UNHEALTHY_FIRST = Direct(_UNHEALTHY.order_by(*_DOWN))
SELECT_UNHEALTHY_LAST = Direct(_UNHEALTHY.order_by(*_UP))
COUNT_UNHEALTHY = Direct(
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
        return COUNT_UNHEALTHY.number(session, self._binds())

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
        self, session: Connection, question: Direct, key: Key | None, limit: int
    ) -> list[ListedCase]:
        told: dict[str, object] = {**self._binds(), "at_most": limit}
        if key is not None:
            told |= {"of_rank": key[0], "of_id": key[1]}
        return list(map(_listed, question.rows(session, told)))

    def _binds(self) -> dict[str, object]:
        return {"of_repository": self.repository_id, "of_status": self.status.value}


def marked(session: Connection, repository_id: int, nos: Sequence[int]) -> list[int]:
    """Those of the tests that may be, or have been, quarantined; all others never were.

    They are unhealthy or have a history, or somebody said something of their quarantine.
    """
    told = {"of_repository": repository_id, "of_numbers": nos}
    return [no for (no,) in SELECT_MARKED.rows(session, told)] if nos else []


def records(session: Connection, repository_id: int, nos: Sequence[int]) -> list[ListedCase]:
    """Tests by their numbers, in that order."""
    if not nos:
        return []
    told = {"of_repository": repository_id, "of_numbers": nos}
    found = {row[0]: row for row in SELECT_NUMBERED.rows(session, told)}
    return [_listed(found[no]) for no in nos if no in found]


# What was read before and is read again is the same object, from which whoever keeps something
# beside a test sees that nothing of it is different.
@lru_cache(LISTED_MAX)
def _listed(row: Raw) -> ListedCase:
    no, test_id, name, classname, parent, file, variant, owners, status, *times = row[:13]
    since, rank, first_run_at, has_failed = times
    reason, override, override_reason, override_at, expires_at, ticket = row[13:]
    return ListedCase(
        no=no,
        id=test_id,
        name=name,
        classname=classname,
        parent=parent,
        file=file,
        variant=variant,
        owners=tuple(orjson.loads(owners)),
        status=Health(status),
        since=instant(since),
        impact=-rank,
        first_run_at=instant(first_run_at),
        has_failed=bool(has_failed),
        reason=reason,
        override=Override.UNSPECIFIED if override is None else Override(override),
        override_reason=override_reason or "",
        override_at=None if override_at is None else instant(override_at),
        expires_at=None if expires_at is None else instant(expires_at),
        ticket=ticket,
    )
