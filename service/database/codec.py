"""Convert frozen dataclasses to rows and JSON, and back, by field name.

orjson writes the JSON and pydantic reads it. Everything is checked once, when a codec is made at
import: a field or column without a partner, or a type that JSON cannot restore, raises TypeError.
A field that older JSON lacks takes its default, so values can grow.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Generic, NewType, TypeAlias, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as hints_of

import orjson
from pydantic import TypeAdapter
from pydantic_core import SchemaValidator, core_schema
from sqlalchemy import Column, Table
from sqlmodel import Field

from service.database.types import Json, Utc

T = TypeVar("T")

Convert = Callable[[Any], Any]
"""From a field to what the database is given, or back."""

Raw: TypeAlias = tuple[Any, ...]
"""A row as the driver returns it: on SQLite, booleans are numbers and times are texts."""

OPTIONS = orjson.OPT_NON_STR_KEYS

SCALAR_COLUMNS = (str, int, float, bool, bytes, datetime)
SCALARS = frozenset({"str", "int", "float", "bool"})
GROUPS = frozenset(
    {
        "dataclass",
        "dataclass-args",
        "dataclass-field",
        "default",
        "definition-ref",
        "definitions",
        "dict",
        "enum",
        "frozenset",
        "nullable",
        "tuple",
        "union",
    }
)
"""Kinds of pydantic's core schemas beside scalars and instants that JSON can restore."""


@dataclass(frozen=True, slots=True)
class _Words:
    """The conversions that replace values of a type by words, and find them again."""

    word_of: Convert
    of_word: Convert


_words: dict[type, _Words] = {}
_seen: set[type] = set()


def store_as_word(
    kind: type[T], word_of: Callable[[T], str], of_word: Callable[[str], T | None]
) -> None:
    """Store values of this dataclass as a word, in columns and JSON.

    Raises TypeError after a codec that stores them otherwise has been made.
    """
    if kind in _seen:
        raise TypeError(f"a codec already stores {kind.__name__} field by field")
    _words[kind] = _Words(word_of, of_word)


def json_of(value: object) -> str:
    """Return the value as JSON text; it contains no values stored as words."""
    return orjson.dumps(value, default=_plain, option=OPTIONS).decode()


def json_object(text: str) -> dict[str, object]:
    """Return a JSON object as it is."""
    value: dict[str, object] = orjson.loads(text)
    return value


def _json_with_words(value: object) -> str:
    # Slower: orjson calls `_worded` for every dataclass.
    options = OPTIONS | orjson.OPT_PASSTHROUGH_DATACLASS
    return orjson.dumps(value, default=_worded, option=options).decode()


def _plain(value: object) -> object:
    """Return a sorted list for a set, so that equal values are equal text."""
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"cannot be stored: {value!r}")


def _worded(value: object) -> object:
    words = _words.get(type(value))
    if words is not None:
        return words.word_of(value)
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return _plain(value)


class JsonCodec(Generic[T]):
    """Values of one type as JSON text. Raises TypeError for a type that JSON cannot restore."""

    def __init__(self, hint: Any, where: str | None = None) -> None:
        schema = _Schema(where or str(hint))
        self._validator = SchemaValidator(schema.checked(TypeAdapter(hint).core_schema))
        self._encode = _json_with_words if schema.has_words else json_of

    def encode(self, value: T) -> str:
        """Return the value as JSON text."""
        return self._encode(value)

    def decode(self, text: str) -> T:
        """Return the value again. Raises ValueError for text that is no such value."""
        value: T = self._validator.validate_json(text)
        return value


class _Schema:
    """pydantic's core schema of a stored type: checked, with words for values stored as words."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.has_words = False

    def checked(self, schema: Any) -> Any:
        """Return the schema that restores values of the type. Raises TypeError."""
        kind = schema["type"]
        if kind == "dataclass":
            _seen.add(schema["cls"])
            words = _words.get(schema["cls"])
            if words is not None:
                self.has_words = True
                return self._word(schema, words)
        if kind == "datetime":
            return {**schema, "tz_constraint": "aware"}
        if kind == "dict":
            self._expect(schema["keys_schema"]["type"] in ("str", "int", "enum"), schema)
        if kind == "union":
            self._expect(all(each["type"] in SCALARS for each in schema["choices"]), schema)
        self._expect(kind in GROUPS or kind in SCALARS, schema)
        return {name: self._part(part) for name, part in schema.items()}

    def _part(self, part: Any) -> Any:
        if isinstance(part, list):
            return [self._part(each) for each in part]
        is_schema = isinstance(part, dict) and isinstance(part.get("type"), str)
        return self.checked(part) if is_schema else part

    def _word(self, schema: Any, words: _Words) -> Any:
        _seen.discard(schema["cls"])
        return core_schema.no_info_plain_validator_function(words.of_word, ref=schema.get("ref"))

    def _expect(self, is_restorable: bool, schema: Any) -> None:
        if not is_restorable:
            raise TypeError(f"{self._where}: JSON cannot restore a {schema['type']} here")


class UnionCodec(Generic[T]):
    """Members of a closed union of dataclasses, distinguished by class name."""

    def __init__(self, union: Any) -> None:
        self._codecs: dict[str, JsonCodec[T]] = {}
        self.add(union)

    def add(self, union: Any) -> None:
        """Add a dataclass, or all members of a union. Raises TypeError for a name in use."""
        for member in get_args(union) or (union,):
            if member.__name__ in self._codecs:
                raise TypeError(f"two members are named {member.__name__}")
            self._codecs[member.__name__] = JsonCodec(member, member.__name__)

    @property
    def names(self) -> frozenset[str]:
        """The class names of all members."""
        return frozenset(self._codecs)

    def encode(self, value: T) -> tuple[str, str]:
        """Return class name and JSON text."""
        name = type(value).__name__
        return name, self._codecs[name].encode(value)

    def decode(self, name: str, text: str) -> T:
        """Return the member again. Raises KeyError for a class that the union lacks."""
        return self._codecs[name].decode(text)


class RowCodec(Generic[T]):
    """A dataclass and the table that has a column of the same name for each field.

    `keys` are columns that only the store knows, `elsewhere` fields that other tables hold.
    Raises TypeError for a field or column without a partner.
    """

    def __init__(
        self,
        kind: type[T],
        table: Table,
        *,
        keys: Iterable[str] = (),
        elsewhere: Iterable[str] = (),
    ) -> None:
        hints = hints_of(kind)
        self._kind = kind
        self.names = tuple(
            field.name
            for field in fields(kind)  # type: ignore[arg-type]  # each kind is a dataclass
            if field.name not in set(elsewhere)
        )
        lacking = set(self.names) ^ (set(table.c.keys()) - set(keys))
        if lacking:
            raise TypeError(f"{kind.__name__} and its table differ in {sorted(lacking)}")
        self.columns: tuple[Column[Any], ...] = tuple(table.c[name] for name in self.names)
        converters = [
            _converters(hints[name], column, f"{kind.__name__}.{name}")
            for name, column in zip(self.names, self.columns, strict=True)
        ]
        self._writers = tuple(
            (name, write) for name, (write, _) in zip(self.names, converters, strict=True)
        )
        self._readers = tuple(
            (name, read) for name, (_, read) in zip(self.names, converters, strict=True)
        )

    def row(self, value: T) -> dict[str, Any]:
        """Return what the database is given, by column name."""
        return {name: write(getattr(value, name)) for name, write in self._writers}

    def value(self, row: Sequence[Any], elsewhere: Mapping[str, Any] | None = None) -> T:
        """Return the value of a row that begins with `columns`; `elsewhere` has its other fields.

        The row may be the driver's own (`Raw`) if it has no times and no nullable booleans.
        """
        values = {
            name: read(column) for (name, read), column in zip(self._readers, row, strict=False)
        }
        return self._kind(**values, **(elsewhere or {}))

    def changes(self, before: T, after: T) -> dict[str, Any]:
        """Return the columns of `row(after)` that differ; skips identical parts unseen."""
        changed = {}
        for name, write in self._writers:
            old, new = getattr(before, name), getattr(after, name)
            if old is not new and old != new:
                changed[name] = write(new)
        return changed


def columns_of(kind: type, without: Container[str] = ()) -> dict[str, Any]:
    """Return the columns for the fields of a dataclass as SQLModel takes them: type and options."""
    hints = hints_of(kind)
    names = [field.name for field in fields(kind)]
    return {name: _column_of(hints[name]) for name in names if name not in without}


def _column_of(hint: Any) -> tuple[Any, Any]:
    kind = _bare(hint)
    if isinstance(kind, type) and issubclass(kind, Enum):
        kind = str
    if kind not in SCALAR_COLUMNS:
        kind, options = str, Field(sa_type=Json)
    else:
        options = Field(sa_type=Utc) if kind is datetime else Field()
    return kind | None if NoneType in get_args(hint) else kind, options


def _converters(hint: Any, column: Column[Any], where: str) -> tuple[Convert, Convert]:
    """Return how a field of this type is written to its column, and how it is read."""
    if isinstance(column.type, Json):
        codec: JsonCodec[Any] = JsonCodec(hint, where)
        return _unless_null(codec.encode), _unless_null(codec.decode)
    kind = _bare(hint)
    if kind in _words:
        return _unless_null(_words[kind].word_of), _unless_null(_words[kind].of_word)
    if isinstance(kind, type) and issubclass(kind, Enum):
        members = {member.value: member for member in kind}
        return _unless_null(lambda member: member.value), _unless_null(members.__getitem__)
    if hint is bool:
        return _same, bool
    if kind in SCALAR_COLUMNS:
        return _same, _same
    raise TypeError(f"{where}: only a Json column can hold {hint}")


def _unless_null(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _same(value: Any) -> Any:
    return value


def _bare(hint: Any) -> Any:
    """Return what an optional type or a NewType stands for."""
    if get_origin(hint) in (Union, UnionType):
        kinds = [each for each in get_args(hint) if each is not NoneType]
        return _bare(kinds[0]) if len(kinds) == 1 else hint
    return _bare(hint.__supertype__) if isinstance(hint, NewType) else hint
