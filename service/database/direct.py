"""Hot statements by the driver alone: compiled once, their rows as the driver gives them.

What Core does around a statement, and around each time in its rows, takes several times as long
as to read a page of a list (PERFORMANCE.md 3.1).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Dialect
from sqlalchemy.engine.interfaces import DBAPIModule
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.selectable import Selectable

from service.database.codec import Convert, Raw


@dataclass(frozen=True, slots=True)
class _Text:
    """A statement as one driver takes it; `places` None: parameters are told by name."""

    text: str
    given: Mapping[str, object]
    encoders: Mapping[str, Convert]
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
        parameters = text.parameters(told)
        # Whoever listens to the connection's statements hears these from Core alone.
        if session.dispatch.before_cursor_execute:
            return list(map(tuple, session.exec_driver_sql(text.text, parameters)))
        cursor = session.connection.cursor()
        try:
            cursor.execute(text.text, parameters)
            return list[Raw](cursor.fetchall())
        except session.dialect.loaded_dbapi.Error as error:
            raise _as_by_core(session, text.text, error) from error
        finally:
            cursor.close()

    def number(self, session: Connection, told: Mapping[str, object]) -> int:
        """The one number that a statement answers which counts."""
        ((found,),) = self.rows(session, told)
        return int(found)


def _as_by_core(session: Connection, text: str, error: DBAPIModule.Error) -> DBAPIError:
    """What Core would raise; a session that is lost is used no more."""
    is_lost = session.dialect.is_disconnect(error, session.connection, None)
    if is_lost:
        session.invalidate(error)
    return DBAPIError(text, None, error, connection_invalidated=is_lost)


def _compiled(statement: Selectable, dialect: Dialect) -> _Text:
    compiled = statement.compile(dialect=dialect)
    encoders = {}
    for name, bind in compiled.binds.items():
        encode = bind.type.dialect_impl(dialect).bind_processor(dialect)
        if encode is not None:
            encoders[name] = encode
    places = None if compiled.positiontup is None else tuple(compiled.positiontup)
    return _Text(compiled.string, dict(compiled.params), encoders, places)
