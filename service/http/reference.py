"""Every endpoint, message and object in Markdown, written from the OpenAPI document.

Whatever it says is therefore what requests are checked by. Patterns are left out: they are in
the document itself. `docs/reference/api.md` and the page `/docs/api` show it.
"""

from collections.abc import Iterator, Mapping, Sequence

from pydantic.json_schema import JsonSchemaValue

from service.http import codes, openapi
from service.http.models.answers.common import OPEN_WORDS
from service.http.route import Contract, Posted, Route, Secured
from service.runtime import EnumCase

Schema = JsonSchemaValue

WORDS_MAX, OPEN_WORDS_MAX = 60, 16
"""Longer lists of words, and of words that may grow, are left to the document."""


def lines_of(contract: Contract, case: EnumCase = EnumCase.SPEC) -> Iterator[str]:
    """Return the lines about everything in the contract, from the codes that all share on."""
    return _Page(contract, openapi.document(contract, case)).lines()


class _Page:
    """Lines over one document; notes which objects they speak of."""

    def __init__(self, contract: Contract, document: Schema) -> None:
        self._contract = contract
        self._document = document
        self._schemas: Mapping[str, Schema] = document["components"]["schemas"]
        self._wanted: dict[str, None] = {}

    def lines(self) -> Iterator[str]:
        yield from self._shared()
        group = ""
        for route in self._contract.listed:
            operation = self._document["paths"][route.path][route.method.lower()]
            if operation["tags"][0] != group:
                group = operation["tags"][0]
                yield f"## {group[0].upper()}{group[1:]}\n"
            yield from self._endpoint(route, operation)
        yield "## Messages\n"
        yield "What Headgate sends to webhook endpoints.\n"
        yield "| Event | Message |\n|---|---|"
        for name, message in self._document["webhooks"].items():
            content = message["post"]["requestBody"]["content"]["application/json"]
            yield f"| `{name}` | {self._form(content['schema'])} |"
        yield ""
        yield "## Objects\n"
        done: set[str] = set()
        while name := next((each for each in self._wanted if each not in done), None):
            done.add(name)
            yield f"### {name}\n"
            yield from self._described(self._schemas[name])
            yield from self._fields(self._schemas[name])

    def _shared(self) -> Iterator[str]:
        yield "| Codes that | are |\n|---|---|"
        said: set[str] = set()
        for who, shared in (
            ("every address may answer", codes.PAGES),
            ("so may every endpoint with a token", codes.FETCHES),
            ("so may one that takes a body", codes.POSTS),
            ("so may one that takes an `Idempotency-Key`", codes.WRITES),
        ):
            yield f"| {who} | {_coded([code for code in shared if code not in said])} |"
            said.update(shared)
        yield "\nWithout a good token every endpoint answers 401, one line of text.\n"

    def _endpoint(self, route: Route, operation: Schema) -> Iterator[str]:
        yield f"### `{route.method} {route.path}`\n"
        said = [operation["description"]]
        if isinstance(route, Secured):
            said.append(f"Counts among {route.rate.value}.")
        if isinstance(route, Posted) and route.writes:
            said.append("Takes an `Idempotency-Key`.")
        yield " ".join(said) + "\n"
        named = [each for each in operation.get("parameters", ()) if each["in"] != "header"]
        if named:
            yield "| Parameter | Form | Meaning |\n|---|---|---|"
            for each in named:
                needed = "" if each["required"] else "; may be left out"
                form = f"{self._form(each['schema'])}{needed}"
                yield f"| `{each['name']}` | {form} | {_meaning(each)} |"
            yield ""
        if isinstance(route, Posted):
            yield from self._fields(self._schemas[route.model.__name__])
        yield f"Answers {self._answered(operation)}.\n"
        own = getattr(route, "codes", ())
        if own:
            yield f"Codes of its own: {_coded(own)}.\n"

    def _answered(self, operation: Schema) -> str:
        status, success = next(iter(operation["responses"].items()))
        ((kind, content),) = success["content"].items()
        what = self._form(content["schema"]) if "$ref" in content["schema"] else f"`{kind}`"
        return what if status == "200" else f"{status}, {what}"

    def _described(self, schema: Schema) -> Iterator[str]:
        if "description" in schema:
            yield " ".join(schema["description"].split()) + "\n"

    def _fields(self, schema: Schema) -> Iterator[str]:
        if not schema.get("properties"):
            return
        yield "| Field | Form | Meaning |\n|---|---|---|"
        required = schema.get("required", ())
        for name, field in schema["properties"].items():
            left_out = "" if name in required else "; may be left out"
            yield f"| `{name}` | {self._form(field)}{left_out} | {_meaning(field)} |"
        yield ""

    def _form(self, schema: Schema) -> str:
        """Return what a value looks like, in words."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if "properties" not in self._schemas[name]:
                return self._form(self._schemas[name])
            self._wanted[name] = None
            return f"[{name}](#{name.lower()})"
        if "anyOf" in schema and "type" not in schema:
            return " or ".join(dict.fromkeys(map(self._form, schema["anyOf"])))
        if "const" in schema:
            return _coded([schema["const"]])
        if "enum" in schema:
            words = schema["enum"]
            return _coded(words) if len(words) <= WORDS_MAX else "a word that the document lists"
        if OPEN_WORDS in schema:
            words = schema[OPEN_WORDS]
            listed = f": {_coded(words)}" if len(words) <= OPEN_WORDS_MAX else ""
            return f"word of a list that may grow{listed}"
        if schema.get("type") == "array":
            bounds = _bounds(schema.get("minItems"), schema.get("maxItems"))
            return f"array{bounds} of {self._form(schema.get('items', {}))}"
        return _plain(schema)


def _meaning(field: Schema) -> str:
    """Return what a field means; a bar would end the cell of the table."""
    return str(field["description"]).replace("|", "\\|")


def _plain(schema: Schema) -> str:
    kind = str(schema.get("type", "anything"))
    if kind == "string":
        if schema.get("format") == "date-time":
            return "time"
        return "text" + _bounds(schema.get("minLength"), schema.get("maxLength"))
    if kind in ("integer", "number"):
        return kind + _bounds(schema.get("minimum"), schema.get("maximum"))
    return {"boolean": "true or false", "object": "object"}.get(kind, kind)


def _bounds(least: float | None, most: float | None) -> str:
    if least is None and most is None:
        return ""
    if most is None:
        return f" (at least {least})"
    return f" (at most {most})" if least is None else f" ({least} to {most})"


def _coded(words: Sequence[object]) -> str:
    return ", ".join(f"`{str(word).lower() if isinstance(word, bool) else word}`" for word in words)
