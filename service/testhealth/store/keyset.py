"""Keyset paging: the rows of a list after a key, or before one, in the order of its columns."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Column, Connection, Row, Select, bindparam, tuple_

Key = tuple[str | int | float, ...]
"""A row's place in the order of a list, as a page token can hold it."""


class Keyset:
    """A list in the order of its columns, all ascending or all descending; the last is unique."""

    def __init__(
        self,
        rows: Select[*tuple[object, ...]],
        order: Sequence[Column[object]],
        *,
        is_descending: bool = False,
    ) -> None:
        forward = [column.desc() if is_descending else column.asc() for column in order]
        backward = [column.asc() if is_descending else column.desc() for column in order]
        binds = [bindparam(f"key_{place}", type_=column.type) for place, column in enumerate(order)]
        key, given = tuple_(*order), tuple_(*binds)
        higher = (order[0] >= binds[0]) & (key > given)
        lower = (order[0] <= binds[0]) & (key < given)
        limited = rows.limit(bindparam("at_most"))
        self._first = limited.order_by(*forward)
        self._last = limited.order_by(*backward)
        # The bound of the first column alone adds nothing, but lets SQLite use the index.
        self._after = self._first.where(lower if is_descending else higher)
        self._before = self._last.where(higher if is_descending else lower)

    def after(
        self,
        session: Connection,
        asked: Mapping[str, object],
        key: Sequence[object] | None,
        limit: int,
    ) -> list[Row[*tuple[object, ...]]]:
        """Return the rows after the key, or the first ones."""
        statement = self._first if key is None else self._after
        return list(session.execute(statement, _binds(asked, key, limit)))

    def before(
        self,
        session: Connection,
        asked: Mapping[str, object],
        key: Sequence[object] | None,
        limit: int,
    ) -> list[Row[*tuple[object, ...]]]:
        """Return the rows before the key, or the last ones, in the list's order."""
        statement = self._last if key is None else self._before
        return list(session.execute(statement, _binds(asked, key, limit)))[::-1]


def _binds(
    asked: Mapping[str, object], key: Sequence[object] | None, limit: int
) -> dict[str, object]:
    places = {} if key is None else {f"key_{place}": part for place, part in enumerate(key)}
    return {**asked, **places, "at_most": limit}
