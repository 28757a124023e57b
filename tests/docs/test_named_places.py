"""Every file and function that a document names exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
PLACE = re.compile(r"`((?:bot|service|tests)/[\w/]+\.py)(?::(\w+))?`")


def defined_in(path: Path) -> set[str]:
    """Functions and classes that a file defines, methods included."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)}


def missing_from(text: str) -> list[str]:
    """Places that the text names and that do not exist."""
    missing = []
    for name, function in PLACE.findall(text):
        path = ROOT / name
        if not path.is_file() or (function and function not in defined_in(path)):
            missing.append(f"{name}:{function}" if function else name)
    return missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_place_a_document_names_exists(document: Path) -> None:
    assert missing_from(document.read_text()) == []


def test_a_place_that_does_not_exist_is_found() -> None:
    wrong = "`service/runtime.py:nowhere` and `service/gone.py`, but `service/runtime.py` is there"
    assert missing_from(wrong) == ["service/runtime.py:nowhere", "service/gone.py"]
