"""What answers share: the two spellings, times, ids, words, and who did something."""

from enum import StrEnum
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from service.vocabulary import ActorKind, Channel

Value = TypeVar("Value")

OPEN_WORDS = "x-extensible-enum"
"""Keyword of the words known now of a list that may grow (API.md 12)."""


def _expecting_more(schema: JsonSchemaValue) -> None:
    """Clients are told to ignore what they do not know; only our tests are strict."""
    schema.pop("additionalProperties", None)


# A name by itself, as that of requests: these are only ever validated.
EXACTLY_AS_THE_API = ConfigDict(
    alias_generator=to_camel,
    extra="forbid",
    frozen=True,
    json_schema_extra=_expecting_more,
    regex_engine="python-re",
    strict=True,
)


class Answer(BaseModel):
    """An answer, or an object in one, with fields in camelCase."""

    model_config = EXACTLY_AS_THE_API


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


def _sent(value: object) -> object:
    """What stands there. Raises ValueError for null."""
    if value is None:
        raise ValueError("is left out when there is none, never null")
    return value


LeftOut = Annotated[Value | None, BeforeValidator(_sent), NeverNull()]
"""A field that is left out when there is none; its default is None."""


def open_word(words: type[StrEnum]) -> FieldInfo:
    """What makes `str` a word of a list that may grow (API.md 12)."""
    made: FieldInfo = Field(json_schema_extra={OPEN_WORDS: [word.value for word in words]})
    return made


Time = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
        json_schema_extra={"format": "date-time"},
    ),
]
"""UTC with three decimals (API.md 1.3)."""

Id = Annotated[str, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
"""An id that we made, in lower case."""

Sha = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
"""A commit, in lower case."""

Number = Annotated[int, Field(ge=1)]
"""A pull request's number."""

Count = Annotated[int, Field(ge=0)]
"""How many."""


class Actor(Answer):
    """Who did something, and by which way."""

    kind: ActorKind
    login: str | None
    channel: Channel


class RepositoryShown(Answer):
    """A repository, spelled as its provider does."""

    host: str
    owner: str
    name: str
