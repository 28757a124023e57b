"""The list of quarantined tests, newest first: those overridden, and those of each status.

Each of these has an index in the order of the list, is read as far as a page goes, and merged.
"""

from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, Row, and_, bindparam, func, or_, select

from service.database import paging
from service.database.types import Utc
from service.testhealth.store.keyset import Key, Keyset
from service.testhealth.store.listings import (
    COUNT_UNHEALTHY,
    HERE,
    SAME_OVERRIDE,
    STATUS,
    cases,
    overrides,
)
from service.vocabulary import Health, Override


class Moment(NamedTuple):
    """A quarantined test's place: when its override or status began, and its number."""

    at: datetime
    no: int


_NOW: BindParameter[datetime] = bindparam("now", type_=Utc)
_IN_FORCE = or_(overrides.c.expires_at.is_(None), overrides.c.expires_at > _NOW)
_ALWAYS = (
    overrides.c.repository_id == HERE,
    overrides.c.is_open.is_(True),
    overrides.c.override == Override.ALWAYS_QUARANTINE.value,
    _IN_FORCE,
)
_OVERRIDDEN = Keyset(
    select(overrides.c.at, overrides.c.no).where(*_ALWAYS),
    (overrides.c.at, overrides.c.no),
    is_descending=True,
)
_OF_STATUS = Keyset(
    select(cases.c.status_since.label("at"), cases.c.no)
    .select_from(cases)
    .outerjoin(overrides, SAME_OVERRIDE)
    .where(cases.c.repository_id == HERE, cases.c.status == STATUS)
    .where(or_(overrides.c.id.is_(None), overrides.c.expires_at <= _NOW)),
    (cases.c.status_since, cases.c.no),
    is_descending=True,
)
COUNT_ALWAYS = select(func.count()).select_from(overrides).where(*_ALWAYS)
COUNT_OVERRIDDEN = (
    select(func.count())
    .select_from(overrides)
    .join(
        cases,
        and_(cases.c.repository_id == overrides.c.repository_id, cases.c.no == overrides.c.no),
    )
    .where(
        overrides.c.repository_id == HERE,
        overrides.c.is_open.is_(True),
        _IN_FORCE,
        cases.c.status == STATUS,
    )
)


@dataclass(frozen=True, slots=True)
class QuarantinedTests:
    """Tests quarantined at `now`, newest first; `statuses` are those that quarantine."""

    repository_id: int
    statuses: tuple[Health, ...]
    now: datetime

    def count(self, session: Connection) -> int:
        """Return how many there are."""
        asked = {"of_repository": self.repository_id, "now": self.now}
        total: int = session.execute(COUNT_ALWAYS, asked).scalar_one()
        for status in self.statuses:
            of_status = asked | {"of_status": status.value}
            total += session.execute(COUNT_UNHEALTHY, of_status).scalar_one()
            total -= session.execute(COUNT_OVERRIDDEN, of_status).scalar_one()
        return total

    def after(self, session: Connection, key: Key | None, limit: int) -> list[Moment]:
        """Return those after the key, which are older, or the newest ones."""
        lists = (
            map(_moment, rows.after(session, asked, _parsed(key), limit))
            for rows, asked in self._parts()
        )
        return list(islice(merge(*lists, reverse=True), limit))

    def before(self, session: Connection, key: Key | None, limit: int) -> list[Moment]:
        """Return those before the key, or the oldest ones, in the list's order."""
        lists = (
            map(_moment, reversed(rows.before(session, asked, _parsed(key), limit)))
            for rows, asked in self._parts()
        )
        return list(islice(merge(*lists), limit))[::-1]

    def key(self, row: Moment) -> Key:
        """Return a row's place in the order."""
        return paging.micros(row.at), row.no

    def _parts(self) -> list[tuple[Keyset, dict[str, object]]]:
        asked: dict[str, object] = {"of_repository": self.repository_id, "now": self.now}
        of_statuses = [
            (_OF_STATUS, asked | {"of_status": status.value}) for status in self.statuses
        ]
        return [(_OVERRIDDEN, asked), *of_statuses]


def _parsed(key: Key | None) -> tuple[datetime, int] | None:
    return None if key is None else (paging.instant(int(key[0])), int(key[1]))


def _moment(row: Row[*tuple[object, ...]]) -> Moment:
    return Moment(row.at, row.no)
