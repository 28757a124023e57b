"""The list of quarantined tests: those overridden, and those of each status, newest first.

A stream for each of them has an index in its order, and is read as far as a page goes.
"""

from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    desc,
    func,
    or_,
    select,
    tuple_,
)

from service.database.direct import Direct
from service.database.types import Id, Utc, instant
from service.testhealth.store.listings import (
    COUNT_UNHEALTHY,
    HERE,
    LIMIT,
    SAME_OVERRIDE,
    STATUS,
    cases,
    overrides,
)
from service.vocabulary import Health, Override

Stream = Select[datetime, int]
"""A question for quarantined tests: since when, and their numbers."""

Streams = dict[str, Direct]
"""The same asked in four ways: after a key, before one, first and last ones."""


class Moment(NamedTuple):
    """A quarantined test's place: since when, and its number."""

    at: datetime
    no: int


_NOW: BindParameter[datetime] = bindparam("now", type_=Utc)
_STANDS = or_(overrides.c.expires_at.is_(None), overrides.c.expires_at > _NOW)
_ALWAYS = (
    overrides.c.repository_id == HERE,
    overrides.c.is_open.is_(True),
    overrides.c.override == Override.ALWAYS_QUARANTINE.value,
    _STANDS,
)
_always = select(overrides.c.at, overrides.c.no).where(*_ALWAYS).limit(LIMIT)
_auto = (
    select(cases.c.status_since, cases.c.no)
    .select_from(cases)
    .outerjoin(overrides, SAME_OVERRIDE)
    .where(cases.c.repository_id == HERE, cases.c.status == STATUS)
    .where(or_(overrides.c.id.is_(None), overrides.c.expires_at <= _NOW))
    .limit(LIMIT)
)
_GIVEN_MOMENT = tuple_(bindparam("of_moment", type_=Utc), bindparam("of_number", type_=Id))
_AT_MOMENT = bindparam("of_moment", type_=Utc)


def _by_time(stream: Stream, at: ColumnElement[datetime], no: ColumnElement[int]) -> Streams:
    """One stream of quarantined tests, newest first."""
    key = tuple_(at, no)
    down, up = (desc(at), desc(no)), (at, no)
    return {
        "after": Direct(stream.where(at <= _AT_MOMENT, key < _GIVEN_MOMENT).order_by(*down)),
        "before": Direct(stream.where(at >= _AT_MOMENT, key > _GIVEN_MOMENT).order_by(*up)),
        "first": Direct(stream.order_by(*down)),
        "last": Direct(stream.order_by(*up)),
    }


SELECT_ALWAYS = _by_time(_always, overrides.c.at, overrides.c.no)
SELECT_AUTO = _by_time(_auto, cases.c.status_since, cases.c.no)
COUNT_ALWAYS = Direct(select(func.count()).select_from(overrides).where(*_ALWAYS))
COUNT_OVERRIDDEN = Direct(
    select(func.count())
    .select_from(overrides)
    .join(
        cases,
        and_(cases.c.repository_id == overrides.c.repository_id, cases.c.no == overrides.c.no),
    )
    .where(
        overrides.c.repository_id == HERE,
        overrides.c.is_open.is_(True),
        _STANDS,
        cases.c.status == STATUS,
    )
)


@dataclass(frozen=True, slots=True)
class QuarantinedRows:
    """Tests quarantined at `now`, newest first; `statuses` are those that quarantine."""

    repository_id: int
    statuses: tuple[Health, ...]
    now: datetime

    def count(self, session: Connection) -> int:
        """How many there are."""
        many = COUNT_ALWAYS.number(session, self._binds())
        for status in self.statuses:
            told = {**self._binds(), "of_status": status.value}
            many += COUNT_UNHEALTHY.number(session, told)
            many -= COUNT_OVERRIDDEN.number(session, told)
        return many

    def after(self, session: Connection, key: Moment | None, limit: int) -> list[Moment]:
        """Those behind the key, which are older, or the newest ones."""
        found = self._streams(session, "first" if key is None else "after", key, limit)
        return list(islice(merge(*found, reverse=True), limit))

    def before(self, session: Connection, key: Moment | None, limit: int) -> list[Moment]:
        """Those before the key, or the oldest ones, in the list's order."""
        found = self._streams(session, "last" if key is None else "before", key, limit)
        return list(islice(merge(*found), limit))[::-1]

    def key(self, row: Moment) -> Moment:
        """A row's place in the order."""
        return row

    def _streams(
        self, session: Connection, way: str, key: Moment | None, limit: int
    ) -> list[list[Moment]]:
        told: dict[str, object] = {**self._binds(), "at_most": limit}
        if key is not None:
            told |= {"of_moment": key.at, "of_number": key.no}
        found = [_moments(session, SELECT_ALWAYS[way], told)]
        for status in self.statuses:
            by_status = {**told, "of_status": status.value}
            found.append(_moments(session, SELECT_AUTO[way], by_status))
        return found

    def _binds(self) -> dict[str, object]:
        return {"of_repository": self.repository_id, "now": self.now}


def _moments(session: Connection, question: Direct, told: dict[str, object]) -> list[Moment]:
    return [Moment(instant(at), no) for at, no in question.rows(session, told)]
