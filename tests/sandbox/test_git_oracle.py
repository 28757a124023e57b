"""Every merge, squash and rebase of the sandbox, repeated with porcelain git in a clone."""

import subprocess
from pathlib import Path

import pytest

from bot.sandbox.command import isolated_environment
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
    assert len(git(clone, "merge-base", "--all", "main", "topic").split()) == 2
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
