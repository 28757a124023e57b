"""Every import rule bites: violations planted in a copy of the tree are all reported."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.tidy.tree import PRODUCT, ROOT

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
    "contracts"
]

# (contract, who imports, what). A module that is not there is made, with its packages: so the
# rules are shown to hold for packages of which there is no file yet.
PLANTED = [
    ("service stands in floors", "service.vocabulary", "service.operations.planted"),
    ("service stands in floors", "service.flaky.planted", "service.store.planted"),
    ("bot stands in floors", "bot.commands", "bot.github.planted"),
    ("bot stands in floors", "bot.portable", "bot.commands"),
    ("service never learns of a provider", "service.operations.planted", "bot.commands"),
    ("service never learns of a provider", "service.runtime", "jwt"),
    ("pure packages do no I/O and own no clock", "bot.commands", "logging"),
    ("pure packages do no I/O and own no clock", "service.errors", "sqlite3"),
    ("pure packages do no I/O and own no clock", "service.flaky.planted", "os"),
    ("pure packages do no I/O and own no clock", "service.mergequeue.planted", "time"),
    ("pure packages do no I/O and own no clock", "service.provider.planted", "socket"),
    ("pure packages do no I/O and own no clock", "service.repofile.planted", "random"),
    ("pure packages do no I/O and own no clock", "service.vocabulary", "secrets"),
    ("pure packages do no I/O and own no clock", "service.wording.planted", "asyncio"),
    ("simulation and metrics do no I/O", "service.metrics.planted", "os"),
    ("simulation and metrics do no I/O", "service.simulation.planted", "threading"),
    ("only the store speaks SQL", "bot.wiring", "sqlite3"),
    ("only the store speaks SQL", "service.operations.planted", "sqlalchemy"),
    ("only the store speaks SQL", "service.notifications.planted", "sqlmodel"),
    ("only bot.github holds gidgethub", "bot.wiring", "gidgethub"),
    ("keys are handled in three places", "bot.settings", "cryptography"),
    ("keys are handled in three places", "service.runtime", "jwt"),
    ("the sandbox is the outside world", "bot.sandbox.planted", "bot.commands"),
    ("the sandbox is the outside world", "bot.sandbox.planted", "gidgethub"),
    ("the sandbox is the outside world", "bot.sandbox.planted", "service.vocabulary"),
    ("production never imports the sandbox", "bot.github.planted", "bot.sandbox.planted"),
    ("production never imports the sandbox", "bot.wiring", "bot.demo"),
    ("the auditor shares nothing", "bot.auditor.planted", "service.vocabulary"),
    ("the adapter enters by the front doors", "bot.github.planted", "service.dashboard.planted"),
    ("the adapter enters by the front doors", "bot.github.planted", "service.mergequeue.planted"),
    ("the adapter enters by the front doors", "bot.github.planted", "service.store.planted"),
    ("faces and loops go through operations", "service.api.planted", "service.store.planted"),
    ("faces and loops go through operations", "service.dashboard.planted", "service.flaky.planted"),
    ("faces and loops go through operations", "service.workers.planted", "service.metrics.planted"),
    ("operations and store know no HTTP", "service.operations.planted", "aiohttp"),
    ("operations and store know no HTTP", "service.store.planted", "jinja2"),
    ("no package holds a circle", "service.wording.planted", "service.wording.planted_too"),
    ("no package holds a circle", "service.wording.planted_too", "service.wording.planted"),
]


@pytest.mark.first
def test_every_planted_import_is_reported_under_its_contract(tmp_path):
    copy_of_the_product(tmp_path)
    for _, importer, imported in PLANTED:
        if imported.partition(".")[0] in PRODUCT:
            plant(tmp_path, imported, "")
        plant(tmp_path, importer, f"import {imported}\n")
    plant(tmp_path, "service.stray", "")
    reports = sections(lint(tmp_path))

    circles = "no package holds a circle"
    unseen = [
        (contract, f"{importer} -> {imported}")
        for contract, importer, imported in PLANTED
        if contract != circles
        and f"{importer} -> {imported} " not in reports.get(contract, "").replace("\n", " ")
    ]
    assert not unseen
    assert re.search(r"\.planted(_too)? -> \.planted(_too)? ", reports[circles])
    assert "- service.stray" in reports["service stands in floors"]


def test_every_contract_has_a_planted_violation():
    assert {contract for contract, _, _ in PLANTED} == {each["name"] for each in CONTRACTS}


def test_what_only_one_package_may_import_is_left_to_it(tmp_path):
    copy_of_the_product(tmp_path)
    plant(tmp_path, "service.store.planted", "import sqlite3, sqlalchemy, psycopg\n")
    plant(tmp_path, "bot.github.planted", "import gidgethub, jwt\n")
    plant(tmp_path, "bot.keys", "import cryptography\n")
    assert re.search(r"\b\d+ kept, 0 broken", lint(tmp_path))


def copy_of_the_product(root: Path) -> None:
    """bot, service and the contracts, where files can be planted."""
    shutil.copy(ROOT / "pyproject.toml", root)
    for package in PRODUCT:
        shutil.copytree(
            ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__")
        )


def plant(root: Path, module: str, line: str) -> None:
    """Put a line at the end of a module; what is missing of its packages is made."""
    *packages, name = module.split(".")
    folder = root
    for package in packages:
        folder /= package
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
    with (folder / f"{name}.py").open("a") as file:
        file.write(f"\n{line}")


def lint(root: Path) -> str:
    """What import-linter says about the tree at `root`."""
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        check=False,
        cwd=root,
        env={**os.environ, "COLUMNS": "400", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    ).stdout


def sections(report: str) -> dict[str, str]:
    """Contract to what is said about it, for those that are broken."""
    _, _, broken = report.partition("Broken contracts")
    parts = re.split(r"^(.+)\n-{3,}$", broken, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))
