"""`headgate import --open`: real git, and a `gh` on PATH that only records its arguments."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from bot.cli import app
from tests.moving import examples

ADDRESS = "https://github.com/octo/widgets/pull/7"
GH = f"""#!/bin/sh
printf '%s\\n' "$*" >> "$GH_RECORD"
[ "$1" = auth ] && exit "${{GH_AUTH:-0}}"
[ -n "$GH_FAILS" ] && echo "a pull request is there" >&2 && exit 1
echo {ADDRESS}
"""


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture(name="record")
def _record(tmp_path, monkeypatch):
    """The file with what `gh` was called with."""
    tools, record = tmp_path / "tools", tmp_path / "record"
    tools.mkdir()
    (tools / "gh").write_text(GH)
    (tools / "gh").chmod(0o755)
    record.touch()
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GH_RECORD", str(record))
    for name, value in (("NAME", "bob"), ("EMAIL", "bob@example.org")):
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", value)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return record


@pytest.fixture(name="folder")
def _folder(tmp_path, record):
    """A checkout of `main` with a remote."""
    folder, remote = examples.checkout("bors", tmp_path), tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(remote))
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Begin")
    git(folder, "remote", "add", "origin", str(remote))
    git(folder, "push", "-q", "origin", "main")
    return folder


def opened(folder: Path, *more: str) -> int:
    return app.run([*examples.arguments(folder), "--open", *more])


def test_files_are_committed_pushed_and_opened_on_a_branch_of_their_own(folder, record, capsys):
    assert opened(folder) == 0
    said = capsys.readouterr()
    assert said.out.endswith(f"Opened {ADDRESS}\n")
    commands = [
        "git switch -c move-to-headgate",
        "git add -- .github/headgate.yml .github/workflows/ci.yml",
        "git commit -m 'Move the merge queue to Headgate'",
        "git push -u origin move-to-headgate",
        "gh pr create --fill --base main",
    ]
    assert said.err.splitlines() == [f"$ {each}" for each in commands]
    for each in commands:
        assert f"  {each}\n" in said.out, "they are shown before they run"
    calls = ["auth status", "pr create --fill --base main"]
    assert record.read_text().splitlines() == calls
    assert git(folder, "status", "--porcelain") == ""
    head = git(folder, "rev-parse", "HEAD")
    assert git(folder, "ls-remote", "origin", "refs/heads/move-to-headgate").startswith(head)
    changed = git(folder, "diff", "--name-only", "main", "move-to-headgate").splitlines()
    assert changed == [".github/headgate.yml", ".github/workflows/ci.yml"]


def test_json_has_the_address(folder, capsys):
    assert opened(folder, "--json") == 0
    assert json.loads(capsys.readouterr().out)["opened"] == ADDRESS


def change(folder: Path) -> None:
    (folder / "bors.toml").write_text('status = ["test"]\n')


def on_another_branch(folder: Path) -> None:
    git(folder, "switch", "-qc", "topic")


def on_no_branch(folder: Path) -> None:
    git(folder, "switch", "-q", "--detach")


def branch_is_there(folder: Path) -> None:
    git(folder, "branch", "move-to-headgate")


def branch_is_at_the_remote(folder: Path) -> None:
    git(folder, "push", "-q", "origin", "main:move-to-headgate")


def without_remote(folder: Path) -> None:
    git(folder, "remote", "remove", "origin")


def with_own_commits(folder: Path) -> None:
    git(folder, "commit", "-q", "--allow-empty", "-m", "Not for others yet")


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        (change, "the checkout has changes that are not committed. Commit or stash them"),
        (on_another_branch, "the checkout is on topic, not on main. Run `git switch main`"),
        (on_no_branch, "the checkout is on no branch, not on main."),
        (branch_is_there, "the branch move-to-headgate exists already. Delete it with `git branch"),
        (branch_is_at_the_remote, "exists already at origin. Delete it with `git push origin"),
        (with_own_commits, "main has commits that origin has not (1). Push or drop them"),
        (without_remote, "the remote origin cannot be read"),
    ],
)
def test_what_is_in_the_way_is_named_and_nothing_is_changed(folder, record, capsys, prepare, why):
    prepare(folder)
    before = (git(folder, "status", "--porcelain"), git(folder, "rev-parse", "HEAD"))
    assert opened(folder) != 0
    assert why in capsys.readouterr().err
    assert (git(folder, "status", "--porcelain"), git(folder, "rev-parse", "HEAD")) == before
    assert "pr create" not in record.read_text()


def test_gh_must_be_signed_in(folder, monkeypatch, capsys):
    monkeypatch.setenv("GH_AUTH", "1")
    assert opened(folder) != 0
    assert "`gh` is not signed in. Run `gh auth login`." in capsys.readouterr().err
    assert git(folder, "status", "--porcelain") == ""


def test_gh_must_be_there(folder, tmp_path, monkeypatch, capsys):
    tools = tmp_path / "git-alone"
    tools.mkdir()
    found = subprocess.run(["which", "git"], check=True, capture_output=True, text=True)
    (tools / "git").symlink_to(found.stdout.strip())
    monkeypatch.setenv("PATH", str(tools))
    assert opened(folder) != 0
    assert "`gh` is not installed. Install it from https://cli.github.com." in (
        capsys.readouterr().err
    )


def test_a_folder_that_is_no_checkout_is_refused(tmp_path, record, capsys):
    assert opened(examples.checkout("bors", tmp_path)) != 0
    assert "is not the top of a git checkout" in capsys.readouterr().err


def test_a_command_that_fails_leaves_the_rest_to_the_user(folder, monkeypatch, capsys):
    monkeypatch.setenv("GH_FAILS", "1")
    assert opened(folder) != 0
    said = capsys.readouterr().err
    assert "`gh pr` failed (a pull request is there)." in said
    assert "then run: gh pr create --fill --base main" in said


def test_nothing_is_opened_if_nothing_changes(folder, record, capsys):
    assert opened(folder) == 0
    git(folder, "switch", "-q", "main")
    git(folder, "merge", "-q", "move-to-headgate")
    capsys.readouterr()
    record.write_text("")
    assert opened(folder) == 0
    assert "Opened" not in capsys.readouterr().out
    assert record.read_text() == ""


def test_it_needs_a_checkout(capsys):
    assert app.run(["import", "--open", "--repo", "octo/widgets"]) != 0
    assert "--open works on a checkout. Leave out --repo" in capsys.readouterr().err
