"""Lists of tests by their numbers, which never change while everything else about a test does."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sqlalchemy import BindParameter, ColumnElement, Connection, Row, Select, bindparam

from service.database import bulk

ABOVE_ALL = 2**31 - 1
"""Above the number of every test."""


class NumberedTests(Protocol):
    """The numbers of the tests of a list."""

    def count(self, session: Connection) -> int:
        """Return how many there are."""
        ...

    def top(self, session: Connection, limit: int) -> list[int]:
        """Return the first ones in the order of the list."""
        ...

    def among(self, session: Connection, nos: Sequence[int]) -> set[int]:
        """Return those of these numbers that are in the list."""
        ...

    def after(self, session: Connection, no: int, limit: int) -> list[int]:
        """Return the lowest numbers above this one, the lowest first."""
        ...

    def before(self, session: Connection, no: int, limit: int) -> list[int]:
        """Return the highest numbers below this one, the lowest first."""
        ...


Numbers = Row[int, *tuple[object, ...]]
"""A row that begins with the number of a test."""

Asked = Mapping[str, object]
"""The parameters of a statement."""


class Numbered:
    """The tests that a statement selects, whose first column is their number."""

    def __init__(
        self,
        rows: Select[int, *tuple[object, ...]],
        number: ColumnElement[int],
        order: Sequence[ColumnElement[object]],
    ) -> None:
        limited = rows.limit(bindparam("at_most"))
        limit: BindParameter[int] = bindparam("limit_no")
        self._top = limited.order_by(*order)
        self._among = rows.where(bulk.among(number, "of_given"))
        self._after = limited.where(number > limit).order_by(number.asc())
        self._before = limited.where(number < limit).order_by(number.desc())

    def top(
        self, session: Connection, asked: Asked, limit: int
    ) -> list[Row[int, *tuple[object, ...]]]:
        """Return the first rows in the order of the list."""
        return list(session.execute(self._top, {**asked, "at_most": limit}))

    def among(self, session: Connection, asked: Asked, nos: Sequence[int]) -> set[int]:
        """Return those of these numbers that are in the list."""
        if not nos:
            return set()
        found = session.execute(self._among, {**asked, "of_given": nos})
        return set(found.scalars())

    def after(self, session: Connection, asked: Asked, no: int, limit: int) -> list[int]:
        """Return the lowest numbers above this one, the lowest first."""
        return self._beside(session, self._after, asked, (no, limit))

    def before(self, session: Connection, asked: Asked, no: int, limit: int) -> list[int]:
        """Return the highest numbers below this one, the lowest first."""
        return self._beside(session, self._before, asked, (no, limit))[::-1]

    def _beside(
        self,
        session: Connection,
        statement: Select[int, *tuple[object, ...]],
        asked: Asked,
        place: tuple[int, int],
    ) -> list[int]:
        no, limit = place
        found = session.execute(statement, {**asked, "limit_no": no, "at_most": limit})
        return list(found.scalars())
