"""The tables of settings in the reference are written from the definitions."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import get_args, get_type_hints

import orjson
import pytest
from pydantic.alias_generators import to_camel

from service.http.models.common import Spelling, as_named
from service.mergequeue.engine.config import BatchingRule, QueueConfig
from service.mergequeue.engine.rules import EntryRule
from service.mergequeue.entry_rules.checking import RULES_MAX
from service.settings import (
    ITEMS_MAX,
    Chars,
    Form,
    Items,
    Range,
    Setting,
    Template,
    Words,
    definitions,
)
from service.testhealth.settings import TestSettings
from service.vocabulary import ConflictRule

REFERENCE = Path(__file__).parents[2] / "docs/reference"
HEAD = """\
| Setting | Values | Default | Meaning | When to change it |
|---|---|---|---|---|
"""


@pytest.mark.parametrize(
    ("name", "settings", "spelled"),
    [("queue-settings.md", QueueConfig, to_camel), ("tests.md", TestSettings, as_named)],
)
def test_the_table_is_current(
    pytestconfig: pytest.Config, name: str, settings: type, spelled: Spelling
):
    page = REFERENCE / name
    old = page.read_text("utf-8")
    before, head, after = old.partition(HEAD)
    assert head, f"{name} has no table with this head:\n{HEAD}"
    fresh = before + HEAD + "".join(rows(settings, spelled)) + "\n" + after.partition("\n\n")[2]
    if pytestconfig.getoption("--update-golden"):
        page.write_text(fresh, "utf-8")
    assert page.read_text("utf-8") == fresh, "`make docs` writes it anew"


@pytest.mark.parametrize("settings", [QueueConfig, TestSettings])
def test_every_setting_says_when_to_change_it(settings: type):
    without = {name for name, setting in definitions(settings).items() if not setting.advice}
    assert without <= {"extension_enabled"}


def rows(settings: type, spelled: Spelling) -> Iterator[str]:
    default = settings()
    kinds = get_type_hints(settings)
    for name, setting in definitions(settings).items():
        usual = written(getattr(default, name))
        if setting.cli_default is not None:
            usual += f"; {written(setting.cli_default)} by `headgate queue create`"
        cells = (f"`{spelled(name)}`", values(kinds[name], setting), usual)
        yield "| " + " | ".join((*cells, setting.meaning, setting.advice)) + " |\n"


OBJECTS: dict[object, str] = {
    tuple[BatchingRule, ...]: f"up to {ITEMS_MAX} of "
    '`{"targetPattern": "…", "policy": "ISOLATE"}`',
    tuple[ConflictRule, ...]: f"up to {ITEMS_MAX} of "
    '`{"paths": ["…"], "rule": "UNION"}`, or `"CHANGELOG"`',
    tuple[EntryRule, ...]: f"up to {RULES_MAX} [rules](../how-to/rules.md)",
}
"""The values of settings that are lists of objects, in words."""


def values(kind: object, setting: Setting) -> str:
    """Return which values a setting takes, in words."""
    none = ", or none" if type(None) in get_args(kind) else ""
    match setting.bounds:
        case Range(minimum, maximum):
            return f"{minimum:g} to {maximum:g}"
        case Chars(chars_max, Form.LINE):
            return f"1 to {chars_max} characters{none}"
        case Chars(chars_max, form):
            return f"{form}, up to {chars_max} characters{none}"
        case Items(noun, form=Form.LINE, items_max=items_max):
            return f"up to {items_max} {noun}{none}"
        case Items(noun, form=form, items_max=items_max):
            return f"up to {items_max} {noun}, each {form}{none}"
        case Template(chars_max, names, is_line):
            lines = "one line" if is_line else "text"
            named = f"with {', '.join(names)} as placeholders"
            return f"{lines} {named}, up to {chars_max} characters{none}"
        case Words(allowed):
            return f"a list of {', '.join(written(word) for word in allowed)}, at least one"
    if kind in OBJECTS:
        return OBJECTS[kind]
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
