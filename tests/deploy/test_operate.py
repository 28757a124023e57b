"""The commands of the page on operating do what it says, on real databases."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from sqlalchemy import make_url

from bot import settings, tracing
from bot.uploader.proxies import Proxies
from service.clock import SystemClock
from service.database import migrate
from tests.deploy import pages
from tests.harness import databases
from tests.tidy.tree import ROOT

PAGE = (ROOT / "docs/how-to/operate.md").read_text("utf-8")
DATE = "2026-01-31"


def block(start):
    """The block that has a line with this beginning."""
    (found,) = (text for _, text in pages.blocks(PAGE) if f"\n{start}" in f"\n{text}")
    return found


@pytest.fixture
def shell(monkeypatch, tmp_path):
    """Runs text of the page, with folders of this test in place of the machine's."""
    for name in [name for name in os.environ if name.startswith("HEADGATE_")]:
        monkeypatch.delenv(name)
    data, backups = tmp_path / "data", tmp_path / "backups"
    backups.mkdir()
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HEADGATE_DATA_DIR": str(data),
    }

    def run(text, **more):
        text = text.replace("/var/lib/headgate", str(data)).replace("/var/backups", str(backups))
        text = text.replace("$(date +%F)", DATE)
        kept = [line for line in text.splitlines() if not line.startswith("sudo systemctl ")]
        done = subprocess.run(
            ["bash", "-ec", "\n".join(kept)],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=environment | more,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_a_sqlite_backup_is_made_and_put_back(shell, tmp_path):
    path = tmp_path / "data/headgate.db"
    assert shell(block("headgate migrate\n")).splitlines() == ["the schema is up to date"] * 2
    first = shell("headgate keys list --json")
    shell(block("headgate migrate --backup-to"))
    shell("headgate keys rotate")
    assert shell("headgate keys list --json") != first
    shell(block("sudo systemctl stop headgate"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert shell("headgate keys list --json") == first


def test_keys_and_tokens_are_rotated(shell):
    shell("headgate migrate")
    old = shell("headgate keys list --json")
    assert "signs from now on" in shell(block("headgate keys rotate"))
    assert shell("headgate keys list --json") != old


def test_a_key_that_is_rotated_opens_what_the_older_one_sealed(shell):
    older, newer = "o" * 43, "n" * 43
    shell("headgate keys rotate", HEADGATE_SECRET_KEY=older)
    rotating = {"HEADGATE_SECRET_KEY": newer, "HEADGATE_SECRET_KEY_PREVIOUS": older}
    shell(block("headgate keys rotate"), **rotating)
    assert '"now"' not in shell("headgate keys list", HEADGATE_SECRET_KEY=newer)


def test_a_postgresql_dump_is_made_and_loaded(shell, postgres_url, tmp_path):
    programs = Path(databases.binaries_for(tmp_path))
    restored = postgres_url.replace("/test_", "/restored_test_")
    more = {
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HEADGATE_DATABASE_URL": postgres_url,
        "HEADGATE_SECRET_KEY": "s" * 43,
        "MAINTENANCE_URL": postgres_url,
        "RESTORED_URL": restored,
    }
    shell("headgate keys rotate", **more)
    first = shell("headgate keys list --json", **more)
    shell(block("pg_dump "), **more)
    name = make_url(restored).database
    try:
        shell(block("createdb ").replace("headgate_restored", name), **more)
        again = more | {"HEADGATE_DATABASE_URL": restored}
        assert shell("headgate keys list --json", **again) == first
    finally:
        shell(f'dropdb --maintenance-db "$MAINTENANCE_URL" {name}', **more)


def test_the_page_tells_the_copies_that_an_upgrade_keeps():
    words = {3: "three"}[migrate.COPIES_KEPT]
    assert f"the newest {words} copies stay" in PAGE


async def test_the_setting_for_traces_is_one_and_its_packages_are_an_extra(monkeypatch, tmp_path):
    name, _, url = block("HEADGATE_TRACES_URL").strip().partition("=")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, url)
    chosen = settings.read()
    async with tracing.opened(chosen.traces_url, "one", Proxies(), SystemClock().now) as traces:
        assert traces.are_on
    (extra,) = re.findall(r'^pip install "headgate\[(\w+)\]"$', block("pip install"), re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert "opentelemetry-sdk>=1.45" in project["optional-dependencies"][extra]
