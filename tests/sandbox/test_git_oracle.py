"""Every merge, squash and rebase of the sandbox, repeated with porcelain git in a clone."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.sandbox import merges
from bot.sandbox.command import GitFailed, isolated_environment
from bot.sandbox.git import REF_NAME, ZERO, NewCommit, Signature, create
from tests.sandbox.client import REPO

LINES = "".join(f"line {number}\n" for number in range(40))


def git(folder: Path, *args: str) -> str:
    """Porcelain git in a work tree."""
    environment = {
        **isolated_environment(),
        "GIT_AUTHOR_NAME": "oracle",
        "GIT_AUTHOR_EMAIL": "oracle@localhost",
        "GIT_COMMITTER_NAME": "oracle",
        "GIT_COMMITTER_EMAIL": "oracle@localhost",
    }
    done = subprocess.run(
        ["git", *args], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def changed(number: int, text: str) -> str:
    return LINES.replace(f"line {number}\n", f"{text}\n")


CASES = {
    "one file each": [{"a.txt": "a"}],
    "both ends of one file": [{"long.txt": changed(3, "three")}],
    "two commits": [{"a.txt": "a"}, {"b.txt": "b", "long.txt": changed(5, "five")}],
    "a rename under an edit": [{"long.txt": None, "moved.txt": LINES}],
    "a removal": [{"gone.txt": None}],
    "a folder": [{"deep/er/file.txt": "x", "deep/other.txt": "y"}],
    "there and back": [{"a.txt": "a"}, {"a.txt": None}, {"b.txt": "b"}],
    "a change that the base has already": [{"other.txt": "o\n"}, {"a.txt": "a"}],
    "carriage returns": [{"dos.txt": "one\r\ntwo\r\n"}],
}


async def story(sandbox, commits):
    """A pull request of these commits, with a base that has moved on beside it."""
    start = {"long.txt": LINES, "gone.txt": "x\n"}
    await sandbox.act("push", "alice", REPO, branch="main", files=start)
    opened = await sandbox.act("open", "bob", REPO, files=commits[0], head="topic")
    number = opened["number"]
    for files in commits[1:]:
        await sandbox.act("push", "bob", REPO, number=number, files=files)
    later = {"long.txt": changed(37, "thirty-seven"), "other.txt": "o\n"}
    await sandbox.act("push", "alice", REPO, branch="main", files=later)
    await sandbox.settle()
    return number


def cloned(sandbox, tmp_path) -> Path:
    folder = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(sandbox.repository(REPO).git.folder), str(folder))
    git(folder, "fetch", "-q", "origin", "topic:topic")
    return folder


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_the_provider_lands_what_git_lands(sandbox, tmp_path, name, method):
    number = await story(sandbox, CASES[name])
    clone = cloned(sandbox, tmp_path)
    tip = git(clone, "rev-parse", "main")
    if method == "merge":
        git(clone, "merge", "-q", "--no-ff", "-m", "m", "topic")
    elif method == "squash":
        git(clone, "merge", "-q", "--squash", "topic")
        git(clone, "commit", "-q", "--allow-empty", "-m", "m")
    else:
        git(clone, "checkout", "-q", "topic")
        git(clone, "rebase", "-q", "--no-ff", "main")
    landed = (await sandbox.act("merge", "alice", REPO, number=number, method=method))["sha"]
    objects = sandbox.repository(REPO).git.objects
    ours = list(reversed(objects.log(landed, without=tip)))
    theirs = git(clone, "rev-list", "--reverse", "--topo-order", "HEAD", "--not", tip).split()
    if method == "merge":
        assert objects.a_commit(landed).parents == (tip, git(clone, "rev-parse", "topic"))
    else:
        assert [one.parents for one in ours] == [(tip,), *((one.sha,) for one in ours[:-1])]
    trees = [git(clone, "rev-parse", f"{sha}^{{tree}}") for sha in theirs]
    assert sorted(one.tree for one in ours) == sorted(trees)
    assert objects.a_commit(landed).tree == git(clone, "rev-parse", "HEAD^{tree}")


async def test_a_merge_of_branches_is_what_git_makes(sandbox, app, tmp_path):
    await story(sandbox, CASES["both ends of one file"])
    clone = cloned(sandbox, tmp_path)
    git(clone, "merge", "-q", "--no-ff", "-m", "m", "topic")
    body = {"base": "main", "head": "topic"}
    answer = await app.call("POST", f"/repos/{REPO}/merges", body)
    assert answer.body["commit"]["tree"]["sha"] == git(clone, "rev-parse", "HEAD^{tree}")


async def test_a_criss_cross_history_merges_as_in_git(sandbox, app, tmp_path):
    """Two best common ancestors: git merges them first."""
    number = await story(sandbox, [{"long.txt": changed(3, "three")}])
    await app.call("POST", f"/repos/{REPO}/merges", {"base": "topic", "head": "main"})
    repository = sandbox.repository(REPO)
    await sandbox.act("push", "alice", REPO, branch="main", files={"side.txt": "s"})
    before = repository.git.objects.a_commit(repository.git.branch("topic")).parents[0]
    await app.call("POST", f"/repos/{REPO}/merges", {"base": "main", "head": before})
    files = {"long.txt": changed(3, "three!").replace("line 37\n", "thirty-seven\n")}
    await sandbox.act("push", "bob", REPO, number=number, files=files)
    clone = cloned(sandbox, tmp_path)
    tips = [git(clone, "rev-parse", name) for name in ("main", "topic")]
    bases = git(clone, "merge-base", "--all", *tips).split()
    assert len(bases) == 2
    assert sorted(repository.git.objects.merge_bases(*tips)) == sorted(bases)
    git(clone, "merge", "-q", "--no-ff", "-m", "m", "topic")
    answer = await app.call("POST", f"/repos/{REPO}/merges", {"base": "main", "head": "topic"})
    assert answer.body["commit"]["tree"]["sha"] == git(clone, "rev-parse", "HEAD^{tree}")


async def test_the_repository_is_whole_in_the_eyes_of_git(sandbox, tmp_path):
    number = await story(sandbox, CASES["two commits"])
    await sandbox.act("open", "dave", REPO, files={"f.txt": "f"}, fork=True)
    await sandbox.act("merge", "alice", REPO, number=number, method="rebase")
    git(sandbox.repository(REPO).git.folder, "fsck", "--strict", "--full")


@pytest.mark.parametrize("pair", [("main", "topic"), ("topic", "main"), ("main", "main")])
async def test_histories_are_walked_as_git_walks_them(sandbox, tmp_path, pair):
    await story(sandbox, CASES["two commits"])
    clone = cloned(sandbox, tmp_path)
    one, other = (git(clone, "rev-parse", name) for name in pair)
    objects = sandbox.repository(REPO).git.objects
    assert objects.merge_base(one, other) == git(clone, "merge-base", one, other)
    listed = git(clone, "rev-list", other, "--not", one).split()
    assert sorted(commit.sha for commit in objects.log(other, without=one)) == sorted(listed)
    assert objects.is_ancestor(one, other) == (git(clone, "merge-base", one, other) == one)


START = {"a.txt": "a\n", "b.txt": "b\n", "deep/c.txt": "c\n", "deep/er/d.txt": "d\n"}
SIDES = {
    "files of their own": ({"x.txt": "x"}, {"y.txt": "y"}, True),
    "the same in one folder": ({"deep/x.txt": "x"}, {"deep/er/y.txt": "y"}, True),
    "the same new file": ({"x/x.txt": "x"}, {"x/x.txt": "x", "x/y.txt": "y"}, True),
    "one changes, one removes another": ({"a.txt": "A\n"}, {"b.txt": None}, True),
    "both change it alike": ({"a.txt": "A\n", "x.txt": "x"}, {"a.txt": "A\n"}, True),
    "both empty a folder": ({"deep/c.txt": None}, {"deep/er/d.txt": None}, True),
    "a folder in place of a file": ({"a.txt": None, "a.txt/x": "x"}, {"y.txt": "y"}, True),
    "nothing on one side": ({"x.txt": "x"}, {"b.txt": "b\n"}, True),
    "both remove it": ({"deep/c.txt": None, "x.txt": "x"}, {"deep/c.txt": None}, False),
    "one file on both sides": ({"a.txt": "A\n"}, {"a.txt": "B\n"}, False),
    "one changes what one removes": ({"a.txt": "A\n"}, {"a.txt": None}, False),
    "a file and a folder": ({"x": "x"}, {"x/y.txt": "y"}, False),
}


def committed(objects, files, *parents):
    """A commit of Alice with these changes of its first parent."""
    before = objects.a_commit(parents[0]).tree if parents else None
    written = {path: None if text is None else text.encode() for path, text in files.items()}
    tree = objects.tree_with(before, written)
    who = Signature("alice", "alice@localhost", datetime(2026, 3, 2, tzinfo=UTC))
    return objects.write_commit(NewCommit(tree, parents, who, who, "m")).sha


@pytest.mark.parametrize("name", SIDES)
def test_a_merge_without_a_file_that_both_changed_is_gits_own(tmp_path, name):
    *sides, is_plain = SIDES[name]
    bare = create(tmp_path / "it.git", "main")
    base = committed(bare.objects, START)
    for ours, theirs in (sides, sides[::-1]):
        tips = [committed(bare.objects, files, base) for files in (ours, theirs)]
        made = merges.plain_merge(bare.objects, *tips)
        assert (made is not None) == is_plain
        if made is not None:
            assert made == git(bare.folder, "merge-tree", "--write-tree", *tips)


def test_histories_without_a_common_commit_are_left_to_git(tmp_path):
    objects = create(tmp_path / "it.git", "main").objects
    assert merges.plain_merge(objects, committed(objects, START), committed(objects, {})) is None


DIFFERENCES = {
    "new files": ({"x.txt": "1\n2", "deep/y.txt": "1\n", "none": "", "zero": "\0"}, True),
    "files that went": ({"a.txt": None, "deep/er/d.txt": None}, True),
    "nothing": ({}, True),
    "a change": ({"a.txt": "A\n", "x.txt": "x"}, False),
    "one came, one went": ({"a.txt": None, "x.txt": "a\n"}, False),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_files_that_only_came_or_only_went_are_counted_as_git_counts_them(tmp_path, name):
    files, is_plain = DIFFERENCES[name]
    bare = create(tmp_path / "it.git", "main")
    base = committed(bare.objects, START)
    trees = [
        bare.objects.a_commit(sha).tree for sha in (base, committed(bare.objects, files, base))
    ]
    found = merges.plain_changes(bare.objects, *trees)
    assert (found is not None) == is_plain
    if found is not None:
        lines = git(bare.folder, "diff-tree", "-r", "-M", "--numstat", *trees).splitlines()
        counts = [line.replace("-\t-", "0\t0") for line in lines]
        assert [f"{one.additions}\t{one.deletions}\t{one.path}" for one in found] == counts
        states = git(bare.folder, "diff-tree", "-r", "-M", "--name-status", *trees).splitlines()
        assert [f"{one.status[0].upper()}\t{one.path}" for one in found] == [
            line.replace("D", "R", 1) for line in states
        ]


NAMES = [
    *("refs/heads/a", "refs/heads/a/b-c_1", "refs/heads/ä", "refs/heads/a.b", "refs/heads/a@b"),
    *("refs/heads/@", "refs/heads/a.lockb", "refs/heads/.a", "refs/heads/a/.b", "refs/heads/a..b"),
    *(
        "refs/heads/a.",
        "refs/heads/a./b",
        "refs/heads/a.lock",
        "refs/heads/a.lock/b",
        "refs/heads/",
    ),
    *("refs/heads//a", "refs/heads/a b", "refs/heads/a~b", "refs/heads/a^b", "refs/heads/a:b"),
    *("refs/heads/a?b", "refs/heads/a*b", "refs/heads/a[b", "refs/heads/a\\b", "refs/heads/a@{b"),
    *("refs/heads/a\tb", "refs/heads/a\x7fb", "refs/heads/-a", "refs/heads/{a}"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_ref_has_a_name_that_git_takes(tmp_path, name):
    """`git check-ref-format` refuses by its exit code alone."""
    done = subprocess.run(["git", "check-ref-format", name], cwd=tmp_path, check=False)
    assert (REF_NAME.fullmatch(name) is not None) == (done.returncode == 0)


def test_refs_are_what_git_reads(tmp_path):
    bare = create(tmp_path / "it.git", "main")
    one = committed(bare.objects, START)
    other = committed(bare.objects, {"x.txt": "x"}, one)
    bare.move([("refs/heads/main", ZERO, one), ("refs/heads/a/b/c", ZERO, one)])
    bare.move([("refs/heads/main", one, other), ("refs/heads/a/b/c", one, ZERO)])
    bare.move([("refs/heads/a", ZERO, one), ("refs/pull/1/head", ZERO, one)])
    listed = git(bare.folder, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    assert dict(line.split() for line in listed) == bare.refs
    assert bare.branches() == ["a", "main"]
    assert git(bare.folder, "symbolic-ref", "HEAD") == "refs/heads/main"


@pytest.mark.parametrize(
    ("update", "why"),
    [
        (("refs/heads/main", ZERO, "TIP"), "is not at"),
        (("refs/heads/main/a", ZERO, "TIP"), "is a folder of refs, or in a ref"),
        (("refs/heads/a..b", ZERO, "TIP"), "is no name of a ref"),
        ((f"refs/heads/{'x' * 300}", ZERO, "TIP"), "is no name of a ref"),
        (("refs/heads/b", ZERO, "1" * 40), "no commit"),
    ],
)
def test_refs_move_all_or_none(tmp_path, update, why):
    bare = create(tmp_path / "it.git", "main")
    tip = committed(bare.objects, START)
    bare.move([("refs/heads/main", ZERO, tip)])
    name, old, new = update
    with pytest.raises(GitFailed, match=why):
        bare.move([("refs/heads/c", ZERO, tip), (name, old, new.replace("TIP", tip))])
    assert bare.refs == {"refs/heads/main": tip}
    assert git(bare.folder, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
