"""The page of a queue's settings names every setting, its default and its range."""

import re
from dataclasses import fields
from pathlib import Path

from pydantic.alias_generators import to_camel

from service.mergequeue.engine.config import RANGES, QueueConfig

PAGE = (Path(__file__).parents[2] / "docs/reference/queue-settings.md").read_text("utf-8")
ROWS = {
    name: [cell.strip() for cell in line.split("|")[2:6]]
    for line in PAGE.splitlines()
    if line.startswith("| `")
    for name in re.findall(r"`(\w+)`", line.split("|")[1])
}


def test_every_setting_has_a_row_and_every_row_a_setting():
    assert ROWS.keys() == {to_camel(field.name) for field in fields(QueueConfig)}


def test_ranges_are_those_that_are_enforced():
    for name, (least, most) in RANGES.items():
        assert f"{least:g} to {most:g}" in ROWS[to_camel(name)][0], name


def test_defaults_are_those_of_the_settings():
    for field in fields(QueueConfig):
        default = getattr(QueueConfig(), field.name)
        shown = ROWS[to_camel(field.name)][1]
        if isinstance(default, bool):
            assert str(default).lower() in shown, field.name
        elif isinstance(default, int | float) and field.name != "bisection_concurrency":
            assert f"{default:g}" in shown, field.name


def test_every_setting_says_when_to_change_it():
    said = {name for name, cells in ROWS.items() if len(cells) == 4 and cells[3]}
    assert ROWS.keys() - said == {"stateLabelsEnabled", "extensionEnabled"}
