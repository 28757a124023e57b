"""Conditions on texts that are the same on both databases."""

from sqlalchemy import Boolean, Column, ColumnElement, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

ESCAPE = "/"


class _Holds(FunctionElement[bool]):
    """A test whether a text matches a pattern, in any case of ASCII letters."""

    name = "holds"
    type = Boolean()
    inherit_cache = True


def contains(column: Column[str], text: str) -> ColumnElement[bool]:
    """Return whether a column contains a text, in any case of ASCII letters."""
    for special in (ESCAPE, "%", "_"):
        text = text.replace(special, ESCAPE + special)
    return _Holds(column, bindparam(None, f"%{text}%", unique=True))


@compiles(_Holds, "sqlite")
def _on_sqlite(element: _Holds, compiler: SQLCompiler, **given: object) -> str:
    # LIKE ignores the case of ASCII letters here; with lower() it takes more than twice the time.
    column, pattern = (compiler.process(each, **given) for each in element.clauses)
    return f"({column} LIKE {pattern} ESCAPE '{ESCAPE}')"


@compiles(_Holds, "postgresql")
def _on_postgresql(element: _Holds, compiler: SQLCompiler, **given: object) -> str:
    column, pattern = (compiler.process(each, **given) for each in element.clauses)
    return f"(lower({column}) LIKE lower({pattern}) ESCAPE '{ESCAPE}')"
