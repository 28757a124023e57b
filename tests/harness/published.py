"""All traffic between the service and its stand-in, held against GitHub's published descriptions.

REST requests and answers against the OpenAPI description, webhooks against its schemas, GraphQL
documents and answers against the schema. Each shape of a message is validated once in a process.
`Traffic.problems` has what deviates and is not in `known_defects.toml`.
"""

import copy
import functools
import gc
import json
import re
import tomllib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import graphql
import jsonschema_rs
import orjson
from aiohttp import web

from bot.sandbox.world import Attempt, Courier
from tests.harness import needs

PREFIX = "/api/v3"
GRAPHQL = "/api/graphql"
DEFECTS = tomllib.loads(Path(__file__).with_name("known_defects.toml").read_text("utf-8"))
IGNORED = frozenset(
    {"deprecated", "description", "discriminator", "example", "examples", "nullable"}
    | {"x-github-breaking-changes"}
)
NAME_CHARS_MAX = 40
DOCUMENTS_MAX = 500
EVERYWHERE = frozenset({301, 304, 307, 401, 403, 404, 429, 500, 502, 503, 504})
"""Statuses that GitHub documents for all calls, not for each operation: "Troubleshooting the
REST API", "Best practices for using the REST API"."""

Schema = Mapping[str, Any]


@dataclass
class Traffic:
    """What passed between a service and a sandbox, as far as it deviates."""

    problems: set[str] = field(default_factory=set)

    def check(self) -> None:
        """Fail where anything deviated that is no known defect of the descriptions."""
        assert not self.problems, "\n".join(sorted(self.problems))

    @web.middleware
    async def middleware(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Note how one exchange deviates."""
        answer = await handler(request)
        if isinstance(answer, web.Response) and needs.lack_of_assets() is None:
            self._read(request, await request.read(), answer)
        return answer

    def _read(self, request: web.Request, sent: bytes, answer: web.Response) -> None:
        if request.path == GRAPHQL:
            self._note("GraphQL", graphql_problems(_json(sent), _json(answer.body)))
        elif request.path.startswith(f"{PREFIX}/"):
            pattern = _pattern_of(request.rel_url.raw_path.removeprefix(PREFIX))
            found = operation_of(request.method, pattern)
            if found is None:
                self._note(f"{request.method} {pattern}", ["no such operation"])
                return
            version = request.headers.get("X-GitHub-Api-Version", "")
            self._note(found.name, found.request_problems(request.query, _json(sent)))
            self._note(
                found.name, found.answer_problems(answer.status, _json(answer.body), version)
            )

    def watching(self, courier: Courier) -> Courier:
        """The courier of a sandbox, with each webhook validated before it is sent."""

        async def carry(attempt: Attempt) -> None:
            name = "-".join(part for part in (attempt.event, attempt.action) if part)
            name = name.replace("_", "-")
            if needs.lack_of_assets() is None:
                self._note(f"webhook {name}", webhook_problems(name, _json(attempt.body)))
            await courier(attempt)

        return carry

    def _note(self, what: str, problems: Iterator[str] | list[str]) -> None:
        for problem in problems:
            line = f"{what}: {problem}"
            if not any(re.fullmatch(each["problem"], line) for each in DEFECTS["defect"]):
                self.problems.add(line)


@dataclass(frozen=True)
class Operation:
    """One operation of the OpenAPI description."""

    name: str
    description: Schema

    @functools.cached_property
    def queries(self) -> frozenset[str]:
        """The parameters of its query."""
        given = [resolved(each) for each in self.description.get("parameters", ())]
        return frozenset(each["name"] for each in given if each["in"] == "query")

    def request_problems(self, query: Mapping[str, str], body: Any) -> Iterator[str]:
        """Say what the service sends and the description does not know."""
        for name in query:
            if name not in self.queries:
                yield f"unknown parameter {name}"
        if body is None:
            return
        wanted = self.description.get("requestBody")
        if wanted is None:
            yield "a body is sent, and none is described"
        else:
            yield from problems_of(f"{self.name} request", _schema_in(resolved(wanted)), body)

    def answer_problems(self, status: int, body: Any, version: str = "") -> Iterator[str]:
        """Say how an answer of the stand-in differs from the description of a version."""
        answer = self.description["responses"].get(str(status))
        if answer is None:
            if status not in EVERYWHERE:
                yield f"status {status} is not described"
        elif body is not None:
            schema = _schema_in(resolved(answer))
            yield from problems_of(f"{self.name} {status}", schema, body, version)


def webhook_problems(name: str, body: Any) -> Iterator[str]:
    """Say how a webhook differs from its published schema."""
    described = description()["x-webhooks"].get(name)
    if described is None:
        yield "no such webhook"
    else:
        schema = _schema_in(described["post"]["requestBody"])
        yield from problems_of(f"webhook {name}", schema, body)


def graphql_problems(sent: Any, answer: Any) -> Iterator[str]:
    """Say how a document or its answer differs from the published schema."""
    if not _is_new("GraphQL " + sent["query"], answer):
        return
    document, problems = _document_of(sent["query"])
    yield from problems
    if "data" not in answer or answer.get("errors"):
        return
    played = graphql.execute_sync(
        graphql_schema(),
        document,
        root_value=answer["data"],
        variable_values=sent.get("variables") or {},
        field_resolver=lambda source, info, **_: source[info.path.key],
        type_resolver=_type_of,
    )
    yield from (each.message for each in played.errors or ())


@functools.lru_cache(DOCUMENTS_MAX)
def _document_of(query: str) -> tuple[graphql.DocumentNode, tuple[str, ...]]:
    """Return a document, and what the published schema says against it."""
    document = graphql.parse(query)
    problems = graphql.validate(graphql_schema(), document)
    return document, tuple(each.message for each in problems)


def _type_of(
    value: Any, info: graphql.GraphQLResolveInfo, abstract: graphql.GraphQLAbstractType
) -> str:
    """The type of an answered value: by its name, the fragment whose fields it has, or any."""
    if "__typename" in value:
        return str(value["__typename"])
    for node in info.field_nodes:
        for part in node.selection_set.selections if node.selection_set else ():
            if isinstance(part, graphql.InlineFragmentNode) and part.type_condition:
                fields = part.selection_set.selections
                names = {
                    (each.alias or each.name).value
                    for each in fields
                    if isinstance(each, graphql.FieldNode)
                }
                if names <= value.keys():
                    return part.type_condition.name.value
    return info.schema.get_possible_types(abstract)[0].name


def problems_of(what: str, schema: Schema | None, body: Any, version: str = "") -> Iterator[str]:
    """Say how a body differs from a schema, unless one of this shape was looked at before."""
    if schema is None or not _is_new(f"{what} {version}", body):
        return
    for error in _validator(json.dumps(schema), version).iter_errors(body):
        place = "/".join("*" if isinstance(part, int) else part for part in error.instance_path)
        value, _, rest = error.message.rpartition(" is ")
        yield f"{place}: {value if len(value) < NAME_CHARS_MAX else 'it'} is {rest}"[:200]


HAS_PARTS = (dict, list)
_seen: set[tuple[str, object]] = set()


def _is_new(what: str, body: Any) -> bool:
    key = (what, _shape_of(body))
    is_new = key not in _seen
    _seen.add(key)
    return is_new


def _shape_of(value: Any) -> object:
    """Which fields and types a message has; of a list, each kind of element once.

    Most of what a message holds has no parts, and is not worth a call.
    """
    kind = type(value)
    if kind is dict:
        parts = [
            _shape_of(each) if type(each) in HAS_PARTS else type(each) for each in value.values()
        ]
        return (*value, *parts)
    return frozenset(map(_shape_of, value)) if kind is list else kind


@functools.cache
def description() -> dict[str, Any]:
    """The OpenAPI description."""
    path = needs.asset("@octokit/openapi", "generated/api.github.com.json")
    read: dict[str, Any] = json.loads(path.read_text("utf-8"))
    _keep()
    return read


@functools.cache
def graphql_schema() -> graphql.GraphQLSchema:
    """The GraphQL schema."""
    path = needs.asset("@octokit/graphql-schema", "schema.graphql")
    schema = graphql.build_schema(path.read_text("utf-8"), assume_valid=True)
    _keep()
    return schema


def read_all() -> None:
    """Read the descriptions, unless they are not there."""
    if needs.lack_of_assets() is None:
        _templates()
        graphql_schema()


def _keep() -> None:
    """Let no collection of garbage look again at what was just read: it stays for the whole run."""
    gc.freeze()


@functools.cache
def _templates() -> list[tuple[re.Pattern[str], str]]:
    """Every path as a pattern, those with the most words first."""
    found = []
    for path in description()["paths"]:
        parts = re.split(r"(\{\w+\})", path)
        pattern = "".join(
            (".+" if part in SEGMENTS else "[^/]+") if part.startswith("{") else re.escape(part)
            for part in parts
        )
        found.append((re.compile(pattern), path))
    return sorted(found, key=lambda each: -sum("{" not in part for part in each[1].split("/")))


SEGMENTS = frozenset({"{branch}", "{path}", "{ref}", "{basehead}", "{tree_sha}"})
"""Parameters that may contain slashes; the description marks only some of them."""


@functools.cache
def operation_of(method: str, path: str) -> Operation | None:
    """The operation that a request means; None: the description has none."""
    for pattern, template in _templates():
        operations = description()["paths"][template]
        if method.lower() in operations and pattern.fullmatch(path):
            return Operation(f"{method} {template}", operations[method.lower()])
    return None


def _pattern_of(path: str) -> str:
    return re.sub(r"(?<=/)([0-9a-f]{40}|\d+)(?=/|$)", "*", path)


def resolved(value: Schema) -> Schema:
    """A part of the description behind its references."""
    while "$ref" in value:
        found: Any = description()
        for name in value["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        value = found
    return value


def _schema_in(message: Schema) -> Schema | None:
    """The schema of a JSON body; None: the description says nothing of one."""
    found: Schema | None = message.get("content", {}).get("application/json", {}).get("schema")
    return found


@functools.cache
def _validator(schema: str, version: str) -> Any:
    """A validator of one schema in a version, with the components that it refers to."""
    used: set[str] = set()
    root = as_json_schema(json.loads(schema), used, version)
    components: dict[str, Any] = {}
    while waiting := used - components.keys():
        for name in waiting:
            component = description()["components"]["schemas"][name]
            components[name] = as_json_schema(component, used, version)
    return jsonschema_rs.Draft202012Validator({**root, "$defs": components})


def as_json_schema(node: Any, used: set[str], version: str = "") -> Any:
    """An OpenAPI 3.0 schema as JSON Schema; `used` gets the names of its components."""
    if isinstance(node, list):
        return [as_json_schema(each, used, version) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        used.add(name)
        return {"$ref": f"#/$defs/{name}"}
    node = _in_version(node, version)
    kept = {
        key: {name: as_json_schema(each, used, version) for name, each in value.items()}
        if key == "properties"
        else as_json_schema(value, used, version)
        for key, value in node.items()
        if key not in IGNORED
    }
    if not node.get("nullable"):
        return kept
    if "type" not in kept or kept.keys() & {"allOf", "anyOf", "oneOf"}:
        return {"anyOf": [kept, {"type": "null"}]}
    enum = {"enum": [*kept["enum"], None]} if "enum" in kept else {}
    return {**kept, **enum, "type": [kept["type"], "null"]}


def _in_version(node: dict[str, Any], version: str) -> dict[str, Any]:
    """A schema with the breaking changes of a version, which its description has as patches."""
    for change in node.get("x-github-breaking-changes", ()):
        if change["version"] == version and isinstance(change["patch"], dict):
            node = _merged(node, change["patch"])
        elif change["version"] == version:
            node = copy.deepcopy(node)
            for step in change["patch"]:
                _apply(node, step)
    return node


def _merged(node: Any, patch: Any) -> Any:
    """RFC 7396: the value of each name replaces the former one, and null removes it."""
    if not isinstance(patch, dict):
        return patch
    former = node if isinstance(node, dict) else {}
    merged = {**former, **{name: _merged(former.get(name), each) for name, each in patch.items()}}
    return {name: each for name, each in merged.items() if patch.get(name, ...) is not None}


def _apply(node: Any, step: Mapping[str, Any]) -> None:
    """RFC 6902, as far as the description needs it."""
    *path, last = step["path"].removeprefix("/").split("/")
    for name in path:
        node = node[int(name)] if isinstance(node, list) else node[name]
    key = int(last) if isinstance(node, list) else last
    if step["op"] == "remove":
        del node[key]
    else:
        node[key] = step["value"]


def _json(raw: Any) -> Any:
    try:
        return orjson.loads(raw) if raw else None
    except ValueError:
        return None
