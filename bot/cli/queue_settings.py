"""A queue's settings as `--set` takes them and as tables show them."""

import difflib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import Enum

import orjson
from pydantic.alias_generators import to_camel

from bot.cli.exits import Exit, Failed
from bot.uploader.transport import Json
from service.mergequeue.engine.config import CLI_DEFAULTS, BatchingRule, QueueConfig
from service.settings import as_json, short_json

BATCHING_RULES = tuple[BatchingRule, ...]

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

    Raises as `parse_pairs`.
    """
    kinds = typing.get_type_hints(QueueConfig) | {"state": str, "state_reason": str | None}
    known = {to_camel(name): (to_camel(name), kind) for name, kind in kinds.items()}
    known |= {name: (to_camel(name), kind) for name, kind in kinds.items()}
    return parse_pairs(texts or (), known, "queue", "headgate queue show --all-settings")


def completed(begun: str, *, is_of_tests: bool) -> list[str]:
    """Return the `KEY=`, or the `KEY=VALUE` of a closed list, that begin as this text."""
    from service.testhealth.settings import TestSettings

    kinds = typing.get_type_hints(TestSettings if is_of_tests else QueueConfig)
    spelled = kinds if is_of_tests else {**kinds, **{to_camel(each): kinds[each] for each in kinds}}
    key, equals, value = begun.partition("=")
    if not equals:
        return sorted(f"{name}=" for name in spelled if name.startswith(begun))
    words = sorted(_words_of(spelled.get(key)))
    return [f"{key}={word}" for word in words if word.startswith(value)]


def _words_of(kind: object) -> list[str]:
    """Return the values of a closed list; empty for other kinds."""
    if kind is bool:
        return ["false", "true"]
    is_enum = isinstance(kind, type) and issubclass(kind, Enum)
    return [str(each.value) for each in kind] if is_enum else []  # type: ignore[attr-defined]


def parse_pairs(
    texts: Sequence[str], known: Mapping[str, tuple[str, object]], subject: str, listing: str
) -> Json:
    """Return `KEY=VALUE` texts as members of a request.

    `known` has the member and the type of each key; the command `listing` shows all keys.
    Raises Failed(USAGE) for a text without `=`, an unknown key, or a setting given twice.
    """
    settings: Json = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals:
            raise Failed(Exit.USAGE, f"--set {text!r} has no value", "Write KEY=VALUE")
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            todo = f"Did you mean {near[0]}?" if near else f"`{listing}` lists them"
            raise Failed(Exit.USAGE, f"unknown {subject} setting {key!r}", todo)
        member, kind = known[key]
        if member in settings:
            raise Failed(Exit.USAGE, f"{key!r} is set twice", "Keep one of them")
        settings[member] = _parse_value(kind, value.strip())
    return settings


def _parse_value(kind: object, text: str) -> object:
    """Return a setting's value: JSON if it is JSON, an array for a comma list, else the text.

    A comma list of patterns stands for batching rules, `none` for null where a setting may be
    null. The service checks the value.
    """
    if text == "none" and "None" in str(kind):
        return None
    is_list = "tuple" in str(kind)
    if is_list and not text.startswith("[") and text != "null":
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return [{"targetPattern": part} for part in parts] if kind == BATCHING_RULES else parts
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
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[" + ",\n ".join(map(short_json, value)) + "]"
    return orjson.dumps(value).decode()


def is_plain(value: object) -> bool:
    """Return whether an element can be written in a comma list."""
    return isinstance(value, str) and "," not in value and value[:1] != "[" and value != "none"
