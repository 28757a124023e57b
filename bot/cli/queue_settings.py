"""A queue's settings as `--set` takes them and as tables show them."""

import difflib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import fields

import orjson
from pydantic.alias_generators import to_camel

from bot.cli.exits import Exit, Failed
from bot.uploader.transport import Json
from service.mergequeue.engine.config import CLI_DEFAULTS, BatchingRule, QueueConfig

RULES = tuple[BatchingRule, ...]


def as_json(value: object) -> object:
    """Return a setting's value as JSON."""
    decoded: object = orjson.loads(orjson.dumps(value))
    return decoded


DEFAULTS: Mapping[str, object] = {
    to_camel(field.name): as_json(getattr(QueueConfig(), field.name))
    for field in fields(QueueConfig)
}


def created_with() -> Json:
    """Return the settings with which `queue create` creates a queue."""
    return {
        to_camel(name): as_json(value)
        for name, value in CLI_DEFAULTS.items()
        if name != "bisection_concurrency"
    }


def parse(texts: Sequence[str] | None) -> Json:
    """Return `KEY=VALUE` texts as members of a request; names in either spelling.

    Raises Failed(USAGE) for a text without `=`, an unknown name, or a name given twice.
    """
    kinds = typing.get_type_hints(QueueConfig) | {"state": str, "state_reason": str | None}
    names = {to_camel(name): name for name in kinds} | {name: name for name in kinds}
    settings: Json = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        name = names.get(key.strip())
        if not equals:
            raise Failed(Exit.USAGE, f"--set {text!r} has no value", "Write KEY=VALUE")
        if name is None:
            near = difflib.get_close_matches(key, names, n=1)
            listed = "`headgate queue show --all-settings` lists them"
            todo = f"Did you mean {near[0]}?" if near else listed
            raise Failed(Exit.USAGE, f"unknown queue setting {key!r}", todo)
        if to_camel(name) in settings:
            raise Failed(Exit.USAGE, f"{key!r} is set twice", "Keep one of them")
        settings[to_camel(name)] = parse_value(kinds[name], value.strip())
    return settings


def parse_value(kind: object, text: str) -> object:
    """Return a setting's value: JSON if it is JSON, an array for a comma list, else the text.

    A comma list of patterns stands for batching rules, `none` for null where a setting may be
    null. The service checks the value.
    """
    if text == "none" and "None" in str(kind):
        return None
    is_list = "tuple" in str(kind)
    if is_list and not text.startswith("[") and text != "null":
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return [{"targetPattern": part} for part in parts] if kind == RULES else parts
    if kind is str:
        return text
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value


def written(value: object) -> str:
    """Return a setting's value as `--set` takes it."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(is_plain(each) for each in value):
        return ", ".join(map(str, value))
    return orjson.dumps(value).decode()


def is_plain(value: object) -> bool:
    """Return whether an element can be written in a comma list."""
    return isinstance(value, str) and "," not in value and value[:1] != "[" and value != "none"
