"""Fetched files: kept when right, replaced when not, and no obstacle when they cannot come."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.tidy.tree import ROOT

# SHA-384 of b"wanted\n".
WANTED = "sha384-sXajDHRlcT3B0H1DWpMY42FRmGrbrUvS1ngKxVyNDWU0R7ZbSIyAtxgeq4t08PoY"

# npm as far as it is used: prints a version, or packs the file that lies beside it.
NPM = """#!/bin/sh
set -eu
here=$(dirname "$0")
echo "$*" >> "$here/asked"
if [ -e "$here/offline" ]; then echo "npm error code ENOTFOUND" >&2; exit 1; fi
case $1 in
  view) echo 2.0.0 ;;
  pack) tar czf thing.tgz -C "$here/registry" package ;;
esac
"""

INSTALLED = {
    *("octokit", "clients", "clients-python", "deploy"),
    *("pytest-oldest", "pytest-newest"),
    *("runners-oldest", "runners-newest"),
}
"""Folders that hold whole installations."""


@pytest.fixture
def checkout(tmp_path):
    """A checkout of `.ci/assets.py` with a lock of one file, and an npm that only we answer."""
    for folder in ("bin/registry/package/lib", ".ci", "tests/contract"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / ".ci/assets.py", tmp_path / ".ci")
    (tmp_path / "bin/npm").write_text(NPM)
    (tmp_path / "bin/npm").chmod(0o755)
    (tmp_path / "bin/registry/package/lib/a.json").write_text("wanted\n")
    entry = {"name": "@scope/thing", "version": "1.0.0", "files": {"lib/a.json": WANTED}}
    (tmp_path / "tests/contract/published.lock.json").write_text(json.dumps([entry]))
    for folder in ("contract/octokit", "contract/clients", "plugins/oldest", "plugins/newest"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            (tmp_path / "tests" / folder / name).write_text("{}")
    # As if it were installed: what pip installs is not what these tests are about.
    (tmp_path / "requirements").mkdir()
    (tmp_path / "tests/cli/runners").mkdir(parents=True)
    for file, home in (
        ("tests/contract/clients/requirements.txt", "clients-python"),
        ("requirements/deploy.txt", "deploy"),
        ("tests/cli/runners/pytest-oldest.txt", "pytest-oldest"),
        ("tests/cli/runners/pytest-newest.txt", "pytest-newest"),
    ):
        (tmp_path / file).write_text("")
        (tmp_path / ".cache" / home).mkdir(parents=True)
        (tmp_path / ".cache" / home / "installed.txt").write_text("")
    return tmp_path


def bring(checkout, *options, path=None):
    return subprocess.run(
        [sys.executable, ".ci/assets.py", *options],
        check=False,
        cwd=checkout,
        env={"PATH": path or f"{checkout}/bin{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )


def brought(checkout):
    cache = checkout / ".cache"
    files = [path for path in cache.rglob("*") if path.is_file() and not INSTALLED & {*path.parts}]
    return {path.relative_to(cache).as_posix(): path.read_text() for path in files}


def test_a_missing_file_is_fetched_and_only_what_the_lock_wants(checkout):
    (checkout / "bin/registry/package/other.json").write_text("not wanted\n")
    assert bring(checkout).returncode == 0
    assert brought(checkout) == {"scope-thing-1.0.0/lib/a.json": "wanted\n"}


def test_what_lies_there_with_the_right_digest_is_kept(checkout):
    bring(checkout)
    (checkout / "bin/asked").unlink()
    again = bring(checkout)
    assert (again.returncode, again.stdout) == (0, "")
    assert not (checkout / "bin/asked").exists()


def test_a_changed_file_is_fetched_again(checkout):
    bring(checkout)
    (checkout / ".cache/scope-thing-1.0.0/lib/a.json").write_text("spoiled\n")
    assert bring(checkout).returncode == 0
    assert brought(checkout) == {"scope-thing-1.0.0/lib/a.json": "wanted\n"}


def test_a_wrong_digest_is_an_error_and_leaves_nothing_behind(checkout):
    (checkout / "bin/registry/package/lib/a.json").write_text("something else\n")
    result = bring(checkout)
    assert result.returncode == 1
    assert "@scope/thing 1.0.0: lib/a.json has sha384-" in result.stderr
    assert WANTED in result.stderr
    assert brought(checkout) == {}


def test_a_file_that_the_package_lacks_is_an_error(checkout):
    (checkout / "bin/registry/package/lib/a.json").unlink()
    result = bring(checkout)
    assert result.returncode == 1
    assert "lib/a.json has not come" in result.stderr


def test_no_network_is_one_line_and_no_error(checkout):
    (checkout / "bin/offline").touch()
    result = bring(checkout)
    assert result.returncode == 0
    assert result.stdout.splitlines()[-1] == (
        "assets: npm pack failed (npm error code ENOTFOUND); "
        "tests that need them are skipped, all else works"
    )
    assert brought(checkout) == {}


def test_no_npm_is_one_line_and_no_error(checkout):
    result = bring(checkout, path=str(checkout / "tests"))
    assert result.returncode == 0
    assert result.stdout.splitlines()[-1].startswith("assets: npm is not on PATH;")


def test_update_rewrites_the_lock_to_the_newest_version(checkout):
    (checkout / "bin/registry/package/lib/a.json").write_text("newer\n")
    assert bring(checkout, "--update").returncode == 0
    (entry,) = json.loads((checkout / "tests/contract/published.lock.json").read_text())
    assert entry["version"] == "2.0.0"
    assert entry["files"]["lib/a.json"] not in ("", WANTED)
    assert brought(checkout) == {"scope-thing-2.0.0/lib/a.json": "newer\n"}


def test_what_was_fetched_here_is_what_the_lock_means(needs):
    needs("assets")
