"""ruff, mypy, import-linter and deptry find nothing, as `make check` would say."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT

# A first run of mypy reads SQLAlchemy and pydantic on a machine that does other things too.
COLD_S = 300


def finds_nothing(*command: str) -> None:
    """Fail with all that the tool says, unless it is content."""
    done = start(*command)
    if done.returncode:
        pytest.fail(f"{done.stdout}{done.stderr}", pytrace=False)


def start(*command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """A finished tool of this environment."""
    return subprocess.run(
        [Path(sys.executable).parent / command[0], *command[1:]],
        check=False,
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        text=True,
    )


@pytest.mark.first
@pytest.mark.timeout(COLD_S)
def test_types_hold():
    finds_nothing("mypy")


@pytest.mark.first
def test_import_rules_hold():
    finds_nothing("lint-imports")


def test_ruff_finds_nothing():
    finds_nothing("ruff", "check", ".")


def test_everything_is_formatted():
    finds_nothing("ruff", "format", "--check", ".")


def test_dependencies_are_those_that_are_used():
    finds_nothing("deptry", ".")


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("PLC0415", "def f():\n    import os\n"),
        ("F403", "from os import *\n"),
        ("TID252", "from . import clock\n"),
        ("S101", "assert 1\n"),
        ("ANN401", "from typing import Any\ndef f(x: Any): ...\n"),
        ("D100", "x = 1\n"),
        ("C901", "def f(a):\n" + "    if a: ...\n" * 10),
        ("E501", "x = " + "1 + " * 25 + "1\n"),
    ],
)
def test_ruff_watches_over_the_rule(rule, text):
    name = ("--output-format=concise", "--stdin-filename", "service/x.py", "-")
    assert f" {rule} " in start("ruff", "check", *name, stdin=text).stdout
