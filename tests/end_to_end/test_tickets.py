"""The issue of a test, from reports that CI left to the tracker of the sandbox and back."""

from typing import Any

import pytest
from sqlalchemy import select

from bot.sandbox.world import Issue
from service.accounts.store import access
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.errors import Invalid
from service.testhealth.operations import flags, settings
from service.testhealth.operations.flags import FlagRequest
from service.testhealth.store import quarantine
from service.testhealth.store.cases import cases
from service.vocabulary import SYSTEM, Flag, RepoRef
from tests.harness.world import REPO, World, WorldOptions

NAME = "adds <!-- @octo/web #1 -->"
CI = f"""\
triggers: {{push: [main], pull_request: true}}
checks:
  - name: unit
    seconds: 3
    reports:
      tests:
        - {{name: "{NAME}", rules: [{{exists: [broken.txt], conclusion: failure}}]}}
"""


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that leaves reports, and an App that may write issues."""
    return WorldOptions(ci=CI, permissions={"issues": "write"}, required=())


async def repository(world: World) -> RepositoryRecord:
    """The repository, as the service knows it."""
    ref = RepoRef("github.localhost", *REPO.split("/"))
    found = await world.runtime.store.read(access.repository_by_ref, None, ref)
    assert found is not None
    return found


async def switch(world: World) -> None:
    """The repository wants issues."""
    changes = {"ticket_issues": True}
    await settings.update(world.runtime, await repository(world), changes, SYSTEM)


def _only(session: Tx) -> Any:
    return session.execute(select(cases.c.id, cases.c.no, cases.c.name)).one()


async def flag(world: World, flag: Flag) -> None:
    """Somebody says how the only test is."""
    test = await world.runtime.store.read(_only)
    request = FlagRequest(test.id, flag, None if flag is Flag.NONE else "it is")
    await flags.put(world.runtime, await repository(world), request, SYSTEM)


def issues(world: World) -> list[Issue]:
    """Issues that are no pull requests."""
    return [each for each in world.repository.issues.values() if each.pull is None]


async def opened(world: World) -> Issue:
    """The test fails for three pull requests and is called flaky: its issue."""
    await world.settle()
    await switch(world)
    for _ in range(3):
        await world.open(files={"broken.txt": f"{world.sandbox.world.new_id()}\n"})
    await world.settle()
    await flag(world, Flag.FLAKY)

    async def is_linked() -> bool:
        return bool(issues(world)) and await link(world) is not None

    await world.until(is_linked)
    await world.settle()
    (issue,) = issues(world)
    return issue


async def link(world: World) -> str | None:
    """The ticket of the only test."""
    test = await world.runtime.store.read(_only)
    here = (await repository(world)).id
    return await world.runtime.store.read(quarantine.ticket_of, here, test.no)


async def test_a_flaky_test_gets_one_issue_that_ends_with_it(world: World) -> None:
    issue = await opened(world)
    assert issue.title == f"Flaky test: {NAME}"
    assert (issue.author.login, issue.open, issue.comments) == ("headgate[bot]", True, [])
    assert "| Pull requests hit in 7 days | 3 |" in (issue.body or "")
    assert f"`{NAME}`" in (issue.body or "")
    address = f"{world.sandbox.world.web}/{REPO}/issues/{issue.number}"
    assert await link(world) == address
    await flag(world, Flag.BROKEN)
    await world.settle()
    assert issue.title == f"Broken test: {NAME}"
    await flag(world, Flag.NONE)
    await world.settle()
    assert not issue.open
    said = [each.body.partition("-->\n")[2].partition(". ")[0] for each in issue.comments]
    assert said == ["This test is **broken** now", "This test is **healthy** again"]
    assert len(issues(world)) == 1


async def test_what_people_write_there_is_no_command(world: World) -> None:
    issue = await opened(world)
    await world.comment("/merge", on=issue.number)
    await world.settle()
    assert [each.author.login for each in issue.comments] == ["bob"]
    assert issue.comments[0].reactions == []


async def test_one_that_a_person_closed_stays_closed_until_the_status_changes(
    world: World,
) -> None:
    issue = await opened(world)
    await world.act("close", number=issue.number)
    await world.rest(120)
    assert not issue.open
    await flag(world, Flag.BROKEN)
    await world.settle()
    assert not issue.open
    (comment,) = issue.comments
    assert "stays closed for now" in comment.body


async def test_an_owner_who_grants_the_permission_later_is_heard_at_once(world: World) -> None:
    await world.settle()
    await world.act("permissions", by="alice", permissions={"metadata": "read", "issues": "read"})
    with pytest.raises(Invalid) as refused:
        await switch(world)
    assert "`issues: write`" in refused.value.detail
    await world.act("permissions", by="alice", permissions={"metadata": "read", "issues": "write"})
    await switch(world)
