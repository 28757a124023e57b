"""The subject of a commit has at most 72 characters: docs/contributing.md, "How a change looks"."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUBJECT_MAX = 72

SINCE = "b7792f5dc4034892af557b1a59e3379d4941ed9f"
"""The last commit before the rule was a test; the commits after it are held to it."""

SINCE_AT = 1_795_907_222
"""When it was made, in seconds since 1970: a clone without it is judged by time."""


def git(root: Path, *arguments: str) -> str | None:
    """What git prints; None where it fails, is not installed, or there is no repository."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            check=False,
            encoding="utf-8",
        )
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def long_subjects(root: Path, since: str, since_at: int) -> list[str]:
    """The subjects of commits since one that are too long, the newest first; merges are left out.

    A clone may be shallow, and a release has no history at all: what is not there is not judged.
    """
    if not (root / ".git").exists():
        return []
    is_known = git(root, "merge-base", "--is-ancestor", since, "HEAD") is not None
    chosen = f"{since}..HEAD" if is_known else "HEAD"
    log = git(root, "log", "--no-merges", "--format=%ct %s", chosen) or ""
    lines = [line.split(" ", 1) for line in log.splitlines()]
    return [
        subject
        for at, subject in lines
        if len(subject) > SUBJECT_MAX and (is_known or int(at) > since_at)
    ]


def test_subjects_are_short_enough():
    assert long_subjects(ROOT, SINCE, SINCE_AT) == []


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Four commits: of a long, a longest, a too long, and a short subject."""
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    for number, subject in enumerate(("a" * 90, "b" * 72, "c" * 73, "short"), start=1):
        at = f"@{number * 1000} +0000"
        subprocess.run(
            [
                *("git", "-C", str(root), "-c", "user.name=x", "-c", "user.email=x@example.org"),
                *("commit", "-q", "--allow-empty", "-m", subject, "--date", at),
            ],
            check=True,
            env={"GIT_COMMITTER_DATE": at, "PATH": "/usr/bin:/bin:/usr/local/bin"},
        )
    return root


def test_a_long_subject_since_then_is_found_and_one_before_is_not(repository: Path):
    first = (git(repository, "rev-list", "--max-parents=0", "HEAD") or "").strip()
    assert long_subjects(repository, first, 0) == ["c" * 73]


@pytest.mark.parametrize(("depth", "found"), [("1", []), ("2", ["c" * 73]), ("3", ["c" * 73])])
def test_a_shallow_clone_is_judged_by_what_it_has(
    repository: Path, tmp_path: Path, depth: str, found: list[str]
):
    clone = tmp_path / "clone"
    address = f"file://{repository}"
    git(tmp_path, "clone", "-q", "--depth", depth, address, str(clone))
    assert long_subjects(clone, "0" * 40, 1000) == found
    assert long_subjects(clone, "0" * 40, 3000) == []


def test_without_a_history_there_is_nothing_to_judge(tmp_path: Path):
    assert long_subjects(tmp_path, SINCE, SINCE_AT) == []
    (tmp_path / ".git").mkdir()
    assert long_subjects(tmp_path, SINCE, SINCE_AT) == []
