"""The fault table of docs/reference/reliability.md, read from the markers of tests.

    @pytest.mark.fault("the answer of a merge call is lost", holds="it lands once", within="20 min")

One row for each marker: what goes wrong, what holds, the test, and the bound that it asserts.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tests.tidy.tree import Source, sources

BEGIN = "<!-- the fault table: `make docs` writes it from the tests -->\n"
END = "<!-- the end of the fault table -->\n"
HEAD = "| Fault | What holds | Figure | Test |\n|---|---|---|---|\n"
PARTS = {"fault", "holds", "within"}


@dataclass(frozen=True, order=True)
class Row:
    """A fault, what holds in spite of it, the bound that the test asserts, and the test."""

    fault: str
    holds: str
    within: str
    test: str


def rows() -> list[Row]:
    """The rows of all tests, in the order of their files."""
    return [row for source in sources("tests") for row in rows_in(source)]


def rows_in(source: Source) -> Iterator[Row]:
    """The rows of one file. Raises ValueError for a marker that is not made of three texts."""
    if "mark.fault(" not in source.text:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fault":
                    yield _row(mark, f"{source.path}::{node.name}")


def _row(mark: ast.Call, test: str) -> Row:
    """The row of one marker."""
    given = {str(each.arg): ast.literal_eval(each.value) for each in mark.keywords}
    given |= zip(["fault"], map(ast.literal_eval, mark.args), strict=False)
    if set(given) != PARTS or not all(given.values()):
        raise ValueError(f'{test}: write fault("…", holds="…", within="…"), none of them empty')
    return Row(**given, test=test)


def table() -> str:
    """The table, one heading for each folder of tests."""
    lines, folder = [BEGIN], ""
    for row in rows():
        path, _, name = row.test.partition("::")
        if path.split("/")[1] != folder:
            folder = path.split("/")[1]
            lines.append(f"\n### `tests/{folder}`\n\n{HEAD}")
        cells = (row.fault, row.holds, row.within, f"`{path.split('/')[-1]}` `{name}`")
        lines.append(f"| {' | '.join(each.replace('|', chr(92) + '|') for each in cells)} |\n")
    return "".join([*lines, "\n", END])


def with_table(page: str) -> str:
    """The page with its table written anew."""
    before, _, rest = page.partition(BEGIN)
    return before + table() + rest.partition(END)[2]
