"""Every parser of foreign bytes is in the inventory of docs/design/security.md 8."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.tidy import tree

PAGE = tree.ROOT / "docs/design/security.md"
MODULE = re.compile(r"`((?:bot|service)/[\w/]+\.py)`")
# What reads bytes or text of a language; a library of which every call counts ends with a dot.
PARSERS = (
    "ast.literal_eval",
    "csv.reader",
    "email.",
    "fnmatch.",
    "gidgethub.sansio.decipher_response",
    "gzip.decompress",
    "gzip.open",
    "html.parser.",
    "json.load",
    "json.loads",
    "jwt.PyJWKSet.from_json",
    "jwt.decode",
    "jwt.get_unverified_header",
    "orjson.loads",
    "pickle.load",
    "pickle.loads",
    "tarfile.",
    "tomllib.",
    "xml.",
    "yaml.",
    "zipfile.ZipFile",
    "zlib.decompress",
    "zlib.decompressobj",
)
WRITERS = frozenset({"email.utils.format_datetime", "yaml.safe_dump"})
# The stand-in for GitHub and the demo take no part in a service.
ELSEWHERE = ("bot/demo", "bot/sandbox", "bot/auditor")


def inventory() -> str:
    """The section that lists the parsers."""
    return PAGE.read_text("utf-8").partition("## 8. ")[2].partition("\n## ")[0]


def names_in(module: ast.Module) -> dict[str, str]:
    """Names that a module imports → what they stand for."""
    names = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for each in node.names:
                whole = each.name if each.asname else each.name.partition(".")[0]
                names[each.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                names[each.asname or each.name] = f"{node.module}.{each.name}"
    return names


def dotted(function: ast.expr, names: dict[str, str]) -> str:
    """The whole name of what is called; empty for what is not imported."""
    if isinstance(function, ast.Attribute):
        owner = dotted(function.value, names)
        return f"{owner}.{function.attr}" if owner else ""
    return names.get(function.id, "") if isinstance(function, ast.Name) else ""


def is_parser(called: str) -> bool:
    """Whether a call of this name reads what may be a stranger's."""
    return called not in WRITERS and any(
        called.startswith(each) if each.endswith(".") else called == each for each in PARSERS
    )


def calls_of(text: str) -> Iterator[str]:
    """Parsers that a source calls, and expressions that it makes while it runs."""
    module = ast.parse(text)
    names = names_in(module)
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and is_parser(called := dotted(node.func, names)):
            yield called
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for function in (node for node in ast.walk(module) if isinstance(node, functions)):
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and node.args:
                called = dotted(node.func, names)
                is_made = not isinstance(node.args[0], ast.Constant)
                if called.startswith("re.") and called != "re.escape" and is_made:
                    yield called


def product() -> dict[str, str]:
    """Sources of the service and its adapter, by path."""
    return {
        path: text
        for path, text in tree.texts()
        if path.endswith(".py")
        and tree.is_in(path, "bot", "service")
        and not tree.is_in(path, *ELSEWHERE)
    }


def test_every_module_that_parses_is_in_the_inventory():
    named = set(MODULE.findall(inventory()))
    found = {path: sorted(set(calls_of(text))) for path, text in product().items()}
    assert {path: calls for path, calls in found.items() if calls and path not in named} == {}


def test_the_inventory_names_no_module_that_does_not_exist():
    named = set(MODULE.findall(inventory()))
    assert len(named) > 30
    assert named - set(product()) == set()


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("import yaml\nyaml.safe_load(b)\n", ["yaml.safe_load"]),
        ("from yaml import load as read\nread(b)\n", ["yaml.load"]),
        (
            "from xml.parsers import expat\nexpat.ParserCreate()\n",
            ["xml.parsers.expat.ParserCreate"],
        ),
        ("import xml.etree.ElementTree as e\ne.parse(b)\n", ["xml.etree.ElementTree.parse"]),
        ("import json\njson.loads(b)\njson.dumps(b)\n", ["json.loads"]),
        ("import re\ndef f(p):\n    return re.compile(p)\n", ["re.compile"]),
        ("import re\nWORD = re.compile('a')\ndef f(p):\n    return re.match('a', p)\n", []),
        ("from fnmatch import fnmatchcase\nfnmatchcase(a, b)\n", ["fnmatch.fnmatchcase"]),
    ],
)
def test_calls_of_parsers_are_found(text, calls):
    assert list(calls_of(text)) == calls
