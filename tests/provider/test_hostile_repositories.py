"""What a hostile repository may try when git builds its test branches, against real git.

Rules: docs/design/git-builds.md 8.
"""

import os
from contextlib import suppress

import pytest

from bot.github.gitbuild.chain import displayed
from bot.sandbox.git import NewCommit, TreeItem
from service.provider.errors import ProviderError
from service.provider.values import Built, Conflicted, Vehicle
from tests.provider.stage import mirrors_in, on_sandbox

BY_GIT = {("git", "default"): 1}


@pytest.fixture
async def stage(tmp_path):
    async with on_sandbox(mirrors=mirrors_in(tmp_path)) as made:
        yield made


@pytest.fixture
def canary(tmp_path):
    """A folder in which every attack would leave a file."""
    folder = tmp_path / "canary"
    folder.mkdir()
    return folder


async def build(stage, *pulls):
    return await stage.provider.build(stage.request(*pulls, vehicle=Vehicle.PUSH))


def outside(stage):
    """Everything beside the mirror where it is kept."""
    names = {path.name for path in stage.mirror.parent.iterdir()}
    return names - {stage.mirror.name, f"{stage.mirror.name}.lock"}


class Planted:
    """Commits that no ordinary client makes."""

    def __init__(self, stage):
        self.objects = stage.world.git.objects
        self.tip = self.objects.a_commit(stage.tip())

    def commit(self, *items):
        """A commit on the tip that adds these (mode, kind, sha, name) to its root."""
        present = [
            line
            for line in self.objects.tree(self.tip.tree)
            if line.name not in {i[3] for i in items}
        ]
        tree = self.objects.write_tree([*present, *(TreeItem(*item) for item in items)])
        who = self.tip.author
        return self.objects.write_commit(NewCommit(tree, (self.tip.sha,), who, who, "x")).sha

    def blob(self, content):
        return self.objects.write("blob", content)


async def test_no_program_that_files_name_is_run(stage, canary):
    touch = f"touch {canary}/ran"
    driver = f'[merge "evil"]\n\tdriver = {touch}\n[filter "evil"]\n\tsmudge = {touch}\n'
    driver += f"\tclean = {touch}\n\tprocess = {touch}\n[core]\n\tfsmonitor = {touch}\n"
    script = f"#!/bin/sh\n{touch}\n"
    files = {
        ".gitattributes": "* merge=evil filter=evil diff=evil\n*.bin filter=lfs merge=lfs\n",
        ".gitconfig": driver,
        "config": driver,
        "hooks/pre-push": script,
        ".githooks/reference-transaction": script,
        "big.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        ".lfsconfig": f"[lfs]\n\turl = ext::sh -c {touch}\n",
        ".gitmodules": f'[submodule "x"]\n\tpath = x\n\turl = ext::{touch}\n',
    }
    await stage.push_files(files)
    pull = await stage.open({"app.py": "0\n1\n2\n3\n", "big.bin": "changed\n"})
    await stage.push_files({"app.py": "1\n2\n3\n4\n"})
    built = await build(stage, pull)
    assert built.prefixes[0].tree == stage.git_merge(stage.tip(), pull[1])
    assert stage.built_by() == BY_GIT
    assert list(canary.iterdir()) == []


async def test_links_and_submodules_are_stored_and_not_followed(stage, canary):
    planted = Planted(stage)
    number, _ = await stage.open({"a.txt": "a\n"})
    head = planted.commit(
        ("120000", "blob", planted.blob(b"/etc/passwd"), "passwd"),
        ("120000", "blob", planted.blob(str(canary).encode()), "out"),
        ("120000", "blob", planted.blob(b"../../../hooks"), "up"),
        ("160000", "commit", planted.tip.sha, "module"),
    )
    built = await build(stage, (number, head))
    assert isinstance(built, Built)
    assert (stage.built_by(), outside(stage)) == (BY_GIT, set())
    assert list(canary.iterdir()) == []


@pytest.mark.parametrize("name", [".git", ".GIT", "..", "git~1"])
async def test_names_that_escape_a_folder_are_left_to_github(stage, name):
    planted = Planted(stage)
    number, _ = await stage.open({"a.txt": "a\n"})
    below = planted.objects.write_tree([TreeItem("100644", "blob", planted.blob(b"x"), "config")])
    head = planted.commit(("040000", "tree", below, name))
    await build(stage, (number, head))
    assert stage.built_by() == {("rest", "fetch_failed"): 1}
    assert outside(stage) == set()


ODD_NAMES = (
    *("-rf", "--upload-pack=touch x", "new\nline", "\x1b[2J"),
    *("$(touch x)", "a;b|c&d", "café", "CON"),
)


async def test_odd_names_of_files_are_built(stage):
    planted = Planted(stage)
    number, _ = await stage.open({"a.txt": "a\n"})
    other, _ = await stage.open({"b.txt": "b\n"})
    for built_before, name in enumerate(ODD_NAMES):
        one = planted.commit(("100644", "blob", planted.blob(b"1"), name))
        two = planted.commit(("100644", "blob", planted.blob(b"2"), name))
        assert isinstance(await build(stage, (number, one)), Built), name
        conflict = await build(stage, (number, one), (other, two))
        assert stage.built_by()["git", "default"] == built_before + 1, name
        assert len(conflict.paths) == 1, name
        assert conflict.paths[0].isprintable(), name


async def test_odd_refs_of_the_server_are_never_fetched(stage, canary):
    refs = stage.world.git.folder / "packed-refs"
    tip = stage.tip()
    names = [
        f"refs/heads/--upload-pack=touch${{IFS}}{canary}/ran",
        f"refs/heads/$(touch${{IFS}}{canary}/ran)",
        "refs/headgate/base/0000000000000000",
    ]
    with refs.open("a") as file:
        file.writelines(f"{tip} {name}\n" for name in names)
    pull = await stage.open({"a.txt": "a\n"})
    assert isinstance(await build(stage, pull), Built)
    assert stage.built_by() == BY_GIT
    kept = [
        str(path.relative_to(stage.mirror / "refs"))
        for path in (stage.mirror / "refs").rglob("*")
        if path.is_file()
    ]
    assert sorted(name.rpartition("/")[0] for name in kept) == ["headgate/base", "headgate/pull"]
    assert list(canary.iterdir()) == []


async def test_a_branch_of_any_name_may_be_the_target(stage):
    target = "--force/$(x);y"
    await stage.act("push", branch=target, files={"y.txt": "y\n"})
    pull = await stage.open({"a.txt": "a\n"}, base=target)
    request = stage.request(pull, vehicle=Vehicle.PUSH, target=target, base_sha=stage.tip(target))
    assert isinstance(await stage.provider.build(request), Built)
    assert stage.built_by() == BY_GIT


@pytest.mark.parametrize("sha", ["--help", "HEAD", "main", "0" * 39, "+" + "a" * 40])
async def test_what_is_no_commit_id_enters_no_command(stage, sha):
    number, _ = await stage.open({"a.txt": "a\n"})
    request = stage.request((number, sha), vehicle=Vehicle.PUSH)
    with suppress(ProviderError):
        await stage.provider.build(request)
    assert stage.built_by()["rest", "fetch_failed"] == 1
    assert stage.pushes() == []


async def test_a_file_beyond_the_limit_fills_no_disk(tmp_path):
    async with on_sandbox(mirrors=mirrors_in(tmp_path, bytes_max=1 << 20)) as stage:
        small = await stage.open({"a.txt": "a\n"})
        await build(stage, small)
        planted = Planted(stage)
        head = planted.commit(("100644", "blob", planted.blob(os.urandom(4 << 20)), "bomb"))
        assert isinstance(await build(stage, (small[0], head)), Built)
        assert stage.built_by() == {**BY_GIT, ("rest", "fetch_failed"): 1}
        files = [each for each in stage.mirror.rglob("*") if each.is_file()]
        assert sum(each.stat().st_size for each in files) < 1 << 20
        assert isinstance(await build(stage, small), Built)
        assert stage.built_by()["git", "default"] == 2


async def test_contents_that_unpack_beyond_memory_end_one_build_alone(tmp_path):
    async with on_sandbox(mirrors=mirrors_in(tmp_path)) as stage:
        zeros = b"\0" * (8 << 20)
        planted = Planted(stage)
        number, _ = await stage.open({"a.txt": "a\n"})
        heads = [
            planted.commit(("100644", "blob", planted.blob(zeros + mark), "zeros"))
            for mark in (b"1", b"2")
        ]
        result = await build(stage, (number, heads[0]), (number, heads[1]))
        assert isinstance(result, Built | Conflicted)


async def test_a_redirect_to_another_host_gets_no_token(stage):
    fault = {"status": 302, "message": "moved"}
    await stage.fault("refuse", path="*/info/refs", nth=None, **fault)
    built = await build(stage, await stage.open({"a.txt": "a\n"}))
    assert isinstance(built, Built)
    assert {reason for _, reason in stage.built_by()} == {"mirror_not_ready"}


async def test_replaced_objects_change_no_merge(stage):
    pull = await stage.open({"a.txt": "a\n"})
    other = await stage.open({"b.txt": "b\n"})
    stage.git("update-ref", f"refs/replace/{pull[1]}", other[1])
    built = await build(stage, pull)
    assert stage.parents(built.tip)[1] == pull[1]
    stage.git("update-ref", "-d", f"refs/replace/{pull[1]}")
    assert built.prefixes[0].tree == stage.git_merge(stage.tip(), pull[1])


def test_a_path_that_is_no_text_is_shown_escaped():
    assert displayed(b"a/\xff\x00 b\xc3\xa9") == "a/\\xff\\x00 b\xe9"
