"""Many rows in one statement: they travel as one JSON text that the database takes apart.

A parameter for each value misses the goal of 6 s for an upload of 100,000 new tests: so many rows
of six columns took 2.0 s of CPU on PostgreSQL (here 0.2 s) and 0.7 s on SQLite (here 0.5 s).
A statement over `inserted()`, `rows()` or `firsts()` is built once at import and sent with
`params()`. One that asks for a few tests has their numbers in one parameter, too: `among()`. One
that looks very many up has its answer in one row: `placed()` and `together()`.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import orjson
from sqlalchemy import (
    ARRAY,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Executable,
    Integer,
    Select,
    Table,
    TableValuedAlias,
    Text,
    bindparam,
    cast,
    column,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine

from service.database.codec import Raw

T = TypeVar("T")

AT_ONCE = 2000
"""Rows of one statement (docs/design/transactions.md 2)."""

ROWS = "of_rows"
NONE = "[]"
SAME = "same_"
AMONG_ON_SQLITE = "{} IN (SELECT value FROM json_each({}))"
PLACED_ON_POSTGRESQL = (
    "(SELECT value, n - 1 AS key"
    " FROM json_array_elements_text(CAST({} AS json)) WITH ORDINALITY AS texts (value, n))"
)

OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME


class _Each(FunctionElement[object]):
    """The elements of a JSON text's outermost array, as a table of one column."""

    name = "each"
    inherit_cache = True


class _Among(FunctionElement[bool]):
    """A test whether a number is one of those in a parameter."""

    # Of no type: SQLite asks no index for a truth that is compared with 1.
    name = "among"
    inherit_cache = True


class _Numbers(TypeDecorator[Sequence[int]]):
    """Numbers as one parameter."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str] | TypeEngine[Sequence[int]]:
        """An array where there is one, else JSON."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(Text())
        return dialect.type_descriptor(ARRAY(Integer))

    def process_bind_param(
        self, value: Sequence[int] | None, dialect: Dialect
    ) -> list[int] | str | None:
        """Return what the driver gets."""
        if value is None:
            return None
        return orjson.dumps(list(value)).decode() if dialect.name == "sqlite" else list(value)


class _Placed(FunctionElement[object]):
    """The texts of a JSON array and their places in it, as a table."""

    name = "placed"
    inherit_cache = True


class _Together(FunctionElement[str]):
    """All values of a column as one JSON array."""

    name = "together"
    type = Text()
    inherit_cache = True


class _At(FunctionElement[object]):
    """The value at a place of such an element, untyped."""

    name = "at"
    inherit_cache = True


@compiles(_Each, "sqlite")
@compiles(_Placed, "sqlite")
def _each_on_sqlite(element: _Each | _Placed, compiler: SQLCompiler, **more: object) -> str:
    return f"json_each({compiler.process(element.clauses, **more)})"


@compiles(_Each, "postgresql")
def _each_on_postgresql(element: _Each, compiler: SQLCompiler, **more: object) -> str:
    return f"json_array_elements(CAST({compiler.process(element.clauses, **more)} AS json))"


@compiles(_Among, "sqlite")
def _among_on_sqlite(element: _Among, compiler: SQLCompiler, **more: object) -> str:
    number, numbers = (compiler.process(part, **more) for part in element.clauses)
    return AMONG_ON_SQLITE.format(number, numbers)


@compiles(_Among, "postgresql")
def _among_on_postgresql(element: _Among, compiler: SQLCompiler, **more: object) -> str:
    number, numbers = (compiler.process(part, **more) for part in element.clauses)
    return f"{number} = ANY({numbers})"


@compiles(_Placed, "postgresql")
def _placed_on_postgresql(element: _Placed, compiler: SQLCompiler, **more: object) -> str:
    return PLACED_ON_POSTGRESQL.format(compiler.process(element.clauses, **more))


@compiles(_Together, "sqlite")
def _together_on_sqlite(element: _Together, compiler: SQLCompiler, **more: object) -> str:
    return f"json_group_array({compiler.process(element.clauses, **more)})"


@compiles(_Together, "postgresql")
def _together_on_postgresql(element: _Together, compiler: SQLCompiler, **more: object) -> str:
    return f"json_agg({compiler.process(element.clauses, **more)})"


@compiles(_At, "sqlite")
def _at_on_sqlite(element: _At, compiler: SQLCompiler, **more: object) -> str:
    each, place = (compiler.process(part, **more) for part in element.clauses)
    return f"json_extract({each}, '$[{place}]')"


@compiles(_At, "postgresql")
def _at_on_postgresql(element: _At, compiler: SQLCompiler, **more: object) -> str:
    each, place = (compiler.process(part, **more) for part in element.clauses)
    return f"({each} ->> {place})"


def params(rows: Iterable[Sequence[object]]) -> dict[str, object]:
    """Return rows as the parameter of a statement; at most `AT_ONCE` should go at once."""
    return {ROWS: _json_of(rows)}


def _json_of(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as JSON: texts, numbers, booleans and times; columns by their position."""
    return orjson.dumps(list(rows), default=_plain, option=OPTIONS).decode()


def parts(whole: Sequence[T], at_once: int = AT_ONCE) -> Iterator[Sequence[T]]:
    """Split rows into parts of one statement each."""
    return (whole[first : first + at_once] for first in range(0, len(whole), at_once))


def send(
    session: Connection, statement: Executable, rows: Sequence[Sequence[object]], **equal: object
) -> None:
    """Execute a statement over `inserted()`, some rows at a time; `equal` is the same in all."""
    common = {f"{SAME}{name}": value for name, value in equal.items()}
    for some in parts(rows):
        session.execute(statement, params(some) | common)


def inserted(
    table: Table, columns: Sequence[Column[object]], same: Sequence[Column[object]]
) -> Insert:
    """Return an insert of rows with these columns; those in `same` are equal in all rows."""
    shared = [bindparam(f"{SAME}{of.name}", type_=of.type).label(of.name) for of in same]
    names = [of.name for of in (*columns, *same)]
    return insert(table).from_select(names, rows(*columns).add_columns(*shared))


def rows(*columns: Column[object]) -> Select[*tuple[object, ...]]:
    """Select the rows of the parameter: values of these columns, in this order."""
    each = _each()
    values = [_value(each, place, of.type).label(of.name) for place, of in enumerate(columns)]
    # SQLite takes ON CONFLICT behind a FROM without WHERE for a join's ON.
    return select(*values).where(true())


def firsts(kind: type[TypeEngine[T]]) -> Select[*tuple[object, ...]]:
    """Select the first value of each row: to ask whether something is among them."""
    return select(_value(_each(), 0, kind()))


def among(number: ColumnElement[int], name: str) -> ColumnElement[bool]:
    """Return whether a number is one of a sequence, which is one parameter of this name."""
    return _Among(number, bindparam(name, type_=_Numbers()))


def text_params(texts: Sequence[str]) -> dict[str, object]:
    """Return the texts as the parameter of a statement over `placed`."""
    return {ROWS: orjson.dumps(texts).decode()}


def placed() -> TableValuedAlias:
    """Return the texts as a table: each `value`, and its place from 0 as `key`.

    To look them up, join it `outerjoin` to the table: of an inner join SQLite begins with the
    table, all of which it reads for each of the texts.
    """
    return _Placed(bindparam(ROWS, type_=Text)).table_valued(column("key"), column("value"))


def together(
    asked: ColumnElement[bool], *columns: ColumnElement[object]
) -> list[ColumnElement[str | None]]:
    """The columns of all rows that are asked for as one row, which `columns_of` takes apart.

    What a driver does for a row costs more than the search for it.
    """
    return [cast(_Together(each).filter(asked), Text) for each in columns]


def columns_of(row: Raw) -> Raw:
    """The columns of a row of `together`, each a list, all in one order, which is any."""
    return tuple(orjson.loads(each or NONE) for each in row)


def _each() -> ColumnElement[object]:
    return _Each(bindparam(ROWS, type_=Text)).table_valued(column("value")).c.value


def _value(each: ColumnElement[object], place: int, kind: TypeEngine[T]) -> ColumnElement[object]:
    return cast(_At(each, literal_column(str(place))), kind)


def _plain(value: object) -> object:
    """An instant as `types.Utc` has it on SQLite; PostgreSQL's sessions count in UTC too."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
    raise TypeError(f"cannot be sent: {value!r}")
