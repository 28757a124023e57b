"""What lies where in the checkout, and what no file of it may say."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.tidy import tree
from tests.tidy.tree import ROOT

TOP_LEVEL = {
    *("pyproject.toml", "README.md", "app.yml", "bot", "service", "tests"),
    *(
        "Makefile",
        "LICENSE",
        "SECURITY.md",
        "requirements",
        "Dockerfile",
        "deploy",
        "docs",
        "action",
        "plugins",
    ),
}

# Alembic finds these by path, so they are no package.
NO_PACKAGES = ("service/database/migrations", "service/database/migrations/versions")

# Put together here, so that this file may be read like any other.
UNFINISHED = re.compile(r"\b(" + "TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
HOMES = ("work", "root", "home", "Users")
REGISTRIES = ("pypi" + ".org", "python" + "hosted.org", "registry.npm" + "js.org")
HERE_ONLY = re.compile(
    rf"(?<![\w.:}}])/({'|'.join(HOMES)})/|{'|'.join(re.escape(host) for host in REGISTRIES)}"
)


def strangers(names: list[str], ignored: list[str]) -> list[str]:
    """Names at the top that are neither on the list, nor dotfiles, nor ignored by git."""
    return [
        name
        for name in names
        if name not in TOP_LEVEL
        and not name.startswith(".")
        and not tree.is_ignored(ROOT / name, ignored)
    ]


def test_the_top_level_holds_only_what_the_architecture_lists():
    assert not strangers(os.listdir(ROOT), tree.ignore_patterns())
    assert strangers(["bot", "notes.txt", ".env", "bench.json"], ["bench.json"]) == ["notes.txt"]


def folders_without_package(root: Path) -> list[str]:
    """Folders under bot, service and tests that hold Python files but no `__init__.py`."""
    holding = {
        path.parent for top in (*tree.PRODUCT, "tests") for path in (root / top).rglob("*.py")
    }
    found = [
        each.relative_to(root).as_posix() for each in holding if not (each / "__init__.py").exists()
    ]
    return sorted(set(found) - set(NO_PACKAGES))


def test_every_folder_with_python_files_is_a_package(tmp_path):
    assert not folders_without_package(ROOT)
    (tmp_path / "bot/stray").mkdir(parents=True)
    (tmp_path / "bot/stray/x.py").touch()
    assert folders_without_package(tmp_path) == ["bot/stray"]


def lines_that_say(pattern: re.Pattern[str], files: Iterator[tuple[str, str]]) -> list[str]:
    """`path:line: text` of every line in which the pattern occurs."""
    return [
        f"{path}:{number}: {line.strip()}"
        for path, text in files
        if pattern.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_nothing_is_left_for_later():
    assert not lines_that_say(UNFINISHED, tree.texts())
    planted = iter([("x.py", "x = 1\n# TO" + "DO: y")])
    assert lines_that_say(UNFINISHED, planted) == ["x.py:2: # TO" + "DO: y"]


def test_no_file_names_a_machine_or_a_registry():
    assert not lines_that_say(HERE_ONLY, tree.texts())


@pytest.mark.parametrize(
    "line", ["cd /ro" + "ot/x", "'/wo" + "rk/main'", "https://py" + "pi.org/x"]
)
def test_a_planted_machine_or_registry_is_found(line):
    assert lines_that_say(HERE_ONLY, iter([("x", line)]))


@pytest.mark.parametrize("line", ["/api/v3/root", "https://host/home/", "./work/x", "{url}/root/"])
def test_a_path_of_an_address_names_no_machine(line):
    assert not lines_that_say(HERE_ONLY, iter([("x", line)]))


def test_every_target_of_the_makefile_is_described_and_phony():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.findall(r"^([a-z]+):", makefile, re.MULTILINE)
    described = re.findall(r"^([a-z]+):.*## \S", makefile, re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    assert targets == described == phony[1].split()


def test_the_app_asks_for_no_more_than_the_design_allows():
    app = yaml.safe_load((ROOT / "app.yml").read_text("utf-8"))
    writes = {name for name, level in app["default_permissions"].items() if level != "read"}
    assert writes == {"contents", "pull_requests", "checks"}


def test_the_run_that_decides_is_an_executable_shell_script():
    run = ROOT / ".ci/run"
    assert os.access(run, os.X_OK)
    subprocess.run(["sh", "-n", str(run)], check=True)
