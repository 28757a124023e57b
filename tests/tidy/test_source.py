"""Every house rule holds in every file, and each rule sees what breaks it."""

import ast
import re
import sys

import pytest

from bot import program
from tests.tidy import rules, tree
from tests.tidy.tree import Source

FOLDERS = ("bot", "service", "tests", ".ci")


def test_every_file_keeps_every_rule():
    """All rules in one test: a file is parsed once, which takes longer than its rules."""
    found = [
        f"{rule.__doc__}\n    {finding}"
        for source in tree.sources(*FOLDERS)
        for rule in rules.RULES
        for finding in rule(source)
    ]
    assert not found, "\n".join(found)


LONG = "\n".join(["def f():", *["    x = 1"] * 60])

PLANTED = [
    (rules.file_sizes, "service/x.py", "x = 1\n" * 601),
    (rules.file_sizes, "tests/test_x.py", "x = 1\n" * 701),
    (rules.function_sizes, "service/x.py", LONG),
    (rules.parameters, "service/x.py", "def f(a, b, c, *, d, e, f): ..."),
    (rules.parameters, "bot/cli/x.py", "def f(a, b, c, *, d, e, f): ..."),
    (rules.package_docstrings, "service/x/__init__.py", '"""Why."""\nfrom service import clock'),
    (rules.package_docstrings, "service/x/__init__.py", "x = 1"),
    (rules.package_docstrings, "service/x/__init__.py", '"""' + "word\n" * 60 + '"""'),
    (rules.headless_docstrings, "service/x.py", '"""What is left."""'),
    (rules.headless_docstrings, "bot/x.py", 'class C:\n    """Who may act."""'),
    (rules.headless_docstrings, "bot/x.py", 'def f():\n    """Whether it is so."""'),
    (rules.headless_docstrings, "bot/x.py", 'async def f():\n    """How it ends."""'),
    (rules.headless_docstrings, "service/http/models/x.py", 'def f():\n    """What is left."""'),
    (rules.type_checking, "service/x.py", "from typing import TYPE_CHECKING"),
    (rules.type_checking, "service/x.py", "import typing\nif typing.TYPE_CHECKING: ..."),
    (rules.imports, "service/x.py", "from os import *"),
    (rules.imports, "service/x.py", "async def f():\n    if 1:\n        import os"),
    (rules.clocks, "service/x.py", "import datetime\nx = datetime.datetime.now(datetime.UTC)"),
    (rules.clocks, "service/x.py", "from datetime import datetime\nf = datetime.utcnow"),
    (rules.clocks, "bot/x.py", "import time\nx = time.time()"),
    (rules.clocks, "bot/x.py", "from time import monotonic"),
    (rules.clocks, "service/x.py", "import uuid\nx = uuid.uuid4()"),
    (rules.clocks, "service/x.py", "from uuid import uuid4"),
    (rules.clocks, "service/x.py", "import random\nx = random.random()"),
    (rules.clocks, "service/x.py", "from random import choice"),
    (rules.clocks, "service/x.py", "import asyncio\nasync def f(): await asyncio.sleep(1)"),
    (rules.tables, "service/mergequeue/store/x.py", "class Row(SQLModel, table=True): ..."),
    (rules.page_tokens, "service/x.py", "from service.database.page_tokens import PageStart"),
    (rules.page_tokens, "service/x.py", "page_tokens.page_start_of(keys, listing, given, now)"),
    (rules.anything, "service/x.py", "from typing import Any"),
    (rules.anything, "service/x.py", "import typing\nx: typing.Any = 1"),
    (rules.broad_excepts, "service/x.py", "try: ...\nexcept Exception: ..."),
    (rules.broad_excepts, "service/x.py", "try: ...\nexcept (KeyError, BaseException): ..."),
    (rules.broad_excepts, "bot/x.py", "try: ...\nexcept: ..."),
    (rules.definitions, "service/x.py", "class QueueManager: ..."),
    (rules.definitions, "service/utils.py", ""),
    (rules.definitions, "service/x.py", "def handle(): ..."),
    (rules.sleeping, "tests/test_x.py", "import asyncio\nasync def f(): await asyncio.sleep(0.1)"),
    (rules.mocks, "tests/test_x.py", "from unittest.mock import Mock"),
    (rules.mocks, "tests/test_x.py", "import unittest.mock"),
    (rules.adversary_docstrings, "tests/adversary/test_x.py", "def test_a(): ..."),
    (rules.adversary_docstrings, "tests/adversary/test_x.py", 'def test_a():\n    """Hurts."""'),
]


@pytest.mark.parametrize(("rule", "path", "text"), PLANTED)
def test_a_planted_violation_is_found(rule, path, text):
    assert list(rule(Source(path, text)))


ALLOWED = [
    (rules.file_sizes, f"{rules.MIGRATIONS}/0001_x.py", "x = 1\n" * 1200),
    (rules.parameters, "service/x.py", "class C:\n    def f(self, a, b, c, *, d, e): ..."),
    (rules.parameters, "bot/cli/x.py", "@app.command()\ndef f(a, b, c, d, e, f): ..."),
    (rules.headless_docstrings, "service/x.py", 'def f():\n    """Return what is left."""'),
    (rules.headless_docstrings, "service/http/models/x.py", 'class C:\n    """Who did it."""'),
    (rules.headless_docstrings, "tests/x.py", '"""What is left."""'),
    (rules.clocks, "service/clock.py", "import time\nx = time.time()"),
    (rules.clocks, "service/simulation/x.py", "import random\nx = random.Random(1)"),
    (rules.clocks, "service/x.py", "from datetime import datetime\nx = datetime.fromtimestamp(0)"),
    (rules.tables, "service/mergequeue/store/tables_x.py", "class Row(SQLModel, table=True): ..."),
    (rules.page_tokens, "service/x.py", "from service.database.page_tokens import Listing"),
    (rules.anything, "service/database/codec.py", "from typing import Any"),
    (rules.broad_excepts, "service/process/guard.py", "try: ...\nexcept Exception: ..."),
    (rules.sleeping, "tests/test_x.py", "import asyncio\nasync def f(): await asyncio.sleep(0)"),
]


@pytest.mark.parametrize(("rule", "path", "text"), ALLOWED)
def test_what_a_rule_allows_is_not_found(rule, path, text):
    assert not list(rule(Source(path, text)))


def test_every_rule_has_a_planted_violation():
    assert {rule for rule, _, _ in PLANTED} == set(rules.RULES)


def foreign(text: str) -> set[str]:
    """Top-level modules that the text imports and the standard library lacks."""
    named = [
        node.module or "." if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
    return {name.partition(".")[0] for name in named} - sys.stdlib_module_names


# Files that people or tools run without an installation; a package of them imports itself.
UPLOADER = "bot/uploader"
ALONE = (
    ".ci/assets.py",
    *(each.relative_to(tree.ROOT).as_posix() for each in (tree.ROOT / UPLOADER).glob("*.py")),
)


@pytest.mark.parametrize("path", ALONE)
def test_what_runs_without_installation_imports_the_standard_library_alone(path):
    text = (tree.ROOT / path).read_text("utf-8")
    if path.startswith(UPLOADER):
        text = re.sub(r"^from bot\.uploader(\.\w+)? import .*$", "", text, flags=re.MULTILINE)
        ast.parse(text, feature_version=(3, 9))
    assert not foreign(text)


PYTEST_PLUGIN = tree.ROOT / "plugins/pytest/headgate_pytest.py"


def test_the_plug_in_of_pytest_imports_pytest_alone_and_has_the_version_of_the_product():
    text = PYTEST_PLUGIN.read_text("utf-8")
    ast.parse(text, feature_version=(3, 9))
    assert foreign(text) == {"pytest"}
    assert f'VERSION = "{program.VERSION}"' in text
    license_of_plugin = PYTEST_PLUGIN.with_name("LICENSE").read_bytes()
    assert license_of_plugin == (tree.ROOT / "LICENSE").read_bytes()


def test_a_foreign_import_is_found():
    assert foreign("import os\nimport aiohttp.web\nfrom service import clock") == {
        "aiohttp",
        "service",
    }
