"""Tests of an upload by their ids, many at a time: their numbers, and what is to be noted of them.

When a test ran last follows with its days (`tallies.py`), and most tests have run and passed
before: so of a large upload next to nothing has to be noted.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from enum import IntEnum
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, Text, bindparam, case, select

from service.store import bulk
from service.store.direct import Direct
from service.store.tables.tests import CaseAliasRow, CaseRow
from service.store.types import Utc

NOTED_FOR = timedelta(days=30)
"""So long ago the last run may be as it is noted, before another one is noted at once.

Tests are forgotten 400 days after the run that is noted (FLAKY.md 4).
"""


class Lack(IntEnum):
    """What is to be noted of a test: that it ran, or that it passed if it did; or nothing."""

    RUN = 0
    PASS = 1
    NOTHING = 2


class Numbered(NamedTuple):
    """A test by its own id and its number, and what is to be noted of it."""

    id: str
    no: int
    lack: int


cases = CaseRow.__table__
aliases = CaseAliasRow.__table__

_HERE: BindParameter[int] = bindparam("of_repository")
_IDS = bulk.firsts(Text)
_AT: BindParameter[datetime] = bindparam("to_at", type_=Utc)
_RECENT: BindParameter[datetime] = bindparam("of_recent", type_=Utc)
_LACK = case(
    (
        cases.c.is_known.is_(False)
        | (cases.c.first_run_at > _AT)
        | (cases.c.last_run_at < _RECENT),
        Lack.RUN.value,
    ),
    (cases.c.ever_passed.is_(False), Lack.PASS.value),
    else_=Lack.NOTHING.value,
)
SELECT_NUMBERED = Direct(
    select(cases.c.id, cases.c.no, _LACK).where(
        cases.c.repository_id == _HERE, cases.c.id.in_(_IDS)
    )
)
SELECT_ALIASED = Direct(
    select(aliases.c.id, cases.c.id, cases.c.no, _LACK)
    .join(cases, (cases.c.repository_id == aliases.c.repository_id) & (cases.c.no == aliases.c.no))
    .where(aliases.c.repository_id == _HERE, aliases.c.id.in_(_IDS))
)


class Numbers(NamedTuple):
    """Id → number of a test, known or not; number → what of its run is to be noted, if anything."""

    by_id: dict[str, int]
    lacks: dict[int, int]


def numbers_of(
    session: Connection, repository_id: int, ids: Iterable[str], at: datetime
) -> Numbers:
    """The tests of these very ids, if they run at an instant."""
    found = Numbers({}, {})
    for told in _asked(repository_id, ids, at):
        rows = SELECT_NUMBERED.rows(session, told)
        if rows:
            known, nos, lacks = zip(*rows, strict=True)
            found.by_id.update(zip(known, nos, strict=True))
            if min(lacks) < Lack.NOTHING:
                pairs = zip(nos, lacks, strict=True)
                found.lacks.update((no, lack) for no, lack in pairs if lack < Lack.NOTHING)
    return found


def aliased(
    session: Connection, repository_id: int, ids: Iterable[str], at: datetime
) -> dict[str, Numbered]:
    """Other id → the test that it means, known or not; ids that are nobody's are left out."""
    return {
        asked_id: Numbered(*found)
        for told in _asked(repository_id, ids, at)
        for asked_id, *found in SELECT_ALIASED.rows(session, told)
    }


def _asked(repository_id: int, ids: Iterable[str], at: datetime) -> Iterator[dict[str, object]]:
    common = {"of_repository": repository_id, "to_at": at, "of_recent": at - NOTED_FOR}
    # Sorted, so that a statement reads neighbours of the index and not all of it.
    for some in bulk.parts(sorted(set(ids))):
        yield bulk.told((each,) for each in some) | common
