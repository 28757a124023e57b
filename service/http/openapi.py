"""The OpenAPI document, made from the endpoints, the messages and their models.

Nothing in it is written twice (docs/design/http.md 13): paths, methods, roles and codes come from
the routes, descriptions from handlers and models, shapes from the models.
"""

import functools
import inspect
import re
from collections.abc import Collection, Mapping, Sequence
from typing import assert_never, cast

import orjson
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaValue

from service.http import callers, codes, errors, repeats, schemas
from service.http.models.answers.common import OPEN_WORDS
from service.http.models.answers.problems import Problem
from service.http.route import (
    EVENT_STREAM,
    JSON,
    VERSIONED,
    Answers,
    Contract,
    Document,
    Fetched,
    Open,
    Posted,
    Route,
    Secured,
    Streamed,
)
from service.http.schemas import COMPONENT, Json
from service.runtime import EnumCase

Content = Mapping[str, JsonSchemaValue]
"""Media type → its schema, and how it is sent."""

CONTRACT_VERSION = "1.0.0"
"""Of the contract, not of the product (docs/design/http.md 11)."""

CODES = "x-codes"
"""Keyword of a refusal's codes: a list that may grow."""

SECURITY: list[Json] = [{"apiToken": []}, {"bearer": []}]

ABOUT = """\
Everything a client can ask Headgate, and every message that Headgate sends. A success is always
200. A refusal is a problem (RFC 9457) whose `code` is stable; `/docs/errors/{code}` says what to
do about it.

Words are taken in any letter case. Fields that Headgate does not know are ignored, but every
body is JSON within bounds: 32 levels, strings of 1 MiB without NUL, integers of 64 bits, no
name twice. Clients ignore fields and words that they do not know: lists with
`x-extensible-enum` may grow.
"""

EXAMPLE_OF_TYPE: Mapping[str, object] = {"null": None, "boolean": True, "integer": 1, "number": 0.5}
EXAMPLE_OF_FORMAT: Mapping[str, object] = {
    "binary": "<testsuite/>",
    "date": "2026-03-02",
    "date-time": "2026-03-02T14:02:19.000Z",
}

LICENCE: Json = {"name": "Apache-2.0", "identifier": "Apache-2.0"}

QUEUE, MESSAGES, OPEN = "merge queue", "messages", "status and documents"
TAGS: Mapping[str, str] = {
    QUEUE: "Submit pull requests, watch them, and change queues.",
    "flaky-tests": "Upload test results, list tests, and decide on quarantine.",
    "tokens": "Make, list, rotate and revoke API tokens.",
    "webhooks": "Say which addresses receive messages, and send messages again.",
    OPEN: "What needs no token and holds nothing of an organization.",
    MESSAGES: "What Headgate sends to webhook endpoints.",
}
"""Every group of operations, and what it is for."""


@functools.lru_cache(maxsize=2)
def encoded(contract: Contract, case: EnumCase = EnumCase.SPEC) -> bytes:
    """The document as it is served."""
    return orjson.dumps(document(contract, case))


def document(contract: Contract, case: EnumCase = EnumCase.SPEC) -> JsonSchemaValue:
    """The document, with enums in the case of this service's answers; paths in the given order."""
    components = _schemas(contract, case)
    write = _Writer(components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headgate",
            "version": CONTRACT_VERSION,
            "summary": "A merge queue and a service for flaky tests.",
            "description": ABOUT,
            "license": LICENCE,
        },
        "servers": [{"url": "/", "description": "This service."}],
        "tags": [{"name": name, "description": about} for name, about in TAGS.items()],
        "paths": {
            route.path: {route.method.lower(): write.operation(route)} for route in contract.listed
        },
        "webhooks": {
            name: {"post": write.message(name, model)} for name, model in contract.messages
        },
        "components": {
            "schemas": components,
            "headers": HEADERS,
            "responses": {"Unauthorized": _UNAUTHORIZED},
            "examples": {code: _problem(code) for code in errors.STATUS_OF},
            "securitySchemes": {
                "apiToken": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "x-api-token",
                    "description": "An API token.",
                },
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The same token, for clients that send it so.",
                },
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
    "RateLimit": {
        "description": "What is left: `r` requests now, and all of them after `t` seconds.",
        "schema": {"type": "string", "examples": ['"reads";r=999;t=1']},
    },
    "RateLimit-Policy": {
        "description": "The limit of the token: `q` requests at once, and in `w` seconds.",
        "schema": {"type": "string", "examples": ['"reads";q=1000;w=5']},
    },
    "Allow": {"description": "The methods to ask by.", "schema": {"type": "string"}},
    "WWW-Authenticate": {
        "description": "How to ask with a token.",
        "required": True,
        "schema": {"type": "string", "const": callers.CHALLENGE["WWW-Authenticate"]},
    },
    "ETag": {
        "description": "The version of the answer, for `If-None-Match`.",
        "schema": {"type": "string"},
    },
}


def _schemas(contract: Contract, case: EnumCase) -> Mapping[str, JsonSchemaValue]:
    """Every model of the contract, and what they are made of, by name.

    Raises ValueError for a name that stands for different things.
    """
    models = [each.model for each in contract.listed if isinstance(each, Posted)]
    asked = _with_strict_parts(schemas.build(models), {each.__name__ for each in models})
    answers = [each.answers for each in contract.listed if isinstance(each.answers, type)]
    shown = schemas.build([Problem, *answers])
    sent = schemas.build([model for _, model in contract.messages])
    _check_same(asked, shown)
    _check_same({**asked, **shown}, sent)
    in_messages = schemas.in_case(sent, case, schemas.MESSAGE_WORDS)
    return {**in_messages, **schemas.in_case({**asked, **shown}, case)}


def _with_strict_parts(
    asked: Mapping[str, JsonSchemaValue], requests: Collection[str]
) -> dict[str, JsonSchemaValue]:
    """Return the schemas, in which requests that refuse unknown fields do so in their parts, too.

    A part that requests of both kinds share is there twice: `Repository` and `StrictRepository`.
    """
    lenient = {name for name, each in asked.items() if "additionalProperties" not in each}
    parts = {name for name in lenient.difference(requests) if asked[name].get("type") == "object"}
    by_strict, by_lenient = (
        {part for each in some for part in schemas.references(asked[each]) if part in parts}
        for some in (asked.keys() - lenient, lenient)
    )
    shared = by_strict & by_lenient
    renamed = {
        COMPONENT.format(model=name): COMPONENT.format(model=f"Strict{name}") for name in shared
    }
    strict = {
        f"Strict{name}" if name in shared else name: {**asked[name], "additionalProperties": False}
        for name in sorted(by_strict)
    }
    others = {
        name: each if name in lenient else cast("JsonSchemaValue", _referring(each, renamed))
        for name, each in asked.items()
    }
    return {**others, **strict}


def _referring(value: object, renamed: Mapping[str, str]) -> object:
    """Return a part of a schema with some references renamed."""
    if isinstance(value, Mapping):
        return {
            key: renamed.get(each, each) if key == "$ref" else _referring(each, renamed)
            for key, each in value.items()
        }
    return [_referring(each, renamed) for each in value] if isinstance(value, list) else value


def _check_same(some: Mapping[str, object], others: Mapping[str, object]) -> None:
    for name in some.keys() & others.keys():
        if some[name] != others[name]:
            raise ValueError(f"{name} stands for two different things")


def _name_of(route: Route) -> str:
    """The name of the operation, which clients use as the name of a method: `getQueue`."""
    if isinstance(route, Posted):
        model = route.model.__name__
        return model[0].lower() + model[1:]
    return route.operation


def _summary(name: str) -> str:
    """`getQueue` → `Get queue`."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return words[0].upper() + words[1:]


def _group_of(route: Route) -> str:
    """The tag of an endpoint."""
    if not isinstance(route, Secured):
        return OPEN
    return route.path.removeprefix(f"{VERSIONED}/").rpartition("/")[0] or QUEUE


def about(route: Route) -> str:
    """Return what an endpoint does, and who may ask, in sentences."""
    text = schemas.published(inspect.getdoc(route.handler) or "")
    return f"{text} {_who_may(route)}" if isinstance(route, Secured) else text


def _who_may(route: Secured) -> str:
    if route.role is None:
        return "Any token may ask."
    return f"The role `{route.role.value}`, or one that allows more."


class _Writer:
    """Writes operations over one set of schemas."""

    def __init__(self, components: Mapping[str, JsonSchemaValue]) -> None:
        self._components = components

    def operation(self, route: Route) -> Json:
        """Return what a client can do at an endpoint."""
        name = _name_of(route)
        shown: dict[str, object] = {
            "operationId": name,
            "summary": _summary(name),
            "description": about(route),
            "tags": [_group_of(route)],
            "security": SECURITY if isinstance(route, Secured) else [],
        }
        parameters = _parameters(route)
        if parameters:
            shown["parameters"] = parameters
        if isinstance(route, Posted):
            content = route.intake.content(dict(_reference(route.model)))
            shown["requestBody"] = {"required": True, "content": self._shown(content, whole=False)}
        shown["responses"] = {
            **self._successes(route),
            **(_UNCHANGED if isinstance(route, TAGGED) else {}),
            **(_REFUSED if isinstance(route, Secured) else {}),
            **{
                str(status): _refusal(status, same)
                for status, same in codes.by_status(codes.codes_of(route)).items()
                if status not in _statuses(route)
            },
        }
        return shown

    def message(self, event: str, model: type[BaseModel]) -> Json:
        """Return what a webhook endpoint receives for an event."""
        name = "".join(part.capitalize() for part in re.split(r"[._]", event))
        content = {"application/json": {"schema": _reference(model)}}
        shown = self._shown(content, whole=True)
        example = shown["application/json"]["example"]
        example.update(type=event, action=event.rpartition(".")[2])
        return {
            "operationId": f"receive{name}",
            "summary": f"Event {event}",
            "description": schemas.published(model.__doc__ or ""),
            "tags": [MESSAGES],
            "security": [],
            "parameters": _SIGNED,
            "requestBody": {"required": True, "content": shown},
            "responses": {"2XX": {"description": "The message was received."}},
        }

    def _shown(self, content: Content, *, whole: bool) -> dict[str, JsonSchemaValue]:
        """The content with an example of each of its schemas."""
        return {
            kind: {
                **media,
                "example": _example_of(media["schema"], self._components, whole=whole),
            }
            for kind, media in content.items()
        }

    def _successes(self, route: Route) -> Json:
        if route.answers is None:
            raise ValueError(f"{route.path} does not say what it answers")
        success: dict[str, object] = {
            "description": _what(route.answers),
            "headers": _headers(*_told_by(route)),
            "content": _content(route.answers),
        }
        if isinstance(route.answers, type):
            success["content"] = self._shown(_content(route.answers), whole=True)
        return {str(status): success for status in _statuses(route)}


def _parameters(route: Route) -> list[Json]:
    if isinstance(route, Document) and route.variables is not None:
        return schemas.parameters_of(route.variables, "path")
    if isinstance(route, Fetched) and route.query is not None:
        return schemas.parameters_of(route.query, "query")
    if isinstance(route, Streamed):
        return [*schemas.parameters_of(route.query, "query"), _LAST_EVENT]
    return _sent_headers(route) if isinstance(route, Posted) else []


def _sent_headers(route: Posted) -> list[Json]:
    found: list[Json] = []
    if route.writes:
        key = "Makes the request safe to repeat for 24 hours: the first answer is given again."
        pattern = {"type": "string", "pattern": f"^{repeats.KEY_PATTERN}$"}
        found.append(_header(str(repeats.KEY), pattern, key))
    if route.forks is not None:
        run = "A CI run of a fork's pull request, which may ask without a token."
        found.append(_header(str(callers.FORKED_RUN), {"type": "string"}, run))
    return found


def _header(name: str, schema: Json, description: str) -> Json:
    return {"name": name, "in": "header", "schema": schema, "description": description}


_LAST_EVENT = _header("Last-Event-ID", {"type": "string"}, "Id of the last event received.")

_SIGNED = [
    _header("webhook-id", {"type": "string"}, "The message: the same on every try."),
    _header("webhook-timestamp", {"type": "string"}, "When this try was made, in Unix seconds."),
    _header("webhook-signature", {"type": "string"}, "Standard Webhooks: `v1,` and an HMAC."),
]
"""Headers of every message (docs/design/notifications.md 2)."""


def _reference(model: type[BaseModel]) -> Json:
    return {"$ref": COMPONENT.format(model=model.__name__)}


def _statuses(route: Route) -> tuple[int, ...]:
    """Return what the endpoint answers with that is no refusal."""
    match route:
        case Posted() | Fetched() | Streamed() | Document():
            return (200,)
        case Open():
            return route.statuses
        case _:
            assert_never(route)


def _told_by(route: Route) -> tuple[str, ...]:
    """The headers that a success of the endpoint has beside those of every answer."""
    tagged = ("ETag",) if isinstance(route, TAGGED) else ()
    return (*LIMITED, *tagged) if isinstance(route, Secured) else tagged


def _what(answers: Answers) -> str:
    return "A page." if isinstance(answers, str) else schemas.published(answers.__doc__ or "")


def _content(answers: Answers) -> Content:
    if isinstance(answers, str):
        kind = "object" if answers == JSON else "string"
        media = answers.partition(";")[0]
        example = {"example": _TEXTS[media]} if media in _TEXTS else {}
        return {media: {"schema": {"type": kind}, **example}}
    return {"application/json": {"schema": _reference(answers)}}


def _headers(*more: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *more)}


_REFUSED: Json = {"401": {"$ref": "#/components/responses/Unauthorized"}}

_UNAUTHORIZED: Json = {
    "description": "No token, or none that is good.",
    "headers": _headers("WWW-Authenticate"),
    "content": {
        errors.UNAUTHORIZED_TYPE: {
            "schema": {"type": "string"},
            "example": errors.UNAUTHORIZED.decode(),
        }
    },
}

TAGGED = Fetched | Document
"""The endpoints whose answers have an ETag: all reads by GET, but for the state of the process."""

LIMITED = ("RateLimit", "RateLimit-Policy")
_UNCHANGED: Json = {
    "304": {
        "description": "The answer is the one that `If-None-Match` names.",
        "headers": _headers("ETag"),
    }
}

_WAITS = {
    405: ("Allow",),
    409: ("Retry-After",),
    429: ("Retry-After", *LIMITED),
    503: ("Retry-After",),
}
"""Status → headers that tell more."""


def _refusal(status: int, same: Sequence[str]) -> Json:
    return {
        "description": " ".join(f"`{code}`: {errors.TITLES[code]}." for code in same),
        CODES: list(same),
        "headers": _headers(*_WAITS.get(status, ())),
        "content": {
            "application/problem+json": {
                "schema": _reference(Problem),
                "examples": {code: {"$ref": f"#/components/examples/{code}"} for code in same},
            },
            "text/plain": {"schema": {"type": "string"}},
        },
    }


def _problem(code: str) -> Json:
    """Return an example of a refusal, as the service writes it."""
    detail = f"{errors.TITLES[code]}. {codes.REMEDIES[code]}"
    refused = errors.Problem(errors.STATUS_OF[code], code, detail)
    written = refused.as_json("https://queue.example.org", "5b0e4f3e9d0a3b1a54c1b7de0f8c6c1e")
    return {"summary": errors.TITLES[code], "value": orjson.loads(written)}


_TEXTS = {
    EVENT_STREAM: (
        "id: eyJrIjpbMV19\nevent: EntryMoved\n"
        'data: {"at":"2026-03-02T14:20:00.000Z","event":"EntryMoved","prNumber":482,'
        '"from":"TESTS_PASSED","to":"MERGED","reason":"landed"}\n\n'
    ),
    "text/plain": (
        "# HELP mq_depth_current Pull requests in the queue, those not ready excluded.\n"
        "# TYPE mq_depth_current gauge\n"
        'mq_depth_current{branch="main",repo="octo/widgets"} 7\n'
    ),
}
"""Examples of answers that are text for programs."""


def _example_of(
    schema: JsonSchemaValue, schemas: Mapping[str, JsonSchemaValue], *, whole: bool
) -> object:
    """Return a value of this schema; without `whole` an object has its required fields alone.

    `schemas` are those that it may refer to. Raises ValueError where nothing gives an example.
    """
    for keyword in ("examples", "enum", OPEN_WORDS):
        if keyword in schema:
            return schema[keyword][0]
    if "const" in schema:
        return schema["const"]
    if "$ref" in schema:
        return _example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas, whole=whole)
    if "anyOf" in schema and "type" not in schema:
        return _example_of(schema["anyOf"][0], schemas, whole=whole)
    if schema.get("type") == "object":
        fields = schema.get("properties", {})
        wanted = fields if whole else schema.get("required", ())
        return {name: _example_of(fields[name], schemas, whole=whole) for name in wanted}
    if schema.get("type") == "array":
        return [_example_of(schema.get("items", {}), schemas, whole=whole)]
    return _scalar_example(schema)


def _scalar_example(schema: JsonSchemaValue) -> object:
    for keyword, known in (
        ("minimum", None),
        ("format", EXAMPLE_OF_FORMAT),
        ("type", EXAMPLE_OF_TYPE),
    ):
        if keyword in schema and (known is None or schema[keyword] in known):
            return schema[keyword] if known is None else known[schema[keyword]]
    raise ValueError(f"no example is known for {dict(schema)}")
