"""The common parts of answers: the two spellings, times, ids, words, and who did something."""

import re
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from service.vocabulary import ActorKind, Channel

Value = TypeVar("Value")

OPEN_WORDS = "x-extensible-enum"
"""Keyword of the words known now of a list that may grow (docs/design/http.md 11)."""


def _expecting_more(schema: JsonSchemaValue) -> None:
    """Clients are told to ignore what they do not know; only our tests are strict."""
    schema.pop("additionalProperties", None)


class EitherSpelling(BaseModel):
    """Fields that answers in camelCase and answers in snake_case share.

    A field keeps its first spelling: no class in snake_case inherits one from camelCase.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
        frozen=True,
        from_attributes=True,
        json_schema_extra=_expecting_more,
    )

    @classmethod
    def of(cls, view: object, **more: object) -> Self:
        """Return the answer about a view: its attributes of the same names, and `more`."""
        names = [name for name in cls.model_fields if name not in more and hasattr(view, name)]
        return cls.model_validate({name: getattr(view, name) for name in names} | more)


class Answer(EitherSpelling):
    """An answer, or an object in one, with fields in camelCase."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        serialize_by_alias=True,
        validate_by_alias=True,
        validate_by_name=True,
    )


class SnakeAnswer(Answer):
    """An answer, or an object in one, with fields in snake_case."""

    model_config = ConfigDict(alias_generator=None)


class NeverNull:
    """Takes null out of a field's schema."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        (shown,) = (each for each in handler(schema)["anyOf"] if each != {"type": "null"})
        return dict(shown)


def _is_none(value: object) -> bool:
    return value is None


LeftOut = Annotated[Value | None, Field(exclude_if=_is_none), NeverNull()]
"""A field that is left out when there is none; its default is None."""


def open_word(words: type[StrEnum]) -> FieldInfo:
    """Return what makes `str` a word of a list that may grow (docs/design/http.md 11)."""
    made: FieldInfo = Field(json_schema_extra={OPEN_WORDS: [word.value for word in words]})
    return made


TIME_FORM = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"


def time_text(at: datetime) -> str:
    """Return a time as answers write it: `2026-03-02T14:02:19.000Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def _exact_time(value: object) -> object:
    """Read a text that is written like `time_text`. Raises ValueError for others."""
    if not isinstance(value, str):
        return value
    if not re.match(TIME_FORM, value):
        raise ValueError("is not written in UTC with three decimals")
    return datetime.fromisoformat(value)


Time = Annotated[
    datetime,
    BeforeValidator(_exact_time),
    PlainSerializer(time_text, return_type=str),
    WithJsonSchema({"format": "date-time", "pattern": TIME_FORM, "type": "string"}),
]
"""UTC with three decimals."""


def _form(pattern: str, example: str) -> FieldInfo:
    """Return a pattern that the document states and tests hold; answers are sent without it."""
    made: FieldInfo = Field(json_schema_extra={"pattern": pattern, "examples": [example]})
    return made


Id = Annotated[
    str,
    _form(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "0f8c6c1e-5b0e-4f3e-9d0a-3b1a54c1b7de"),
]
"""An id that we made, in lower case."""

Sha = Annotated[
    str, _form(r"^([0-9a-f]{40}|[0-9a-f]{64})$", "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678")
]
"""A commit, in lower case."""

RecordVersion = Annotated[str, _form(r"^[0-9a-f]{24}$", "3f1c7b640a524b408a35c4bb")]
"""The version of an answer, which a later request may name as `sinceVersion`."""

Number = Annotated[int, Field(ge=1, examples=[482])]
"""A pull request's number."""

Count = Annotated[int, Field(ge=0)]
"""How many."""


def _none_if_empty(value: object) -> object:
    return value or None


IGNORED_MAX = 50

Ignored = Annotated[list[str], Field(max_length=IGNORED_MAX)]
Meant = Annotated[dict[str, str], Field(max_length=IGNORED_MAX)]


class IgnoredFields(EitherSpelling):
    """What an answer has besides, where unknown fields of its request are ignored."""

    ignored_fields: LeftOut[Ignored] = None
    """Fields of the request that are unknown and were ignored, with a dot before one in an object;
    left out if there are none. For example `["prioritty", "repo.ownr"]`
    """
    did_you_mean: LeftOut[Meant] = None
    """The known field that is nearest to an ignored one; left out if none is near. For example
    `{"prioritty": "priority", "repo.ownr": "repo.owner"}`
    """


class WithIgnored(IgnoredFields, Answer):
    """What an answer has besides, where unknown fields of its request are ignored."""


class SnakeWithIgnored(IgnoredFields, SnakeAnswer):
    """The same in snake_case."""


class Actor(Answer):
    """Who did something, and by which way."""

    kind: ActorKind
    """What kind of actor it is."""
    login: Annotated[str | None, BeforeValidator(_none_if_empty)]
    """Login of a person, name of a token; null for Headgate itself. For example `alice`."""
    channel: Channel
    """How it came."""


class RepositoryShown(Answer):
    """A repository, spelled as its provider does."""

    host: str
    """Host of the repository. For example `github.com`."""
    owner: str
    """Owner of the repository. For example `octo`."""
    name: str
    """Name of the repository. For example `widgets`."""
