"""What agents read: the skill page names real commands, the indexes lead somewhere."""

import re
import shlex

import pytest
import yaml
from typer.main import get_command

from bot.cli import app
from bot.cli.agents.server import Service, make_server
from bot.cli.exits import STEP_EXITS
from service.http import well_known
from service.process.api import routes
from tests.tidy.tree import ROOT

SKILL = (ROOT / "docs/skill/SKILL.md").read_text("utf-8")
GUIDE = (ROOT / "docs/how-to/agents.md").read_text("utf-8")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def named_commands(text):
    """Every command line of Headgate in code, without its comment."""
    code = re.findall(r"```sh\n(.*?)```|`(headgate [^`\n]+)`", text, re.DOTALL)
    lines = "\n".join(block or line for block, line in code).splitlines()
    found = [line.partition(" #")[0].strip() for line in lines if line.startswith("headgate ")]
    return [each for each in found if "COMMAND" not in each]


def faults(line):
    """Why the command line would be misused: an unknown command or option."""
    _, *words = shlex.split(line)
    command = get_command(app.app)
    while words and hasattr(command, "commands"):
        name = words.pop(0)
        if name == "--help":
            return []
        if name not in command.commands:
            return [f"no command {name}"]
        command = command.commands[name]
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    return [word for word in words if word.startswith("-") and word not in {*known, "--help"}]


@pytest.mark.parametrize("line", sorted({*named_commands(SKILL), *named_commands(GUIDE)}))
def test_a_command_of_the_pages_for_agents_exists(line):
    assert not faults(line)


def test_a_command_that_does_not_exist_would_be_seen():
    assert faults("headgate lands 17") == ["no command lands"]
    assert faults("headgate land 17 --wiat") == ["--wiat"]
    assert named_commands("`headgate land 17` and\n```sh\nheadgate explain 3   # why\n```") == [
        *("headgate land 17", "headgate explain 3")
    ]


def test_the_skill_has_a_name_and_a_description():
    _, matter, _ = SKILL.split("---\n", 2)
    front = yaml.safe_load(matter)
    assert front["name"] == "headgate"
    assert 50 < len(front["description"]) <= 1024


async def test_both_pages_name_every_tool():
    tools = await make_server(Service("http://127.0.0.1:1", "hgt_x", None)).list_tools()
    names = [each.name for each in tools]
    assert re.findall(r"^\| `([a-z_]+)` \|", GUIDE, re.MULTILINE) == names
    assert [name for name in names if f"`{name}`" not in SKILL] == []
    assert [each.name for each in tools if not each.description or not each.output_schema] == []


@pytest.mark.parametrize("page", ["docs/how-to/agents.md", "docs/reference/next-steps.md"])
def test_every_kind_of_step_has_its_row_with_its_exit_code(page):
    rows = re.findall(r"^\| `([A-Z]+)` \| (\d+) \|", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    assert {kind: int(code) for kind, code in rows} == {**STEP_EXITS}


def test_the_skill_says_what_to_do_for_every_kind_of_step():
    rows = re.findall(r"^\| `([A-Z]+)` \| (\d+) \|", SKILL, re.MULTILINE)
    assert {kind: int(code) for kind, code in rows} == {**STEP_EXITS}


def test_every_link_of_the_index_in_the_repository_opens():
    text = (ROOT / "docs/llms.txt").read_text("utf-8")
    links = LINK.findall(text)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / "docs" / link).is_file()] == []


def test_every_link_of_the_index_of_an_instance_is_a_route():
    links = LINK.findall(well_known.INDEX)
    assert {"/docs/skill", "/openapi.json"} <= set(links)
    assert {*links} <= {route.path for route in routes.ROUTES}
