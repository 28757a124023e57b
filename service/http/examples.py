"""Examples of whole bodies, put together from the examples of their fields."""

from collections.abc import Mapping

from pydantic.json_schema import JsonSchemaValue

from service.http.models.answers.common import OPEN_WORDS

OF_TYPE: Mapping[str, object] = {"null": None, "boolean": True, "integer": 1, "number": 0.5}
OF_FORMAT: Mapping[str, object] = {
    "binary": "<testsuite/>",
    "date": "2026-03-02",
    "date-time": "2026-03-02T14:02:19.000Z",
}


def example_of(
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
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas, whole=whole)
    if "anyOf" in schema and "type" not in schema:
        return example_of(schema["anyOf"][0], schemas, whole=whole)
    if schema.get("type") == "object":
        fields = schema.get("properties", {})
        wanted = fields if whole else schema.get("required", ())
        return {name: example_of(fields[name], schemas, whole=whole) for name in wanted}
    if schema.get("type") == "array":
        return [example_of(schema.get("items", {}), schemas, whole=whole)]
    return _scalar(schema)


def _scalar(schema: JsonSchemaValue) -> object:
    for keyword, known in (("minimum", None), ("format", OF_FORMAT), ("type", OF_TYPE)):
        if keyword in schema and (known is None or schema[keyword] in known):
            return schema[keyword] if known is None else known[schema[keyword]]
    raise ValueError(f"no example is known for {dict(schema)}")
