"""Setting up: a machine that lacks Python, its venv module or a new one hears it in a line."""

import shutil
import subprocess

import pytest

from tests.tidy.tree import ROOT


def setting_up(folder, python):
    (folder / "requirements").mkdir()
    for file in ("Makefile", "pyproject.toml", "requirements/dev.txt"):
        shutil.copy(ROOT / file, folder / file)
    return subprocess.run(
        ["make", "-s", ".venv/.stamp", f"PYTHON={python}"],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
    )


# A Python that fails when asked for the words given.
PYTHON = """#!/bin/sh
case "$*" in *{lacks}*) exit 1 ;; esac
"""


@pytest.mark.parametrize(
    ("lacks", "line"),
    [
        ("version_info", "install Python 3.11 or newer"),
        ("venv", "has no venv module: install it (Debian, Ubuntu: apt-get install python3-venv)"),
    ],
)
def test_an_unfit_python_is_named_with_the_remedy(tmp_path, lacks, line):
    python = tmp_path / "python"
    python.write_text(PYTHON.format(lacks=lacks))
    python.chmod(0o755)
    result = setting_up(tmp_path, python)
    assert result.returncode != 0
    (said,) = result.stdout.splitlines()
    assert line in said
    assert not (tmp_path / ".venv").exists()


def test_a_missing_python_is_named_with_the_remedy(tmp_path):
    result = setting_up(tmp_path, "python-of-nowhere")
    (said,) = result.stdout.splitlines()
    assert said.startswith("python-of-nowhere is not on PATH: install Python 3.11 or newer")
