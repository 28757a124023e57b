"""The table in docs/reference/queue-settings.md is written from the definitions."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import get_args, get_type_hints

import orjson
import pytest
from pydantic.alias_generators import to_camel

from service.mergequeue.api.models.settings import ITEMS_MAX
from service.mergequeue.engine.config import (
    SETTINGS,
    BatchingRule,
    Chars,
    Items,
    QueueConfig,
    Range,
    Setting,
)

PAGE = Path(__file__).parents[2] / "docs/reference/queue-settings.md"
HEAD = """\
| Setting | Values | Default | Meaning | When to change it |
|---|---|---|---|---|
"""
KINDS = get_type_hints(QueueConfig)


def test_the_table_is_current(pytestconfig: pytest.Config):
    old = PAGE.read_text("utf-8")
    before, _, after = old.partition(HEAD)
    fresh = before + HEAD + "".join(rows()) + "\n" + after.partition("\n\n")[2]
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(fresh, "utf-8")
    assert PAGE.read_text("utf-8") == fresh, "`make docs` writes it anew"


def test_every_setting_says_when_to_change_it():
    without = {name for name, setting in SETTINGS.items() if not setting.advice}
    assert without == {"state_labels_enabled", "extension_enabled"}


def rows() -> Iterator[str]:
    default = QueueConfig()
    for name, setting in SETTINGS.items():
        usual = written(getattr(default, name))
        if setting.cli_default is not None:
            usual += f"; {written(setting.cli_default)} by `headgate queue create`"
        cells = (f"`{to_camel(name)}`", values(KINDS[name], setting), usual)
        yield "| " + " | ".join((*cells, setting.meaning, setting.advice)) + " |\n"


def values(kind: object, setting: Setting) -> str:
    """Return which values a setting takes, in words."""
    match setting.bounds:
        case Range(minimum, maximum):
            return f"{minimum:g} to {maximum:g}"
        case Chars(chars_max):
            return f"1 to {chars_max} characters"
        case Items(noun):
            none = ", or none" if type(None) in get_args(kind) else ""
            return f"up to {ITEMS_MAX} {noun}{none}"
    if kind == tuple[BatchingRule, ...]:
        return f'up to {ITEMS_MAX} of `{{"targetPattern": "…", "policy": "ISOLATE"}}`'
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return ", ".join(f"`{word.value}`" for word in kind)
    assert kind is bool
    return "true, false"


def written(value: object) -> str:
    """Return a value as the page shows it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    text = orjson.dumps(value).decode() if isinstance(value, tuple) else f"{value}"
    return text if isinstance(value, int | float) else f"`{text}`"
