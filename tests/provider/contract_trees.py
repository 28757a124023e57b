"""What every provider says of files, and of two changes side by side.

See docs/design/provider.md 12.
"""

import pytest

from bot.sandbox.rest import repositories
from service.provider.errors import Gone, GoneKind, Refused, RefusedCode, Unavailable
from service.provider.trees import (
    Different,
    Disjoint,
    Overlapping,
    Same,
    TreeChange,
    TreePaths,
    Unproven,
)
from service.vocabulary import RepoRef, Sha

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


class Files:
    """Files of a commit."""

    async def test_a_file_is_read_as_it_stands_at_a_commit(self, stage):
        await stage.push_files({"docs/with blank#.md": "old\n"})
        old = stage.tip()
        await stage.push_files({"docs/with blank#.md": "new\n"})
        found = [
            await stage.provider.read_file(stage.repo, "docs/with blank#.md", commit, 100)
            for commit in (old, stage.tip())
        ]
        assert found == [b"old\n", b"new\n"]

    @pytest.mark.parametrize("path", ["nothing", "docs", "README.md/more"])
    async def test_where_no_file_is_there_is_none(self, stage, path):
        await stage.push_files({"docs/a.md": "a\n"})
        assert await stage.provider.read_file(stage.repo, path, stage.tip(), 100) is None

    async def test_of_a_commit_that_is_not_there_nothing_is_known(self, stage):
        lost = Sha("1" * 40)
        assert await stage.provider.read_file(stage.repo, "README.md", lost, 100) is None
        assert await stage.provider.tree_paths(stage.repo, lost) == TreePaths({}, complete=False)

    async def test_in_a_repository_that_is_gone_no_file_is_read(self, stage):
        nowhere, commit = RepoRef(stage.repo.host, "octo", "nothing"), Sha("1" * 40)
        for asked in (
            stage.provider.read_file(nowhere, "README.md", commit, 100),
            stage.provider.tree_paths(nowhere, commit),
        ):
            with pytest.raises(Gone) as gone:
                await asked
            assert gone.value.kind is GoneKind.REPOSITORY

    async def test_a_large_file_is_read_whole_up_to_the_limit(self, stage):
        text = "x" * 1_500_000
        await stage.push_files({"large": text})
        read = stage.provider.read_file
        assert await read(stage.repo, "large", stage.tip(), len(text)) == text.encode()
        with pytest.raises(Refused) as refused:
            await read(stage.repo, "large", stage.tip(), len(text) - 1)
        assert refused.value.code is RefusedCode.TOO_LARGE

    async def test_all_files_of_a_commit_are_listed_by_one_read(self, stage):
        await stage.push_files({"a/b/c.py": "x\n", "d.py": "x\n", "e.py": "y\n"})
        found = await stage.provider.tree_paths(stage.repo, stage.tip())
        assert trees_read(stage) == 1
        assert found.complete
        assert {"a/b/c.py", "d.py", "e.py", "README.md"} <= found.ids.keys()
        assert found.ids["a/b/c.py"] == found.ids["d.py"] != found.ids["e.py"]

    async def test_a_list_that_was_cut_is_not_complete(self, stage, monkeypatch):
        monkeypatch.setattr(repositories, "_TREE_LINES_MAX", 1)
        found = await stage.provider.tree_paths(stage.repo, stage.tip())
        assert not found.complete

    async def test_an_answer_that_was_cut_is_no_file(self, stage):
        await stage.fault("truncate", nth=None, path="*/contents/*")
        with pytest.raises(Unavailable):
            await stage.provider.read_file(stage.repo, "README.md", stage.tip(), 100)


class Trees:
    """Comparisons of trees."""

    @pytest.mark.parametrize(("one", "other", "both"), TOUCHED)
    async def test_the_paths_that_two_changes_touch_are_found(self, stage, one, other, both):
        start = stage.tree_with(stage.tree(stage.tip()), START)
        changes = [TreeChange(start, stage.tree_with(start, files)) for files in (one, other)]
        found = await stage.provider.overlap(stage.repo, *changes)
        assert found == (Overlapping(both) if both else Disjoint())

    @pytest.mark.parametrize(("tested", "landed", "paths"), LEFT)
    async def test_what_two_changes_leave_behind_is_compared(self, stage, tested, landed, paths):
        start = stage.tree_with(stage.tree(stage.tip()), START)
        moved = stage.tree_with(start, {"lane.txt": "another lane\n", "docs/z.md": "z\n"})
        found = await stage.provider.same_change(
            stage.repo,
            TreeChange(start, stage.tree_with(start, tested)),
            TreeChange(moved, stage.tree_with(moved, landed)),
        )
        assert found == (Different(paths) if paths else Same())

    async def test_only_folders_that_differ_are_read(self, stage):
        wide = {f"folder-{number}/inside/file": "x\n" for number in range(30)}
        start = stage.tree_with(stage.tree(stage.tip()), wide)
        one = stage.tree_with(start, {"folder-3/inside/file": "y\n"})
        other = stage.tree_with(start, {"folder-4/inside/file": "y\n"})
        pair = TreeChange(start, one), TreeChange(start, other)
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
        pair = TreeChange(start, one), TreeChange(start, other)
        assert isinstance(await stage.provider.overlap(stage.repo, *pair), Unproven)
        assert trees_read(stage) == 400

    async def test_a_tree_that_is_not_there_proves_nothing(self, stage):
        here = stage.tree(stage.tip())
        lost = TreeChange(here, Sha("1" * 40))
        assert isinstance(await stage.provider.overlap(stage.repo, lost, lost), Unproven)
        same = TreeChange(here, here)
        assert isinstance(await stage.provider.same_change(stage.repo, same, lost), Unproven)
