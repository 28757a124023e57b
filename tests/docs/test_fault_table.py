"""The fault table of docs/reference/reliability.md is written from the tests."""

import pytest

from tests.docs import fault_table
from tests.docs.fault_table import BEGIN, Row
from tests.tidy.tree import ROOT, Source

PAGE = ROOT / "docs/reference/reliability.md"


def test_the_table_is_current(pytestconfig: pytest.Config) -> None:
    page = PAGE.read_text("utf-8")
    assert page.count(BEGIN) == 1
    fresh = fault_table.with_table(page)
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(fresh, "utf-8")
    assert PAGE.read_text("utf-8") == fresh, "`make docs` writes it anew"


def test_each_fault_is_told_once_by_each_test() -> None:
    found = fault_table.rows()
    assert len(found) > 50
    assert len({(row.fault, row.test) for row in found}) == len(found)


def test_a_row_is_read_from_its_marker() -> None:
    text = '@pytest.mark.fault("a", holds="b", within="2 s")\nasync def test_it(): ...\n'
    (row,) = fault_table.rows_in(Source("tests/x/test_y.py", text))
    assert row == Row("a", "b", "2 s", "tests/x/test_y.py::test_it")


@pytest.mark.parametrize("given", ['"a"', '"a", holds="b"', '"a", holds="b", within=""'])
def test_a_row_with_an_empty_cell_is_refused(given: str) -> None:
    text = f"@pytest.mark.fault({given})\ndef test_it(): ...\n"
    with pytest.raises(ValueError, match="none of them empty"):
        list(fault_table.rows_in(Source("tests/x/test_y.py", text)))
