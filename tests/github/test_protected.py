"""Whether a branch is one that outlives a pull request: rulesets and classic protection say so."""

import pytest

from bot.github import protection
from tests.github.table import on_table

RULES = "GET /rules/branches/main"
CLASSIC = "GET /branches/main/protection"
BRANCH = "GET /branches/main"
NO_RIGHT = "Resource not accessible by integration"
NO_PLAN = "Upgrade to GitHub Pro or make this repository public to enable this feature."


@pytest.fixture
async def made():
    """A branch that only has rules which any branch may have, and a client to its repository."""
    async with on_table() as (table, client):
        table.says(RULES, [{"type": "required_signatures", "ruleset_id": 5}])
        yield table, client


@pytest.mark.parametrize(
    "kind", ["deletion", "update", "pull_request", "required_status_checks", "merge_queue"]
)
async def test_a_rule_for_lasting_branches_protects_a_branch(made, kind):
    table, client = made
    table.says(RULES, [{"type": kind, "ruleset_id": 5}])
    assert await protection.is_protected(client, "main")


async def test_classic_protection_protects_a_branch(made):
    table, client = made
    table.says(CLASSIC, {})
    assert await protection.is_protected(client, "main")


@pytest.mark.parametrize(
    ("status", "message", "branch", "is_protected"),
    [
        (404, "Branch not protected", {"protected": True}, False),
        (403, NO_PLAN, {"protected": True}, False),
        (403, NO_RIGHT, {"protected": True}, True),
        (403, NO_RIGHT, {"protected": False}, False),
        (403, NO_RIGHT, {}, True),
    ],
)
async def test_a_branch_is_asked_itself_if_its_protection_cannot_be_read(
    made, status, message, branch, is_protected
):
    table, client = made
    table.denies(CLASSIC, status, message)
    table.says(BRANCH, branch)
    assert await protection.is_protected(client, "main") is is_protected
