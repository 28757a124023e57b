"""Tests of an upload by their ids, many at a time: their numbers, and which facts are new.

Most tests have run and passed before, so a large upload changes few test rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, Select, bindparam, select

from service.database import bulk
from service.database.codec import Raw
from service.database.types import Utc
from service.testhealth.store.tables_tests import CaseAliasRow, CaseRow


class Numbered(NamedTuple):
    """A test by its number and its own id."""

    no: int
    id: str


class Numbers(NamedTuple):
    """Id → number of a test, known or not.

    By number those of which a run is to be noted, `unrun`, and those of which a pass is: these
    and `unpassed` ones.
    """

    by_id: dict[str, int]
    unrun: set[int]
    unpassed: set[int]


class Aliased(NamedTuple):
    """Other id → the test that it means, known or not; what is to be noted as of `Numbers`."""

    by_id: dict[str, Numbered]
    unrun: set[int]
    unpassed: set[int]


cases = CaseRow.__table__
aliases = CaseAliasRow.__table__

_HERE: BindParameter[int] = bindparam("of_repository")
_AT: BindParameter[datetime] = bindparam("to_at", type_=Utc)
_TEXTS = bulk.placed()
_FOUND = cases.c.no.is_not(None)
_IS_UNRUN = cases.c.is_known.is_(False) | (cases.c.first_run_at > _AT)
_TO_NOTE = (
    *bulk.together(_FOUND & _IS_UNRUN, cases.c.no),
    *bulk.together(_FOUND & cases.c.ever_passed.is_(False), cases.c.no),
)
SELECT_NUMBERS = select(*bulk.together(_FOUND, _TEXTS.c.key, cases.c.no), *_TO_NOTE).select_from(
    _TEXTS.outerjoin(cases, (cases.c.repository_id == _HERE) & (cases.c.id == _TEXTS.c.value))
)
SELECT_ALIASED = select(
    *bulk.together(_FOUND, _TEXTS.c.key, cases.c.no, cases.c.id), *_TO_NOTE
).select_from(
    _TEXTS.outerjoin(
        aliases, (aliases.c.repository_id == _HERE) & (aliases.c.id == _TEXTS.c.value)
    ).outerjoin(
        cases,
        (cases.c.repository_id == aliases.c.repository_id) & (cases.c.no == aliases.c.no),
    )
)


def numbers_of(
    session: Connection, repository_id: int, ids: Iterable[str], at: datetime
) -> Numbers:
    """The tests of these very ids, each as it was given, if they run at an instant."""
    numbers = Numbers({}, set(), set())
    binds = _binds(repository_id, at)
    for some, (places, nos, unrun, unpassed) in _columns_of_ids(
        session, SELECT_NUMBERS, ids, binds
    ):
        numbers.by_id.update(zip(map(some.__getitem__, places), nos, strict=True))
        numbers.unrun.update(unrun)
        numbers.unpassed.update(unpassed)
    return numbers


def aliased(session: Connection, repository_id: int, ids: Iterable[str], at: datetime) -> Aliased:
    """The tests of these other ids; ids that are nobody's are left out."""
    tests_meant = Aliased({}, set(), set())
    binds = _binds(repository_id, at)
    for some, (places, nos, own, unrun, unpassed) in _columns_of_ids(
        session, SELECT_ALIASED, ids, binds
    ):
        tests = map(Numbered, nos, own)
        tests_meant.by_id.update(zip(map(some.__getitem__, places), tests, strict=True))
        tests_meant.unrun.update(unrun)
        tests_meant.unpassed.update(unpassed)
    return tests_meant


def _columns_of_ids(
    session: Connection,
    question: Select[*tuple[object, ...]],
    ids: Iterable[str],
    binds: dict[str, object],
) -> Iterator[tuple[Sequence[str], Raw]]:
    """Some of the ids, and columns of what is found, first of all its places among these."""
    # Sorted, so that a statement reads neighbours of the index and not all of it.
    for some in bulk.parts(sorted(ids)):
        row = session.execute(question, bulk.text_params(some) | binds).one()
        yield some, bulk.columns_of(tuple(row))


def _binds(repository_id: int, at: datetime) -> dict[str, object]:
    return {"of_repository": repository_id, "to_at": at}
