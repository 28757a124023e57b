"""The settings of a queue as fields of requests and answers, made from their definitions."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Literal, TypeVar, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PlainSerializer,
    create_model,
)

from service.http.models import common
from service.http.models.answers.common import Answer
from service.http.models.common import Integer, Request
from service.mergequeue.engine.config import (
    SETTINGS,
    BatchingRule,
    Chars,
    ConfigValue,
    Items,
    QueueConfig,
    Range,
    Setting,
)

Model = TypeVar("Model", bound=BaseModel)

ITEMS_MAX = 100
"""Elements of a list."""

TARGET_PATTERN_CHARS_MAX = 512


class BatchingRuleGiven(Request):
    """One member of `batchingRules`."""

    target_pattern: Annotated[
        str,
        Field(min_length=1, max_length=TARGET_PATTERN_CHARS_MAX, pattern=common.TARGET_PATTERN),
    ]
    policy: Annotated[Literal["ISOLATE"], BeforeValidator(common.isolate)] = "ISOLATE"


class BatchingRuleShown(Answer):
    """Pull requests that impact a matching target are tested alone."""

    target_pattern: str
    policy: Literal["ISOLATE"]


def takes_settings(model: type[Model]) -> type[Model]:
    """Add every setting to a request, as a field that may be left out or null."""
    return _with_fields(model, lambda kind, setting: (_taken(kind, setting), None))


def shows_settings(model: type[Model]) -> type[Model]:
    """Add every setting to an answer."""
    return _with_fields(model, lambda kind, _: (_shown(kind), ...))


def _with_fields(
    model: type[Model], field_of: Callable[[object, Setting], tuple[object, object]]
) -> type[Model]:
    made: dict[str, object] = {}
    for name, kind in get_type_hints(QueueConfig).items():
        annotation, default = field_of(kind, SETTINGS[name])
        made[name] = (Annotated[annotation, Field(description=SETTINGS[name].meaning)], default)
    names = {"__module__": model.__module__, "__doc__": model.__doc__}
    extended: type[Model] = create_model(model.__name__, __base__=model, **names, **made)  # type: ignore[call-overload]
    return extended


def _taken(kind: object, setting: Setting) -> object:
    """Return the type of a setting in a request."""
    return _checked(kind, setting) | None  # type: ignore[operator]


def _checked(kind: object, setting: Setting) -> object:
    match setting.bounds:
        case Range(minimum, maximum):
            number = Integer if kind is int else float
            return Annotated[number, Field(ge=minimum, le=maximum)]
        case Chars(chars_max):
            return _line(chars_max)
        case Items(chars_max=chars_max, are_distinct=True):
            return Annotated[_items(_line(chars_max)), AfterValidator(_distinct)]
        case Items(chars_max=chars_max):
            return _items(_line(chars_max))
    if kind == tuple[BatchingRule, ...]:
        return _items(BatchingRuleGiven)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return Annotated[kind, BeforeValidator(common.one_of(kind))]
    return kind


def _items(element: object) -> object:
    return Annotated[list[element], Field(max_length=ITEMS_MAX)]  # type: ignore[valid-type]


def _line(chars_max: int) -> object:
    return Annotated[str, Field(min_length=1, max_length=chars_max, pattern=common.LINE)]


def _distinct(names: list[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _shown(kind: object) -> object:
    """Return the type of a setting in an answer; numbers have no needless fraction."""
    if kind is float:
        return Annotated[float, PlainSerializer(_whole_if_possible)]
    if kind == tuple[BatchingRule, ...]:
        return tuple[BatchingRuleShown, ...]
    return kind


def _whole_if_possible(number: float) -> int | float:
    return int(number) if number.is_integer() else number


def value_of(taken: object) -> ConfigValue:
    """Return the value of a field of a request in the types of `QueueConfig`."""
    if not isinstance(taken, list):
        return taken  # type: ignore[return-value]
    if taken and isinstance(taken[0], BatchingRuleGiven):
        return tuple(BatchingRule(rule.target_pattern, rule.policy) for rule in taken)
    return tuple(taken)
