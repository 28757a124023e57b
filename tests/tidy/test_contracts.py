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

INSIDE = "each capability has the same layers inside"
ENGINE = "the engine stands in floors"
POLICY = "the core asks a policy by its questions"
CORE = "service.mergequeue.engine"
PURE = "pure packages do no I/O and own no clock"
RECORDS = "records of reasons import the vocabulary alone"
DOORS = "the adapter enters by the front doors"
FACES = "faces and loops go through operations"
CIRCLE = "no package holds a circle"

# (contract, who imports, what). A module that is not there is made, with its packages: so the
# rules are shown to hold for packages of which there is no file yet.
PLANTED = [
    ("capabilities stand in layers", "service.vocabulary", "service.process.planted"),
    ("capabilities stand in layers", "service.database.planted", "service.accounts.planted"),
    ("capabilities stand in layers", "service.mergequeue.planted", "service.testhealth.planted"),
    ("capabilities stand in layers", "service.testhealth.planted", "service.mergequeue.planted"),
    ("capabilities stand in layers", "service.accounts.planted", "service.notifications.planted"),
    (INSIDE, "service.mergequeue.engine.planted", "service.mergequeue.wording.planted"),
    (INSIDE, "service.mergequeue.reasons.planted", "service.mergequeue.engine.planted"),
    (INSIDE, "service.mergequeue.store.planted", "service.mergequeue.operations.planted"),
    (INSIDE, "service.testhealth.operations.planted", "service.testhealth.api.planted"),
    (INSIDE, "service.testhealth.reports.planted", "service.testhealth.detector.planted"),
    (INSIDE, "service.process.store.planted", "service.process.workers.planted"),
    (ENGINE, f"{CORE}.policy.planted", f"{CORE}.planning.planted"),
    (ENGINE, f"{CORE}.state.planted", f"{CORE}.policy.planted"),
    (POLICY, f"{CORE}.planning.planted", f"{CORE}.policy.planted"),
    (POLICY, f"{CORE}.culprits.planted", f"{CORE}.policy.screening"),
    ("bot stands in floors", "bot.commands", "bot.github.planted"),
    ("bot stands in floors", "bot.uploader", "bot.commands"),
    ("service never learns of a provider", "service.mergequeue.planted", "bot.commands"),
    ("service never learns of a provider", "service.runtime", "jwt"),
    (PURE, "bot.commands", "logging"),
    (PURE, "service.errors", "sqlite3"),
    (PURE, "service.mergequeue.engine.planted", "time"),
    (PURE, "service.mergequeue.reasons.planted", "time"),
    (PURE, "service.mergequeue.wording.planted", "asyncio"),
    (PURE, "service.provider.planted", "socket"),
    (PURE, "service.repofile.planted", "random"),
    (PURE, "service.testhealth.detector.planted", "os"),
    (PURE, "service.testhealth.reports.planted", "subprocess"),
    (PURE, "service.text.planted", "threading"),
    (PURE, "service.vocabulary", "secrets"),
    (RECORDS, "service.mergequeue.reasons.planted", "service.text.planted"),
    ("simulation and metrics do no I/O", "service.metrics.planted", "os"),
    ("simulation and metrics do no I/O", "service.mergequeue.simulation.planted", "threading"),
    ("only stores speak SQL", "bot.wiring", "sqlite3"),
    ("only stores speak SQL", "service.mergequeue.operations.planted", "sqlalchemy"),
    ("only stores speak SQL", "service.evidence.planted", "psycopg"),
    ("only stores speak SQL", "service.notifications.planted", "sqlmodel"),
    ("only bot.github holds gidgethub", "bot.wiring", "gidgethub"),
    ("only the command for agents holds the MCP SDK", "bot.wiring", "mcp"),
    ("keys are handled in five places", "bot.settings", "cryptography"),
    ("keys are handled in five places", "service.runtime", "jwt"),
    ("the sandbox is the outside world", "bot.sandbox.planted", "bot.commands"),
    ("the sandbox is the outside world", "bot.sandbox.planted", "gidgethub"),
    ("the sandbox is the outside world", "bot.sandbox.planted", "service.vocabulary"),
    ("production never imports the sandbox", "bot.github.planted", "bot.sandbox.planted"),
    ("production never imports the sandbox", "bot.wiring", "bot.demo"),
    ("the auditor shares nothing", "bot.auditor.planted", "service.vocabulary"),
    (DOORS, "bot.github.planted", "service.dashboard.planted"),
    (DOORS, "bot.github.planted", "service.mergequeue.engine.planted"),
    (DOORS, "bot.github.planted", "service.database.planted"),
    (FACES, "service.mergequeue.api.planted", "service.mergequeue.store.planted"),
    (FACES, "service.dashboard.planted", "service.testhealth.detector.planted"),
    (FACES, "service.process.workers.planted", "service.metrics.planted"),
    ("operations and stores know no HTTP", "service.mergequeue.operations.planted", "aiohttp"),
    ("operations and stores know no HTTP", "service.testhealth.store.planted", "jinja2"),
    (CIRCLE, "service.mergequeue.wording.planted", "service.mergequeue.wording.planted_too"),
    (CIRCLE, "service.mergequeue.wording.planted_too", "service.mergequeue.wording.planted"),
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

    unseen = [
        (contract, f"{importer} -> {imported}")
        for contract, importer, imported in PLANTED
        if contract != CIRCLE
        and f"{importer} -> {imported} " not in reports.get(contract, "").replace("\n", " ")
    ]
    assert not unseen
    assert re.search(r"\.planted(_too)? -> \.planted(_too)? ", reports[CIRCLE])
    assert "- service.stray" in reports["capabilities stand in layers"]


def test_every_contract_has_a_planted_violation():
    assert {contract for contract, _, _ in PLANTED} == {each["name"] for each in CONTRACTS}


def test_what_only_one_package_may_import_is_left_to_it(tmp_path):
    copy_of_the_product(tmp_path)
    plant(tmp_path, "service.mergequeue.store.planted", "import sqlite3, sqlalchemy, psycopg\n")
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
