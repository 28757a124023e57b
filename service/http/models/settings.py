"""Settings as fields of requests and answers, made from their definitions."""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Annotated, TypeVar, get_args, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PlainSerializer,
    WithJsonSchema,
    create_model,
)

from service.http.models import common, issuers, unknown
from service.http.models.common import Integer
from service.settings import (
    PLACEHOLDER,
    Chars,
    Form,
    Items,
    Range,
    Setting,
    Template,
    Words,
    definitions,
)

Model = TypeVar("Model", bound=BaseModel)

PATTERNS: Mapping[Form, str] = {
    Form.LINE: common.LINE,
    Form.ADDRESS_TEMPLATE: common.TEMPLATE,
    Form.NAME_MASK: common.ONE_STAR,
    Form.EXIT_CODE: common.JOB_CODE,
    Form.ISSUER: issuers.ISSUER,
    Form.REPORTER: common.REPORTER,
}


NAME_SHOWN_MAX = 100
NO_TYPES: Mapping[object, object] = {}
NO_EXAMPLES: Mapping[str, object] = {}


def takes(
    settings: type, own_types: Mapping[object, object] = NO_TYPES
) -> Callable[[type[Model]], type[Model]]:
    """Return a decorator that adds every setting to a request: it may be left out or null.

    `own_types` has the request's types for types of settings that only one capability has.
    """

    def type_of(kind: object, setting: Setting) -> object:
        return (own_types.get(kind) or _checked(kind, setting)) | None  # type: ignore[operator]

    return lambda model: _with_fields(model, settings, type_of, None)


def names(
    settings: type, own_types: Mapping[object, object] = NO_TYPES
) -> Callable[[type[Model]], type[Model]]:
    """Return a decorator that adds every setting to a part of a file: null is no value there."""

    def type_of(kind: object, setting: Setting) -> object:
        return own_types.get(kind) or _checked(kind, setting)

    return lambda model: _with_fields(model, settings, type_of, None)


def shows(
    settings: type, own_types: Mapping[object, object] = NO_TYPES
) -> Callable[[type[Model]], type[Model]]:
    """Return a decorator that adds every setting to an answer."""

    def type_of(kind: object, _: Setting) -> object:
        return own_types.get(kind) or _shown(kind)

    defaults = {each.name: each.default for each in fields(settings)}
    return lambda model: _with_fields(model, settings, type_of, ..., defaults)


def nullable(settings: type) -> frozenset[str]:
    """Return the field names of the settings of which null is a value."""
    return frozenset(
        name for name, kind in get_type_hints(settings).items() if type(None) in get_args(kind)
    )


def _with_fields(
    model: type[Model],
    settings: type,
    type_of: Callable[[object, Setting], object],
    default: object,
    examples: Mapping[str, object] = NO_EXAMPLES,
) -> type[Model]:
    described = definitions(settings)
    made: dict[str, object] = {
        name: (
            Annotated[
                type_of(kind, described[name]),
                Field(
                    description=described[name].meaning,
                    examples=[examples[name]] if name in examples else None,
                ),
            ],
            default,
        )
        for name, kind in get_type_hints(settings).items()
    }
    names = {"__module__": model.__module__, "__doc__": model.__doc__}
    extended: type[Model] = create_model(model.__name__, __base__=model, **names, **made)  # type: ignore[call-overload]
    return extended


def _checked(kind: object, setting: Setting) -> object:
    """Return the type of a setting in a request."""
    match setting.bounds:
        case Range(minimum, maximum):
            number = Integer if int in (kind, *get_args(kind)) else float
            return Annotated[number, Field(ge=minimum, le=maximum)]
        case Chars(maximum, form):
            return _text(maximum, form)
        case Items() as items:
            texts = items_of(_text(items.chars_max, items.form), items.items_max)
            return Annotated[texts, AfterValidator(_distinct)] if items.are_distinct else texts
        case Words(allowed):
            return Annotated[list[_word(allowed)], Field(min_length=1), AfterValidator(_distinct)]  # type: ignore[misc]
        case Template() as template:
            shown = common.NOT_BLANK_LINE if template.is_line else common.NOT_BLANK_LINES
            limits = Field(
                min_length=1, max_length=template.maximum, json_schema_extra={"pattern": shown}
            )
            return Annotated[str, limits, AfterValidator(_filled_by(template))]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return Annotated[kind, BeforeValidator(common.one_of(kind))]
    return kind


def items_of(element: object, items_max: int) -> object:
    """Return the type of a list of at most so many elements."""
    return Annotated[list[element], Field(max_length=items_max)]  # type: ignore[valid-type]


def _text(chars_max: int, form: Form) -> object:
    pattern = PATTERNS[form]
    limits = Field(
        min_length=1,
        max_length=chars_max,
        pattern=pattern,
        json_schema_extra={"pattern": common.NOT_BLANK_LINE if form is Form.LINE else pattern},
    )
    return Annotated[str, limits, AfterValidator(_not_blank)]


def _not_blank(text: str) -> str:
    if not text.strip():
        raise common.wrong("format", "must contain more than white space")
    return text


def _filled_by(template: Template) -> Callable[[str], str]:
    """Return the check of a text with placeholders."""

    def check(text: str) -> str:
        if any(unicodedata.category(each) == "Cc" and each != "\n" for each in text):
            raise common.wrong("format", "must contain no control characters but line breaks")
        if template.is_line and "\n" in text:
            raise common.wrong("format", "must be one line")
        _not_blank(text)
        known = f"known are {', '.join(template.names)}"
        for name in PLACEHOLDER.findall(text):
            if name not in template.names:
                shown = name[:NAME_SHOWN_MAX]
                message = f"has the unknown placeholder `{{{{ {shown} }}}}`; {known}"
                raise common.wrong("format", message, unknown.nearest(name, template.names))
        _check_whole_lines(template, text)
        rest = PLACEHOLDER.sub("", text)
        if "{{" in rest or "}}" in rest:
            raise common.wrong("format", f"has a placeholder that is not `{{{{ name }}}}`; {known}")
        return text

    return check


def _check_whole_lines(template: Template, text: str) -> None:
    for line in text.split("\n"):
        if PLACEHOLDER.fullmatch(line.strip()):
            continue
        for name in PLACEHOLDER.findall(line):
            if name in template.whole_lines:
                message = f"has text beside `{{{{ {name} }}}}`; put it on a line of its own"
                raise common.wrong("format", message)


def _word(allowed: tuple[StrEnum, ...]) -> object:
    words = type(allowed[0])
    refused = [word for word in words if word not in allowed]
    return Annotated[
        words,
        BeforeValidator(common.one_of(words, *refused)),
        WithJsonSchema({"type": "string", "enum": [word.value for word in allowed]}),
    ]


def _distinct(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _shown(kind: object) -> object:
    """Return the type of a setting in an answer; numbers have no needless fraction."""
    return Annotated[float, PlainSerializer(_whole_if_possible)] if kind is float else kind


def _whole_if_possible(number: float) -> int | float:
    return int(number) if number.is_integer() else number
