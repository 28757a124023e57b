"""JSON Schemas of requests, answers and messages, made from their models.

The text below a field of a model is its description. A description that ends with "For example"
and a value in backticks gives the field's example, so that pages and programs read the same.
"""

import ast
import functools
import inspect
import itertools
import re
import sys
from collections.abc import Mapping, Sequence

import orjson
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from service.http import encoding
from service.http.models.answers.common import OPEN_WORDS
from service.runtime import EnumCase

Json = Mapping[str, object]

COMPONENT = "#/components/schemas/{model}"

MESSAGE_WORDS = frozenset({"status", "previous_status", "scope"})
"""Members of outgoing messages whose value changes its case."""

_EXAMPLE = re.compile(r"For example `([^`]+)`")


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
        """Leave out the description of an enum, which speaks of our code."""
        shown = super().enum_schema(schema)
        shown.pop("description", None)
        return shown

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Describe each field by the text below it."""
        shown = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        for base in reversed(model.__mro__):
            for name, text in _field_texts(base.__module__).get(base.__qualname__, {}).items():
                field = model.model_fields.get(name)
                if field is not None and field.description is None:
                    shown["properties"][field.alias or name]["description"] = text
        return shown


@functools.cache
def _field_texts(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return the text below each field, by class of a module.

    pydantic would read it when the class is made (`use_attribute_docstrings`): 0.2 s per start.
    """
    if not module.startswith("service."):
        return {}
    return {
        made.name: {
            field.target.id: inspect.cleandoc(text)
            for field, below in itertools.pairwise(made.body)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            if isinstance(text := below.value.value, str)
        }
        for made in ast.parse(inspect.getsource(sys.modules[module])).body
        if isinstance(made, ast.ClassDef)
    }


def build(
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
            schema["description"] = published(schema["description"])
        for field in schema.get("properties", {}).values():
            _describe(field)
    return schemas


def parameters_of(model: type[BaseModel], place: str) -> list[Json]:
    """The fields of a model as parameters; `place` is `path` or `query`."""
    schema = model.model_json_schema(schema_generator=_Generator)
    required = schema.get("required", ())
    parameters: list[Json] = []
    for name, field in schema["properties"].items():
        _describe(field)
        about = {key: field.pop(key) for key in ("description",) if key in field}
        parameters.append(
            {"name": name, "in": place, "required": name in required, **about, "schema": field}
        )
    return parameters


def published(text: str) -> str:
    """A text as one paragraph, without the documents that only readers of the code have."""
    return " ".join(re.sub(r"\s*\([^()]*\.md[^()]*\)", "", text).split())


def _describe(field: JsonSchemaValue) -> None:
    """Write a field's description as one paragraph, and its example beside it."""
    if "description" not in field:
        return
    field["description"] = published(field["description"])
    found = _EXAMPLE.search(field["description"])
    if found is not None:
        kinds = {field.get("type"), *(each.get("type") for each in field.get("anyOf", ()))}
        is_text = kinds == {"string"} or ("string" in kinds and found[1][0] not in "[{")
        field["examples"] = [_example_in(found[1], is_text=is_text and found[1] != "null")]


def _example_in(text: str, *, is_text: bool) -> object:
    """Return the value of an example; a word of a list is written without quotes."""
    try:
        return text if is_text else orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


_STANDARD = {"ge": "minimum", "le": "maximum"}


def _in_standard_words(schema: Mapping[str, object]) -> JsonSchemaValue:
    """The schema with bounds and patterns as JSON Schema has them.

    pydantic writes a bound that stands behind a validator in words of its own, and `$` needs a
    guard in Python alone. A boolean that is always the same is a boolean with a sentence about it:
    some generators of clients make of its `const` an enum of words, which refuses the answer.
    """
    shown: JsonSchemaValue = {}
    if isinstance(schema.get("const"), bool):
        value = schema["const"]
        always = f"Always `{orjson.dumps(value).decode()}`"
        text = str(schema.get("description", ""))
        text = text if always in text else f"{text} {always}."
        rest = {name: each for name, each in schema.items() if name != "const"}
        return {**rest, "type": "boolean", "description": text.strip(), "examples": [value]}
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


def in_case(
    schemas: Mapping[str, JsonSchemaValue], case: EnumCase, words: frozenset[str] = encoding.WORDS
) -> dict[str, JsonSchemaValue]:
    """The schemas with the words of `words` as this service answers them.

    Objects below a member of `KEPT` keep theirs.
    """
    if case is EnumCase.SPEC:
        return dict(schemas)
    kept = _below(schemas, encoding.KEPT)
    lowered: set[str] = set()
    shown = {}
    for name, schema in schemas.items():
        fields = {} if name in kept else schema.get("properties", {})
        changed = {
            field: _in_lower(value, lowered) if field in words else value
            for field, value in fields.items()
        }
        shown[name] = {**schema, "properties": changed} if changed else schema
    for name in lowered:
        shown[name] = _in_lower(schemas[name], set())
    return shown


def _in_lower(schema: JsonSchemaValue, named: set[str]) -> JsonSchemaValue:
    """The schema with its words in lower case; enums that it refers to are added to `named`."""
    shown = dict(schema)
    if "$ref" in schema:
        named.add(schema["$ref"].rpartition("/")[2])
    for keyword in ("enum", "examples", OPEN_WORDS):
        if keyword in schema:
            shown[keyword] = [
                each.lower() if isinstance(each, str) else each for each in schema[keyword]
            ]
    for keyword in ("const", "default"):
        if isinstance(schema.get(keyword), str):
            shown[keyword] = schema[keyword].lower()
    if "anyOf" in schema:
        shown["anyOf"] = [_in_lower(each, named) for each in schema["anyOf"]]
    if "items" in schema:
        shown["items"] = _in_lower(schema["items"], named)
    return shown


def _below(schemas: Mapping[str, JsonSchemaValue], members: frozenset[str]) -> set[str]:
    """The names of the schemas that these members hold, and of what those hold."""
    fields = [schema.get("properties", {}) for schema in schemas.values()]
    waiting = [
        name
        for each in fields
        for member in members & each.keys()
        for name in references(each[member])
    ]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(references(schemas[name]))
    return found


def references(schema: JsonSchemaValue) -> list[str]:
    """Return the names of the components that a schema refers to."""
    return re.findall(COMPONENT.format(model="([A-Za-z]+)"), orjson.dumps(schema).decode())
