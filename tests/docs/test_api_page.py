"""docs/reference/api.md says of every endpoint what the service checks by."""

import difflib
from pathlib import Path

import pytest

from service.http import codes, reference
from service.http.route import Document, Posted
from service.process.api import routes

PAGE = Path(__file__).parents[2] / "docs/reference/api.md"

INTRODUCTION = """\
# Every endpoint

Written by `make docs` from the models that check each request; `/openapi.json` has the same for
programs. [http.md](http.md) has the rules that no field shows. The page `/docs/errors/{code}` of
the service says what to do about an error code.

A field is required unless it says otherwise. Enums are read in any letter case.
"""


def page() -> str:
    """The whole page."""
    lines = (INTRODUCTION, *reference.lines_of(routes.CONTRACT))
    return "\n".join(lines).rstrip("\n") + "\n"


def test_the_page_is_current(pytestconfig: pytest.Config):
    fresh = page()
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(fresh, "utf-8")
    if (old := PAGE.read_text("utf-8")) != fresh:
        changes = difflib.unified_diff(old.splitlines(), fresh.splitlines(), lineterm="", n=1)
        told = "\n".join(changes)
        pytest.fail(f"pytest {__file__} --update-golden writes it anew\n{told}", pytrace=False)


def test_every_endpoint_has_its_part_with_its_role_and_fields():
    parts = dict(part.partition("\n")[::2] for part in page().split("\n### "))
    for route in routes.ROUTES:
        if isinstance(route, Document) and not route.is_listed:
            continue
        part = parts[f"`{route.method} {route.path}`"]
        assert all(f"`{code}`" in part for code in getattr(route, "codes", ()))
        if isinstance(route, Posted):
            assert f"The role `{route.role.value}`" in part
            names = [field.alias or name for name, field in route.model.model_fields.items()]
            assert all(f"| `{name}` |" in part for name in names)


def test_what_all_may_answer_is_said_once():
    head = page().partition("\n## ")[0]
    assert all(f"`{code}`" in head for code in (*codes.POSTS, *codes.WRITES))
