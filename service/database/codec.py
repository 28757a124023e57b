"""Frozen dataclasses to rows and JSON, and back, by field name.

Everything is looked up once, when a codec is made at import: a field or column that the other
side lacks, or a type that could not be restored, refuses the import. JSON is written by
orjson, which knows dataclasses, enums and instants itself; reading follows the type hints. A
field that older JSON lacks takes its default, so values can grow. Targets are written as
their word and are found again if `target_sets.at_hand` has read them.
"""

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import (
    Any,
    Generic,
    NewType,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import orjson
from sqlalchemy import Column, Table

from service.database.types import Json
from service.mergequeue.engine.targets import Targets
from service.mergequeue.store import target_sets

T = TypeVar("T")

Restore = Callable[[Any], Any]
"""From what JSON holds to the value; `_same` where both are one."""

Raw: TypeAlias = tuple[Any, ...]
"""A row as the driver gives it: on SQLite truths are numbers, and times are texts."""

Encode = Callable[[object], str]
"""From a value to JSON text."""

SCALARS = (str, int, float, bool)
OPTIONS = orjson.OPT_NON_STR_KEYS


def json_of(value: object) -> str:
    """The value as JSON text; it holds no targets."""
    return orjson.dumps(value, default=_plain, option=OPTIONS).decode()


def json_with_words(value: object) -> str:
    """The same of a value that may hold targets: slower, for orjson has to ask of each part."""
    options = OPTIONS | orjson.OPT_PASSTHROUGH_DATACLASS
    return orjson.dumps(value, default=_worded, option=options).decode()


def encoder(hint: Any) -> Encode:
    """How values of this type become JSON text."""
    return json_with_words if _holds_targets(hint) else json_of


def _holds_targets(hint: Any) -> bool:
    if hint is Targets:
        return True
    if is_dataclass(hint):
        return any(map(_holds_targets, get_type_hints(hint).values()))
    return any(map(_holds_targets, get_args(hint)))


def json_object(text: str) -> dict[str, object]:
    """A JSON object as it is."""
    found: dict[str, object] = orjson.loads(text)
    return found


def _plain(value: object) -> object:
    """A set in an order of its own, so that equal values are equal text."""
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"cannot be stored: {value!r}")


def _worded(value: object) -> object:
    if isinstance(value, Targets):
        return target_sets.word_of(value)
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return _plain(value)


class JsonCodec(Generic[T]):
    """Values of one type as JSON text."""

    def __init__(self, hint: Any) -> None:
        self._restore = restorer(hint, str(hint))
        self._encode = encoder(hint)

    def encode(self, value: T) -> str:
        """The value as JSON text."""
        return self._encode(value)

    def decode(self, text: str) -> T:
        """The value again."""
        restored: T = self._restore(orjson.loads(text))
        return restored


class UnionCodec(Generic[T]):
    """Members of a closed union of dataclasses, told apart by class name."""

    def __init__(self, union: Any) -> None:
        members = get_args(union)
        self._restorers = {each.__name__: restorer(each, each.__name__) for each in members}
        self._encoders = {each: encoder(each) for each in members}

    @property
    def names(self) -> frozenset[str]:
        """The class names of all members."""
        return frozenset(self._restorers)

    def encode(self, value: T) -> tuple[str, str]:
        """Class name and JSON text."""
        return type(value).__name__, self._encoders[type(value)](value)

    def decode(self, name: str, text: str) -> T:
        """The member again. Raises KeyError for a class that the union lacks."""
        restored: T = self._restorers[name](orjson.loads(text))
        return restored


class RowCodec(Generic[T]):
    """A dataclass and the table that has a column of the same name for each field.

    `keys` are columns that only the store knows, `elsewhere` fields that other tables hold.
    Raises TypeError when made, for a field or column without a partner.
    """

    def __init__(
        self,
        kind: type[T],
        table: Table,
        *,
        keys: Iterable[str] = (),
        elsewhere: Iterable[str] = (),
    ) -> None:
        hints = get_type_hints(kind)
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
        self._writers = tuple(
            (name, _writer(hints[name], column))
            for name, column in zip(self.names, self.columns, strict=True)
        )
        self._readers = tuple(
            (name, _reader(hints[name], column, f"{kind.__name__}.{name}"))
            for name, column in zip(self.names, self.columns, strict=True)
        )

    def row(self, value: T) -> dict[str, Any]:
        """Column name to what the database is given."""
        return {name: write(getattr(value, name)) for name, write in self._writers}

    def value(self, row: Sequence[Any], elsewhere: Mapping[str, Any] | None = None) -> T:
        """The value of a row that begins with `columns`, and of fields held elsewhere.

        The row may be the driver's own (`Raw`), unless it has times or truths that may lack.
        """
        found = {
            name: read(column) for (name, read), column in zip(self._readers, row, strict=False)
        }
        return self._kind(**found, **(elsewhere or {}))

    def changes(self, before: T, after: T) -> dict[str, Any]:
        """As `row(after)`, but only what differs; identical parts are not looked into."""
        changed = {}
        for name, write in self._writers:
            old, new = getattr(before, name), getattr(after, name)
            if old is not new and old != new:
                changed[name] = write(new)
        return changed


def _writer(hint: Any, column: Column[Any]) -> Restore:
    kind = _without_none(hint)[0]
    if isinstance(column.type, Json):
        encode = encoder(hint)
        return lambda value: None if value is None else encode(value)
    if kind is Targets:
        return lambda value: None if value is None else target_sets.word_of(value)
    if _is_enum(kind):
        return lambda value: None if value is None else value.value
    return _same


def _reader(hint: Any, column: Column[Any], where: str) -> Restore:
    restore = restorer(hint, where)
    if isinstance(column.type, Json):
        return lambda value: None if value is None else restore(orjson.loads(value))
    if hint is bool:
        return bool
    kind = _without_none(hint)[0]
    if kind is datetime or _bare(kind) in (*SCALARS, bytes):
        return _same
    if _is_enum(kind) or kind is Targets:
        return restore
    raise TypeError(f"{where}: only a Json column can hold {hint}")


def restorer(hint: Any, where: str) -> Restore:
    """How a value of this type comes back from JSON.

    Raises TypeError for a type that JSON alone does not tell.
    """
    kinds = _without_none(hint)
    if len(kinds) > 1:
        if all(_bare(kind) in SCALARS for kind in kinds):
            return _same
        raise TypeError(f"{where}: {hint} cannot be told apart in JSON")
    restore = _restorer(_bare(kinds[0]), where)
    if restore is _same or kinds == (hint,):
        return restore
    return lambda value: None if value is None else restore(value)


def _restorer(kind: Any, where: str) -> Restore:
    if kind in (*SCALARS, bytes):
        return _same
    if kind is datetime:
        return _instant
    if kind is Targets:
        return target_sets.of_word
    if _is_enum(kind):
        members = {member.value: member for member in kind}
        return members.__getitem__
    if is_dataclass(kind):
        return _dataclass_restorer(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _tuple_restorer(arguments, where)
    if origin is frozenset:
        inner = restorer(arguments[0], where)
        return lambda value: frozenset(map(inner, value))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_restorer(arguments, where)
    raise TypeError(f"{where}: {kind} cannot be restored from JSON")


def _dataclass_restorer(kind: Any) -> Restore:
    hints = get_type_hints(kind)
    readers = {
        field.name: restorer(hints[field.name], f"{kind.__name__}.{field.name}")
        for field in fields(kind)
    }

    def restore(found: Mapping[str, Any]) -> Any:
        return kind(**{name: read(found[name]) for name, read in readers.items() if name in found})

    return restore


def _tuple_restorer(arguments: tuple[Any, ...], where: str) -> Restore:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        inner = restorer(arguments[0], where)
        return tuple if inner is _same else lambda value: tuple(map(inner, value))
    each = [restorer(argument, where) for argument in arguments]
    return lambda value: tuple(read(part) for read, part in zip(each, value, strict=True))


def _mapping_restorer(arguments: tuple[Any, ...], where: str) -> Restore:
    key_kind = _bare(arguments[0])
    read = restorer(arguments[1], where)
    if key_kind is str:
        return lambda value: {key: read(each) for key, each in value.items()}
    if key_kind is int:
        return lambda value: {int(key): read(each) for key, each in value.items()}
    if _is_enum(key_kind):
        members = {str(member.value): member for member in key_kind}
        return lambda value: {members[key]: read(each) for key, each in value.items()}
    raise TypeError(f"{where}: {key_kind} cannot be a key in JSON")


def _same(value: Any) -> Any:
    return value


def _instant(text: str) -> datetime:
    """Raises ValueError for a naive time, which nobody should have stored."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"a time without a zone was stored: {text}")
    return found


def _without_none(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(each for each in get_args(hint) if each is not types.NoneType)
    return (hint,)


def _bare(kind: Any) -> Any:
    """A NewType is what it stands for."""
    return _bare(kind.__supertype__) if isinstance(kind, NewType) else kind


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)
