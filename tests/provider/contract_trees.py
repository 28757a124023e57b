"""What every provider says of two changes side by side (GITHUB.md 5.4)."""

import pytest

from service.provider.trees import (
    Change,
    Different,
    Disjoint,
    Overlapping,
    Same,
    Unproven,
)
from service.vocabulary import Sha

START = {
    "app.py": "1\n",
    "docs/a.md": "a\n",
    "docs/b.md": "b\n",
    "src/deep/one/x.py": "x\n",
    "src/deep/two/y.py": "y\n",
}

# One change, another, and the paths that both touch.
TOUCHED = [
    ({"app.py": "2\n"}, {"docs/a.md": "A\n"}, ()),
    ({"docs/a.md": "A\n"}, {"docs/b.md": "B\n"}, ()),
    ({"src/deep/one/x.py": "X\n"}, {"src/deep/two/y.py": None}, ()),
    ({"new/a": "a\n"}, {"new/b": "b\n"}, ()),
    ({}, {"app.py": "2\n"}, ()),
    ({"app.py": "2\n"}, {"app.py": "3\n"}, ("app.py",)),
    ({"app.py": "2\n"}, {"app.py": "2\n"}, ("app.py",)),
    ({"docs/a.md": None}, {"docs/a.md": "A\n"}, ("docs/a.md",)),
    ({"new/a": "a\n"}, {"new/a": "b\n"}, ("new/a",)),
    ({"app.py": None, "app.py/x": "x\n"}, {"app.py": "2\n"}, ("app.py",)),
    ({"new": "file\n"}, {"new/a": "a\n"}, ("new",)),
    ({"src/deep/one/x.py": "1\n"}, {"src/deep/one/x.py": "2\n"}, ("src/deep/one/x.py",)),
]

# What two changes from different trees leave behind, and the paths that differ.
LEFT = [
    ({"app.py": "2\n"}, {"app.py": "2\n"}, ()),
    ({"docs/a.md": None}, {"docs/a.md": None}, ()),
    ({"src/deep/one/x.py": "X\n"}, {"src/deep/one/x.py": "X\n"}, ()),
    ({}, {}, ()),
    ({"app.py": "2\n"}, {"app.py": "3\n"}, ("app.py",)),
    ({"app.py": "2\n"}, {}, ("app.py",)),
    ({}, {"docs/a.md": None}, ("docs/a.md",)),
    ({"docs/a.md": "A\n"}, {"docs/a.md": "A\n", "docs/new.md": "n\n"}, ("docs/new.md",)),
    ({"new/a": "a\n"}, {"new": "a\n"}, ("new", "new/a")),
    ({"app.py": None, "app.py/x": "x\n"}, {"app.py": None}, ("app.py/x",)),
]


def trees_read(stage) -> int:
    """How many trees the provider was asked for."""
    return len([call for call in stage.calls() if "/git/trees/" in call["path"]])


class Trees:
    """Comparisons of trees."""

    @pytest.mark.parametrize(("one", "other", "both"), TOUCHED)
    async def test_the_paths_that_two_changes_touch_are_found(self, stage, one, other, both):
        start = stage.tree_with(stage.tree(stage.tip()), START)
        changes = [Change(start, stage.tree_with(start, files)) for files in (one, other)]
        found = await stage.provider.overlap(stage.repo, *changes)
        assert found == (Overlapping(both) if both else Disjoint())

    @pytest.mark.parametrize(("tested", "landed", "paths"), LEFT)
    async def test_what_two_changes_leave_behind_is_compared(self, stage, tested, landed, paths):
        start = stage.tree_with(stage.tree(stage.tip()), START)
        moved = stage.tree_with(start, {"lane.txt": "another lane\n", "docs/z.md": "z\n"})
        found = await stage.provider.same_change(
            stage.repo,
            Change(start, stage.tree_with(start, tested)),
            Change(moved, stage.tree_with(moved, landed)),
        )
        assert found == (Different(paths) if paths else Same())

    async def test_only_folders_that_differ_are_read(self, stage):
        wide = {f"folder-{number}/inside/file": "x\n" for number in range(30)}
        start = stage.tree_with(stage.tree(stage.tip()), wide)
        one = stage.tree_with(start, {"folder-3/inside/file": "y\n"})
        other = stage.tree_with(start, {"folder-4/inside/file": "y\n"})
        pair = Change(start, one), Change(start, other)
        assert await stage.provider.overlap(stage.repo, *pair) == Disjoint()
        assert trees_read(stage) == 3
        assert await stage.provider.same_change(stage.repo, *pair) == Different(
            ("folder-3/inside/file", "folder-4/inside/file")
        )

    async def test_more_than_can_be_read_is_not_proven(self, stage):
        wide = {f"folder-{number}/file": f"{number}\n" for number in range(210)}
        start = stage.tree_with(stage.tree(stage.tip()), wide)
        one = stage.tree_with(start, {name: f"{text} 1" for name, text in wide.items()})
        other = stage.tree_with(start, {f"{name}-more": "2\n" for name in wide})
        pair = Change(start, one), Change(start, other)
        assert isinstance(await stage.provider.overlap(stage.repo, *pair), Unproven)
        assert trees_read(stage) == 400

    async def test_a_tree_that_is_not_there_proves_nothing(self, stage):
        here = stage.tree(stage.tip())
        lost = Change(here, Sha("1" * 40))
        assert isinstance(await stage.provider.overlap(stage.repo, lost, lost), Unproven)
        same = Change(here, here)
        assert isinstance(await stage.provider.same_change(stage.repo, same, lost), Unproven)
