"""The list of quarantined tests, newest first: those overridden, and those of each status.

Each of these has an index in the order of the list; the first ones of each are merged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import islice

from sqlalchemy import BindParameter, Connection, and_, bindparam, func, or_, select

from service.database.types import Utc
from service.testhealth.store.listings import (
    COUNT_UNHEALTHY,
    HERE,
    IS_OF_STATUS,
    SAME_OVERRIDE,
    cases,
    overrides,
)
from service.testhealth.store.numbered import Numbered
from service.vocabulary import Health, Override

_NOW: BindParameter[datetime] = bindparam("now", type_=Utc)
_IN_FORCE = or_(overrides.c.expires_at.is_(None), overrides.c.expires_at > _NOW)
_ALWAYS = (
    overrides.c.repository_id == HERE,
    overrides.c.is_open.is_(True),
    overrides.c.override == Override.ALWAYS_QUARANTINE.value,
    _IN_FORCE,
)
_OVERRIDDEN = Numbered(
    select(overrides.c.no, overrides.c.at).where(*_ALWAYS),
    overrides.c.no,
    (overrides.c.at.desc(), overrides.c.no.desc()),
)
_OF_STATUS = Numbered(
    select(cases.c.no, cases.c.status_since.label("at"))
    .select_from(cases)
    .outerjoin(overrides, SAME_OVERRIDE)
    .where(cases.c.repository_id == HERE, IS_OF_STATUS)
    .where(or_(overrides.c.id.is_(None), overrides.c.expires_at <= _NOW)),
    cases.c.no,
    (cases.c.status_since.desc(), cases.c.no.desc()),
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
        IS_OF_STATUS,
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

    def top(self, session: Connection, limit: int) -> list[int]:
        """Return the first numbers in the order of the list."""
        lists = [
            [(row.at, int(row.no)) for row in rows.top(session, asked, limit)]
            for rows, asked in self._parts()
        ]
        return [no for _, no in islice(merge(*lists, reverse=True), limit)]

    def among(self, session: Connection, nos: Sequence[int]) -> set[int]:
        """Return those of these numbers that are in the list."""
        found = (rows.among(session, asked, nos) for rows, asked in self._parts())
        return set[int]().union(*found)

    def after(self, session: Connection, no: int, limit: int) -> list[int]:
        """Return the lowest numbers above this one, the lowest first."""
        lists = (rows.after(session, asked, no, limit) for rows, asked in self._parts())
        return list(islice(merge(*lists), limit))

    def before(self, session: Connection, no: int, limit: int) -> list[int]:
        """Return the highest numbers below this one, the lowest first."""
        lists = (rows.before(session, asked, no, limit) for rows, asked in self._parts())
        return list(merge(*lists))[-limit:]

    def _parts(self) -> list[tuple[Numbered, dict[str, object]]]:
        asked: dict[str, object] = {"of_repository": self.repository_id, "now": self.now}
        of_statuses = [
            (_OF_STATUS, asked | {"of_status": status.value}) for status in self.statuses
        ]
        return [(_OVERRIDDEN, asked), *of_statuses]
