"""The README says what is there: links, tasks, settings, version."""

import re
import tomllib
from pathlib import Path

from bot import program, settings
from tests.tidy import tree
from tests.tidy.tree import ROOT

README = (ROOT / "README.md").read_text("utf-8")
CHANGES = (ROOT / "docs/CHANGELOG.md").read_text("utf-8")

LINK = re.compile(r"\]\(([^)#\s]+)")


def broken_links(path: Path, text: str) -> list[str]:
    """Relative links of a Markdown file that lead nowhere."""
    targets = [link for link in LINK.findall(text) if not re.match(r"[a-z]+:", link)]
    return [target for target in targets if not (path.parent / target).exists()]


def test_relative_links_of_documents_lead_somewhere():
    documents = [(ROOT / path, text) for path, text in tree.texts() if path.endswith(".md")]
    assert not [(str(path), bad) for path, text in documents if (bad := broken_links(path, text))]
    assert broken_links(ROOT / "README.md", "[a](docs/none.md) [b](https://x) [c](LICENSE)") == [
        "docs/none.md"
    ]


def test_make_knows_every_target_that_the_readme_names():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)\b", code_of(README)))
    assert named
    assert named <= targets


def code_of(markdown: str) -> str:
    """What stands between backticks, in lines or in blocks."""
    return "\n".join(re.findall(r"```.*?```|`[^`\n]+`", markdown, re.DOTALL))


def test_the_readme_names_every_setting_and_no_other():
    named = set(re.findall(r"HEADGATE_([A-Z_]+)", README))
    as_files = {name for name in named if name.endswith("_FILE")}
    fields = {name.upper() for name in settings.Settings.model_fields}
    assert named - as_files - settings.KNOWN_ELSEWHERE == fields
    assert as_files <= {f"{name.upper()}_FILE" for name in settings.SECRETS}


def test_there_is_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert ("version" in project, project["dynamic"]) == (False, ["version"])
    newest = re.search(r"^## \[(.+)\]$", CHANGES, re.MULTILINE)
    assert newest is not None
    assert newest[1] == program.VERSION
    assert set(re.findall(r"headgate-([\d.]+)-py3", README)) == {program.VERSION}
