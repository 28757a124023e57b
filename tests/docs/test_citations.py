"""The code cites only pages that a reader of the repository can open."""

import re
from collections.abc import Iterable

from tests.tidy import tree

CITING = ("action", "bot", "docs", "service", "tests")

# Pages in capitals that are here, wherever they are.
HERE = {"README.md", "CHANGELOG.md", "SECURITY.md", "SKILL.md"}
CAPITALS = re.compile(r"\b[A-Z][A-Z_-]+\.md\b")


def foreign(texts: Iterable[tuple[str, str]]) -> list[str]:
    """Pages in capitals that are cited and not in the repository, as `path:line: page`."""
    return [
        f"{path}:{number}: {name}"
        for path, text in texts
        for number, line in enumerate(text.splitlines(), 1)
        for name in CAPITALS.findall(line)
        if name not in HERE
    ]


def test_no_page_outside_the_repository_is_cited():
    assert foreign(each for each in tree.texts() if tree.is_in(each[0], *CITING)) == []


def test_such_a_citation_is_found():
    name = "ENGINE" + ".md"
    assert foreign([("x.py", f"1\n# See {name} 4; docs/README.md.")]) == [f"x.py:2: {name}"]
