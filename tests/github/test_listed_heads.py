"""Pull requests listed by their head branch: others in the list are left alone.

The list is asked for by owner and branch. Repositories of one owner may be forks of each other
(https://docs.github.com/en/rest/pulls/pulls#create-a-pull-request, `head_repo`), and GitHub lists
all pull requests where it does not understand the head
(https://github.com/PyGithub/PyGithub/issues/1566).
"""

from dataclasses import replace

import pytest

from bot.github import chains, testbranches
from service.provider.stacks import StackMember
from service.vocabulary import PullRequestState, Sha
from tests.github.table import REPO, on_table
from tests.harness.values import ValuesProvider

HEAD, BELOW = Sha("b" * 40), Sha("c" * 40)
OWN, FORK = 1, 5
BRANCH = "headgate/merge/pr-3/r1"


@pytest.fixture
async def made():
    async with on_table() as (table, client):
        yield table, client


def listed(number, branch, repository=OWN, base="main", sha=BELOW):
    """A pull request as a list has it; `repository` None: its fork was deleted."""
    head = {"ref": branch, "sha": sha, "repo": None if repository is None else {"id": repository}}
    return {
        "number": number,
        "html_url": f"https://x/{number}",
        "head": head,
        "base": {"ref": base, "repo": {"id": OWN}},
    }


OTHERS = [
    listed(7, "topic"),
    listed(8, BRANCH, FORK),
    listed(9, BRANCH, None),
]


async def a_pull(base):
    """Pull request 4, onto this branch."""
    return replace(await ValuesProvider().pull_request(REPO, 4), base_branch=base, head_sha=HEAD)


async def test_only_the_draft_of_a_test_branch_is_closed_with_it(made):
    table, client = made
    table.says("GET /pulls", [*OTHERS, listed(3, BRANCH)])
    table.says("PATCH /pulls/3", {})
    await testbranches.discard(client, BRANCH)
    assert [call for call in table.calls if call.startswith("PATCH")] == ["PATCH /pulls/3"]


async def test_only_the_draft_of_a_test_branch_is_opened_again_with_it(made):
    table, client = made
    table.says("POST /git/refs", {}, status=201)
    table.says("GET /pulls", [], [*OTHERS, listed(3, BRANCH)])
    table.says("PATCH /pulls/3", {})
    await testbranches.restore(client, BRANCH, BELOW)
    assert [call for call in table.calls if call.startswith("PATCH")] == ["PATCH /pulls/3"]


async def test_a_branch_of_the_same_name_in_a_fork_of_the_owner_is_no_link_of_a_chain(made):
    table, client = made
    table.says("GET /pulls", [listed(8, "part", FORK)], [])
    assert await chains.find(client, await a_pull("part")) is None


async def test_a_chain_goes_on_beside_a_branch_of_the_same_name_in_a_fork(made):
    table, client = made
    table.says("GET /pulls", [listed(8, "part", FORK), listed(3, "part")], [])
    found = await chains.find(client, await a_pull("part"))
    assert found is not None
    assert found.members == (
        StackMember(3, BELOW, PullRequestState.OPEN),
        StackMember(4, HEAD, PullRequestState.OPEN),
    )
