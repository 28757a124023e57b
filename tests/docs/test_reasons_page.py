"""docs/reference/reasons.md and the enums of codes are written from the records."""

from pathlib import Path

import pytest

from service.mergequeue.engine.reasons import Cause, HoldReason, Reason
from service.mergequeue.reasons import records
from tests.docs.reasons_page import codes, page

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/reasons.md"
CODES = ROOT / "service/mergequeue/engine/reasons.py"
LISTS = {
    Reason: records.REASONS,
    Cause: records.CAUSES,
    HoldReason: records.HOLDS,
}


def test_the_page_is_current(pytestconfig: pytest.Config):
    fresh = page()
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(fresh, "utf-8")
    assert PAGE.read_text("utf-8") == fresh, "`make docs` writes it anew"


def test_the_codes_are_those_of_the_records(pytestconfig: pytest.Config):
    fresh = CODES.read_text("utf-8")
    for kind, listed in LISTS.items():
        fresh = codes(kind.__name__, listed, fresh)
    if pytestconfig.getoption("--update-golden"):
        CODES.write_text(fresh, "utf-8")
    assert CODES.read_text("utf-8") == fresh, "`make docs` writes them anew"


@pytest.mark.parametrize("kind", LISTS)
def test_a_new_record_gets_its_code_where_the_record_is(kind):
    text = CODES.read_text("utf-8")
    first, *rest = LISTS[kind]
    fresh = codes(kind.__name__, [first, "planted", *rest], text)
    added = f'    {first.upper()} = "{first}"\n    PLANTED = "planted"\n'
    assert added in fresh
    assert fresh.replace('    PLANTED = "planted"\n', "") == text
