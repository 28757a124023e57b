"""The text of one member of a stored JSON object, for searches by words."""

from sqlalchemy import ColumnElement, Text, literal_column
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class _Member(FunctionElement[str]):
    """The text of a member; null if the object does not have it."""

    name = "json_member"
    type = Text()
    inherit_cache = True


def member(column: ColumnElement[str], name: str) -> ColumnElement[str]:
    """Return the text of a member of the object in a column; `name` is one of ours."""
    return _Member(column, literal_column(f"'{name}'"))


@compiles(_Member, "sqlite")
def _on_sqlite(element: _Member, compiler: SQLCompiler, **more: object) -> str:
    column, name = (compiler.process(part, **more) for part in element.clauses)
    return f"json_extract({column}, '$.' || {name})"


@compiles(_Member, "postgresql")
def _on_postgresql(element: _Member, compiler: SQLCompiler, **more: object) -> str:
    column, name = (compiler.process(part, **more) for part in element.clauses)
    return f"(CAST({column} AS json) ->> {name})"
