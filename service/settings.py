"""The definition of a setting: its type, default, bounds, meaning, and when to change it.

A capability defines its settings once, as the fields of a frozen dataclass. Requests, answers, the
OpenAPI document and the reference page are made from the definitions.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TypeVar

import orjson
from pydantic.alias_generators import to_camel
from pydantic_core import to_jsonable_python

Value = TypeVar("Value")

ITEMS_MAX = 100
"""Elements of a list, where its setting has no lower limit."""


@dataclass(frozen=True, slots=True)
class Range:
    """Least and greatest value of a number, both allowed."""

    minimum: float
    maximum: float


class Form(StrEnum):
    """The forms of a text, in the words of the reference page."""

    LINE = "text of one line"
    ADDRESS_TEMPLATE = "an https address with `{id}`"
    NAME_MASK = "text of one line with one `*` beside other text"
    EXIT_CODE = "a pattern of jobs, `=`, and an exit code from 1 to 128 or `failure`"
    ISSUER = "`SYSTEM ISSUER PROJECT`, where SYSTEM is `buildkite` or `gitlab`"
    REPORTER = "`NAME=` with the number of an App, `@` and that of an account, or `any`"


@dataclass(frozen=True, slots=True)
class Chars:
    """Greatest length and form of a text, which is not empty."""

    maximum: int
    form: Form = Form.LINE


@dataclass(frozen=True, slots=True)
class Items:
    """A list of texts: what they are, their greatest length, whether they differ, their form."""

    noun: str
    chars_max: int
    are_distinct: bool = False
    form: Form = Form.LINE
    items_max: int = ITEMS_MAX


@dataclass(frozen=True, slots=True)
class Words:
    """A list of at least one of these words, without repeats."""

    allowed: tuple[StrEnum, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """Greatest length of a text with placeholders, their names, and whether it is one line.

    Each of `whole_lines` becomes lines of its own, so nothing may be beside it.
    """

    maximum: int
    names: tuple[str, ...]
    is_line: bool = False
    whole_lines: tuple[str, ...] = ()


PLACEHOLDER = re.compile(r"\{\{[ \t]*([^{}\n]*?)[ \t]*\}\}")
"""`{{ name }}` in a text with placeholders."""

Bounds = Range | Chars | Items | Words | Template | None


@dataclass(frozen=True, slots=True)
class Setting:
    """The facts about a setting beside its type and default: documentation, bounds, initial value.

    `meaning` and `advice` (when to change it) are Markdown. `cli_default` is what the command
    line, the dashboard and the first `/merge` set instead of the default.
    """

    meaning: str
    advice: str
    bounds: Bounds
    cli_default: bool | int | float | str | None


def setting(
    default: Value,
    meaning: str,
    advice: str = "",
    bounds: Bounds = None,
    cli_default: bool | int | float | str | None = None,
) -> Value:
    """Return a field of a dataclass of settings."""
    described = Setting(meaning, advice, bounds, cli_default)
    made: Value = field(default=default, metadata={"setting": described})
    return made


def definitions(settings: type) -> Mapping[str, Setting]:
    """Return the definitions in a dataclass of settings, by field name."""
    return {each.name: each.metadata["setting"] for each in fields(settings)}


def as_json(value: object) -> object:
    """Return the value of a setting as JSON, as the API writes it."""
    return _spelled(to_jsonable_python(value))


def short_json(value: object) -> str:
    """Return the value as JSON text, without members of objects that say nothing."""
    return orjson.dumps(_told(as_json(value))).decode()


def _spelled(value: object) -> object:
    if isinstance(value, list):
        return [_spelled(each) for each in value]
    if isinstance(value, dict):
        return {to_camel(name): _spelled(each) for name, each in value.items()}
    return value


def _told(value: object) -> object:
    if isinstance(value, list):
        return [_told(each) for each in value]
    if isinstance(value, dict):
        return {name: _told(each) for name, each in value.items() if not _says_nothing(each)}
    return value


def _says_nothing(value: object) -> bool:
    return value is None or value is False or value in ("", [])
