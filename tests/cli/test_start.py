"""A thin command imports what it needs: the start of `headgate` is paid by every CI job."""

import json
import subprocess
import sys

import pytest

from bot.cli import access
from service.accounts import tokens
from tests.cli.processes import environment

# Plain values, which import nothing themselves.
VALUES = {
    "service",
    "service.accounts",
    "service.accounts.tenants",
    "service.errors",
    "service.testhealth",
    "service.testhealth.reports",
    "service.testhealth.reports.results",
    "service.vocabulary",
}
SLOW = {"aiohttp", "alembic", "asyncio", "cryptography", "gidgethub", "rich", "sqlalchemy"}
SCRIPT = """
import json, sys
from bot.cli import app
code = app.run(json.loads(sys.argv[1]))
print(json.dumps([code, sorted(sys.modules)]))
"""


def imported(cwd, *arguments):
    """The exit code of a command, and the modules that it has imported."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(arguments)],
        cwd=cwd,
        env=environment(HEADGATE_TOKEN="hgt_x", GITHUB_REPOSITORY="octo/widgets"),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    code, modules = json.loads(done.stdout.splitlines()[-1])
    return code, set(modules)


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
    code, modules = imported(tmp_path, *arguments)
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
    code, modules = imported(tmp_path, "migrate", "--check")
    assert code == 1
    assert {"sqlalchemy", "service.database.database"} <= modules


def test_the_limits_of_token_options_are_those_of_the_service():
    assert access.OVERLAP_HOURS == tokens.OVERLAP_HOURS
    assert access.EXPIRES_IN_DAYS_MAX == tokens.EXPIRES_IN_DAYS_MAX
