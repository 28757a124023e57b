"""The OpenAPI document, made from the table of routes and the models (docs/design/http.md 10).

Nothing in it is written twice: paths, methods, roles and codes come from the routes, shapes
from the models. It is the same for everybody and on every instance.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from typing import assert_never

import orjson
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from service.http import callers, codes, errors, repeats
from service.http.models.answers.common import OPEN_WORDS
from service.http.models.answers.problems import Problem
from service.http.route import JSON, VERSIONED, Answers, Document, Fetched, Open, Posted, Route

CONTRACT_VERSION = "1.0.0"
"""Of the contract, not of the product (docs/design/http.md 11)."""

Json = Mapping[str, object]

COMPONENT = "#/components/schemas/{model}"

SECURITY: list[Json] = [{"apiToken": []}, {"bearer": []}]

ABOUT = """\
Everything a client can ask Headgate. A success is always 200. A refusal is a problem
(RFC 9457) whose `code` is stable; `/docs/errors/{code}` says what to do about it.

Words are taken in any letter case. Fields that Headgate does not know are ignored, but every
body is JSON within bounds: 32 levels, strings of 1 MiB without NUL, integers of 64 bits, no
name twice. Clients ignore fields and words that they do not know: lists with
`x-extensible-enum` may grow.
"""


@functools.lru_cache(maxsize=1)
def encoded(table: tuple[Route, ...]) -> bytes:
    """The document over these routes, as it is served."""
    return orjson.dumps(document(table))


def document(table: Sequence[Route]) -> Json:
    """The document over these routes: paths in the order of the table."""
    listed = [route for route in table if not isinstance(route, Document) or route.is_listed]
    schemas = _schemas(listed)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headgate", "version": CONTRACT_VERSION, "description": ABOUT},
        "servers": [{"url": "/"}],
        "paths": {route.path: {route.method.lower(): _operation(route)} for route in listed},
        "components": {
            "schemas": schemas,
            "headers": HEADERS,
            "responses": {"Unauthorized": _UNAUTHORIZED},
            "securitySchemes": {
                "apiToken": {"type": "apiKey", "in": "header", "name": "x-api-token"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


HEADERS: Json = {
    "X-Request-Id": {
        "description": "The request's own if it is harmless, else a new one.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    },
    "Retry-After": {
        "description": "Seconds after which to ask again.",
        "schema": {"type": "integer", "minimum": 1},
    },
    "Allow": {"description": "The methods to ask by.", "schema": {"type": "string"}},
    "WWW-Authenticate": {
        "required": True,
        "schema": {"type": "string", "const": callers.CHALLENGE["WWW-Authenticate"]},
    },
    "Location": {"description": "Where to go on.", "schema": {"type": "string"}},
}


class _Generator(GenerateJsonSchema):
    """pydantic's schemas without what says nothing, in a spelling that every reader knows."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - the base's
        """Never: a title would repeat the field's name."""
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """A default of null only says that the field may be left out."""
        return {
            name: value
            for name, value in super().default_schema(schema).items()
            if (name, value) != ("default", None)
        }

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """What is written about an enum speaks of our code."""
        shown = super().enum_schema(schema)
        shown.pop("description", None)
        return shown


def _schemas(table: Sequence[Route]) -> Mapping[str, JsonSchemaValue]:
    """Every model that a route names, and what they are made of, by name.

    Raises ValueError for a name that requests and answers use for different things.
    """
    asked = made_of([route.model for route in table if isinstance(route, Posted)])
    shown = made_of([Problem, *(each.answers for each in table if isinstance(each.answers, type))])
    for name in asked.keys() & shown.keys():
        if asked[name] != shown[name]:
            raise ValueError(f"{name} is both asked and answered, in different forms")
    return {**asked, **shown}


def made_of(
    models: Sequence[type[BaseModel]], reference: str = COMPONENT
) -> dict[str, JsonSchemaValue]:
    """The models and what they are made of, by name, referring to each other by `reference`."""
    _, made = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(models)],
        ref_template=reference,
        schema_generator=_Generator,
    )
    schemas = {name: _in_standard_words(each) for name, each in made.get("$defs", {}).items()}
    for schema in schemas.values():
        schema.pop("title", None)
        if "description" in schema:
            schema["description"] = _published(schema["description"])
    return schemas


_STANDARD = {"ge": "minimum", "le": "maximum"}


def _in_standard_words(schema: Mapping[str, object]) -> JsonSchemaValue:
    """The schema with bounds and patterns as JSON Schema has them.

    pydantic writes a bound that stands behind a validator in words of its own, and `$` needs a
    guard in Python alone.
    """
    shown: JsonSchemaValue = {}
    for name, value in schema.items():
        if isinstance(value, Mapping):
            shown[name] = _in_standard_words(value)
        elif isinstance(value, list):
            shown[name] = [
                _in_standard_words(each) if isinstance(each, Mapping) else each for each in value
            ]
        elif name == "pattern" and isinstance(value, str):
            shown[name] = value.removesuffix(r"(?!\n)")
        else:
            shown[_STANDARD.get(name, name)] = value
    return shown


def _published(text: str) -> str:
    """A docstring without the documents and names that only our code knows."""
    return re.sub(r"\s*\([^()]*\.md[^()]*\)", "", text)


def described(model: type[BaseModel], place: str) -> list[Json]:
    """The fields of a model as parameters; `place` is `path` or `query`."""
    schema = model.model_json_schema(schema_generator=_Generator)
    required = schema.get("required", ())
    return [
        {"name": name, "in": place, "required": name in required, "schema": field}
        for name, field in schema["properties"].items()
    ]


def _operation(route: Route) -> Json:
    name = _name(route.path)
    shown: dict[str, object] = {
        "operationId": name,
        "summary": _summary(name),
        "tags": [_group(route)],
    }
    if isinstance(route, Posted | Fetched):
        shown["description"] = _who_may(route)
        shown["security"] = SECURITY
    parameters = _parameters(route)
    if parameters:
        shown["parameters"] = parameters
    if isinstance(route, Posted):
        shown["requestBody"] = {
            "required": True,
            "content": route.intake.content(dict(_reference(route.model))),
        }
    shown["responses"] = {
        **_successes(route),
        **(_REFUSED if isinstance(route, Posted | Fetched) else {}),
        **{
            str(status): _refusal(status, same)
            for status, same in codes.by_status(codes.of(route)).items()
            if status not in _statuses(route)
        },
    }
    return shown


def _name(path: str) -> str:
    """`/v1/flaky-tests/get-upload` → `flakyTestsGetUpload`; `{…}` is left out."""
    shown = re.sub(r"\{.*?\}", "", path.removeprefix(f"{VERSIONED}/"))
    words: list[str] = re.findall(r"[A-Za-z0-9]+", shown)
    return words[0] + "".join(word[0].upper() + word[1:] for word in words[1:])


def _summary(name: str) -> str:
    """`getQueue` → `Get queue`."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return words[0].upper() + words[1:]


def _group(route: Route) -> str:
    if not isinstance(route, Posted | Fetched):
        return "status and documents"
    folder = route.path.removeprefix(f"{VERSIONED}/").rpartition("/")[0]
    return folder or "merge queue"


def _who_may(route: Posted | Fetched) -> str:
    if route.role is None:
        return "Any token may ask."
    return f"The role `{route.role.value}`, or one that allows more."


def _parameters(route: Route) -> list[Json]:
    if isinstance(route, Document) and route.variables is not None:
        return described(route.variables, "path")
    if isinstance(route, Fetched) and route.query is not None:
        return described(route.query, "query")
    return _sent_headers(route) if isinstance(route, Posted) else []


def _sent_headers(route: Posted) -> list[Json]:
    found: list[Json] = []
    if route.writes:
        key = "Makes the request safe to repeat for 24 hours: the first answer is given again."
        found.append(
            _header(
                str(repeats.KEY), {"type": "string", "pattern": f"^{repeats.KEY_PATTERN}$"}, key
            )
        )
    if route.forks is not None:
        run = "A CI run of a fork's pull request, which may ask without a token."
        found.append(_header(str(callers.FORKED_RUN), {"type": "string"}, run))
    return found


def _header(name: str, schema: Json, description: str) -> Json:
    return {"name": name, "in": "header", "schema": schema, "description": description}


def _reference(model: type[BaseModel]) -> Json:
    return {"$ref": COMPONENT.format(model=model.__name__)}


def _statuses(route: Route) -> tuple[int, ...]:
    """What the endpoint answers with that is no refusal."""
    match route:
        case Posted() | Fetched():
            return (200,)
        case Open():
            return route.statuses
        case Document():
            return (route.status,)
        case _:
            assert_never(route)


def _successes(route: Route) -> Json:
    if route.answers is None:
        raise ValueError(f"{route.path} does not say what it answers")
    success = {
        "description": _what(route.answers),
        "headers": _headers(*(["Location"] if _statuses(route) == (302,) else [])),
        "content": _content(route.answers),
    }
    return {str(status): success for status in _statuses(route)}


def _what(answers: Answers) -> str:
    return "A page." if isinstance(answers, str) else _published(answers.__doc__ or "")


def _content(answers: Answers) -> Json:
    if isinstance(answers, str):
        kind = "object" if answers == JSON else "string"
        return {answers.partition(";")[0]: {"schema": {"type": kind}}}
    return {"application/json": {"schema": _reference(answers)}}


def _headers(*more: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *more)}


_REFUSED: Json = {"401": {"$ref": "#/components/responses/Unauthorized"}}

_UNAUTHORIZED: Json = {
    "description": "No token, or none that is good.",
    "headers": _headers("WWW-Authenticate"),
    "content": {
        errors.UNAUTHORIZED_TYPE: {
            "schema": {"type": "string", "examples": [errors.UNAUTHORIZED.decode()]}
        }
    },
}

_WAITS = {405: ("Allow",), 409: ("Retry-After",), 429: ("Retry-After",), 503: ("Retry-After",)}
"""Status → headers that tell more."""


def _refusal(status: int, same: Sequence[str]) -> Json:
    told = {"properties": {"status": {"const": status}, "code": {OPEN_WORDS: list(same)}}}
    return {
        "description": " ".join(f"`{code}`: {errors.TITLES[code]}." for code in same),
        "headers": _headers(*_WAITS.get(status, ())),
        "content": {
            "application/problem+json": {"schema": {"allOf": [_reference(Problem), told]}},
            "text/plain": {"schema": {"type": "string"}},
        },
    }
