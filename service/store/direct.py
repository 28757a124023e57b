"""Hot statements by the driver alone: compiled once, their rows as the driver gives them.

What Core does around a statement, and around each time in its rows, takes several times as long
as to read a page of a list (PERFORMANCE.md 3.1).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Dialect
from sqlalchemy.sql.selectable import Selectable

from service.store.codec import Raw, Restore


@dataclass(frozen=True, slots=True)
class _Text:
    """A statement as one driver takes it; `places` None: parameters are told by name."""

    text: str
    given: Mapping[str, object]
    encoders: Mapping[str, Restore]
    places: tuple[str, ...] | None

    def parameters(self, told: Mapping[str, object]) -> tuple[object, ...] | dict[str, object]:
        """What is told, as the driver takes it."""
        values = {**self.given, **told}
        for name, encode in self.encoders.items():
            values[name] = encode(values[name])
        if self.places is None:
            return {name: values[name] for name in self.given}
        return tuple([values[name] for name in self.places])


class Direct:
    """A statement without parameters that expand; `bulk.among` asks for several."""

    def __init__(self, statement: Selectable) -> None:
        self.statement = statement
        self._texts: dict[str, _Text] = {}

    def rows(self, session: Connection, told: Mapping[str, object]) -> list[Raw]:
        """All its rows; more may be told than it asks for."""
        text = self._texts.get(session.dialect.name)
        if text is None:
            text = self._texts[session.dialect.name] = _compiled(self.statement, session.dialect)
        result = session.exec_driver_sql(text.text, text.parameters(told))
        # The driver's own cursor: rows of Core are another object each.
        found = [] if result.cursor is None else list[Raw](result.cursor.fetchall())
        result.close()
        return found

    def number(self, session: Connection, told: Mapping[str, object]) -> int:
        """The one number that a statement answers which counts."""
        ((found,),) = self.rows(session, told)
        return int(found)


def _compiled(statement: Selectable, dialect: Dialect) -> _Text:
    compiled = statement.compile(dialect=dialect)
    encoders = {}
    for name, bind in compiled.binds.items():
        encode = bind.type.dialect_impl(dialect).bind_processor(dialect)
        if encode is not None:
            encoders[name] = encode
    places = None if compiled.positiontup is None else tuple(compiled.positiontup)
    return _Text(compiled.string, dict(compiled.params), encoders, places)
