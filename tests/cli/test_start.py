"""A thin command imports what it needs: the start of `headgate` is paid by every CI job."""

import json
import subprocess
import sys

import pytest

from bot.cli import access
from bot.cli.exits import Exit
from service.accounts import tokens
from tests.cli.processes import environment

# Plain values, which import nothing themselves.
VALUES = {
    "service",
    "service.accounts",
    "service.accounts.tenants",
    "service.errors",
    "service.provenance",
    "service.testhealth",
    "service.testhealth.early_failures",
    "service.testhealth.reports",
    "service.testhealth.reports.results",
    "service.testhealth.runner_ends",
    "service.vocabulary",
}
SLOW = {"aiohttp", "alembic", "asyncio", "cryptography", "gidgethub", "rich", "sqlalchemy"}
SCRIPT = """
import gc, json, sys
from bot.cli import app
code = app.run(json.loads(sys.argv[1]))
print(json.dumps([code, sorted(sys.modules), gc.isenabled() and gc.get_freeze_count()]))
"""


def started(cwd, *arguments):
    """The exit code of a command, its modules, and how much the collector no longer looks at."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(arguments)],
        cwd=cwd,
        env=environment(HEADGATE_TOKEN="hgt_x", GITHUB_REPOSITORY="octo/widgets"),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    code, modules, frozen = json.loads(done.stdout.splitlines()[-1])
    return code, set(modules), frozen


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("--help",),
        ("queue", "create", "--help"),
        ("test", "--sha", "a" * 40, "--junit", "*.xml", "--", "true"),
    ],
    ids=" ".join,
)
def test_a_thin_command_imports_neither_the_service_nor_slow_libraries(tmp_path, arguments):
    code, modules, _ = started(tmp_path, *arguments)
    assert code == 0
    assert "bot.cli.app" in modules
    assert {each for each in modules if each.partition(".")[0] == "service"} <= VALUES
    assert not {each for each in modules if each.startswith("bot.")} & {
        "bot.demo",
        "bot.github",
        "bot.sandbox",
        "bot.settings",
        "bot.wiring",
    }
    assert not modules & SLOW


@pytest.mark.soak
def test_a_command_that_reads_the_database_imports_the_service(tmp_path):
    code, modules, _ = started(tmp_path, "migrate", "--check")
    assert code == 1
    assert {"sqlalchemy", "service.database.database"} <= modules


@pytest.mark.soak
def test_a_server_never_collects_what_it_has_imported(tmp_path):
    code, modules, frozen = started(tmp_path, "serve", "--log-format", "verse")
    assert code == Exit.START_REFUSED
    assert "bot.wiring" in modules
    assert frozen > 100_000


def test_the_limits_of_token_options_are_those_of_the_service():
    assert access.OVERLAP_HOURS == tokens.OVERLAP_HOURS
    assert access.EXPIRES_IN_DAYS_MAX == tokens.EXPIRES_IN_DAYS_MAX
