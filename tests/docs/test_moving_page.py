"""The guide for teams of other queues, held against the tables of the import."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_snake
from typer.main import get_command

from bot import foreign_commands
from bot.cli import app
from bot.cli.moving import mergify, tables
from service.mergequeue.engine.config import SETTINGS
from tests.moving import examples

PAGE = (Path(__file__).parents[2] / "docs/how-to/move-from-another-queue.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n)*)", PAGE, re.MULTILINE))
OF = {
    "From GitHub's merge queue": ("github", tables.GITHUB),
    "From Mergify": ("mergify", mergify.MERGIFY),
    "From bors": ("bors", tables.BORS),
    "From Trunk": ("trunk", tables.TRUNK),
    "From Kodiak": ("kodiak", tables.KODIAK),
    "From Graphite": ("graphite", None),
}
VARIANTS = {"rust_bors"}
"""Examples of a queue that has another one too."""


def test_each_queue_has_a_section_and_each_section_an_example():
    assert OF.keys() <= SECTIONS.keys()
    assert {name for name, _ in OF.values()} | VARIANTS == set(examples.NAMES)


@pytest.mark.parametrize("section", OF)
def test_a_key_that_a_table_names_is_one_of_that_queue(section):
    source = OF[section][1]
    keys = [row.key for row in source.rows] if source else []
    keys += ["merge." + key for key in keys] + list(mergify.ACTIONS)
    for cell in re.findall(r"^\| (.*?) \|", SECTIONS[section], re.MULTILINE):
        for key in re.findall(r"`([a-z]+(?:_[a-z]+)+)\b[^`]*`", cell):
            assert any(one.endswith(key) for one in keys), key


def test_a_setting_that_the_page_names_exists():
    named = set(re.findall(r"`([a-z]+[A-Z]\w*)(?:: \w+)?`", PAGE)) - {"startsWith"}
    assert {to_snake(name) for name in named} - set(SETTINGS) == set()


def test_the_commands_of_the_page_exist():
    tree: Any = get_command(app.app)
    for line in re.findall(r"headgate ((?:import|doctor)[^`\n#]*)", PAGE):
        name, *words = shlex.split(line)
        options = {
            each for one in tree.commands[name].params for each in (*one.opts, *one.secondary_opts)
        }
        assert {word for word in words if word.startswith("--")} <= options, line


@pytest.mark.parametrize(
    "command", re.findall(r"`([^`]+)`", SECTIONS["People who still write the old commands"])
)
def test_the_old_commands_of_the_page_are_known(command):
    ours = command.startswith(("/merge", "foreignCommandsEnabled"))
    assert ours or foreign_commands.read(command) is not None
