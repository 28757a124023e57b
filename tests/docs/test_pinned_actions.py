"""Workflows in our pages name actions by a full commit: a tag or a branch may show other code."""

import re
from collections.abc import Iterable

from tests.tidy import tree

USED = re.compile(r"^(?:.*>)?[ -]*uses: *(\S+)", re.MULTILINE)
PINNED = re.compile(r"[\w./-]+@(?:[0-9a-f]{40}|FULL-COMMIT-SHA)|\./\S+")
SHOWING = ("README.md", "docs", "action", "service/dashboard/templates", "tests/docs")


def unpinned(texts: Iterable[tuple[str, str]]) -> list[str]:
    """Actions that are named by anything else, as `path: action`."""
    return [
        f"{path}: {action}"
        for path, text in texts
        for action in USED.findall(text)
        if not PINNED.fullmatch(action)
    ]


def test_every_action_that_we_show_is_named_by_a_commit():
    shown = [(path, text) for path, text in tree.texts() if tree.is_in(path, *SHOWING)]
    assert unpinned(shown) == []
    assert sum(len(USED.findall(text)) for _, text in shown) >= 5


def test_a_tag_a_branch_and_a_short_commit_are_found():
    text = "  - uses: a/b@v4\n  - uses: a/b/c@main\n    uses: a/b@11bd719\n"
    assert unpinned([("x.md", text)]) == ["x.md: a/b@v4", "x.md: a/b/c@main", "x.md: a/b@11bd719"]


def test_a_page_with_a_placeholder_says_what_it_stands_for():
    for path, text in tree.texts():
        if path.endswith(".md") and "@FULL-COMMIT-SHA" in text:
            assert "`FULL-COMMIT-SHA` is the commit" in text, path
