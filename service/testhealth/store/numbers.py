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


class Numbers(NamedTuple):
    """Tests by id, known or not, each at the number that it has.

    `own_ids` has other ids of tests → their own ones. By number those of which a run is to be
    noted, `unrun`, and those of which a pass is: these and `unpassed` ones.
    """

    by_id: dict[str, int]
    own_ids: dict[str, str]
    unrun: set[int]
    unpassed: set[int]

    def number_of(self, test_id: str) -> int | None:
        """Return the number of the test that has this id, or has it as another one."""
        return self.by_id.get(self.own_ids.get(test_id, test_id))

    def add(self, others: "Numbers") -> None:
        """Add other tests."""
        self.by_id.update(others.by_id)
        self.own_ids.update(others.own_ids)
        self.unrun.update(others.unrun)
        self.unpassed.update(others.unpassed)


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
    session: Connection, repository_id: int, ids: Sequence[str], at: datetime
) -> Numbers:
    """The tests that have these ids, or have them as other ids, if they run at an instant."""
    numbers = Numbers({}, {}, set(), set())
    binds: dict[str, object] = {"of_repository": repository_id, "to_at": at}
    for some, (places, nos, unrun, unpassed) in _columns_of_ids(
        session, SELECT_NUMBERS, ids, binds
    ):
        numbers.by_id.update(zip(map(some.__getitem__, places), nos, strict=True))
        numbers.unrun.update(unrun)
        numbers.unpassed.update(unpassed)
    unknown = [each for each in ids if each not in numbers.by_id]
    for some, (places, nos, own, unrun, unpassed) in _columns_of_ids(
        session, SELECT_ALIASED, unknown, binds
    ):
        numbers.own_ids.update(zip(map(some.__getitem__, places), own, strict=True))
        numbers.by_id.update(zip(own, nos, strict=True))
        numbers.unrun.update(unrun)
        numbers.unpassed.update(unpassed)
    return numbers


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
