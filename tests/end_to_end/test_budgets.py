"""One agent may use so much of a queue and no more, and learns when it may again."""

from datetime import datetime, timedelta

import aiohttp
import pytest

from service.accounts import tokens
from service.accounts.tokens import TokenRequest
from service.vocabulary import SYSTEM, Role
from tests.harness import gates
from tests.harness.asking import HOST, Asker, asker
from tests.harness.world import REPO, World, WorldOptions


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI)


async def an_agent(world: World, *, open_entries: int = 0, ci_minutes: int = 0) -> Asker:
    """The holder of a token of role `queue` with these limits."""
    await world.settle()
    wish = TokenRequest(
        *(HOST, REPO.split("/")[0], "agent", Role.QUEUE),
        open_entries=open_entries,
        ci_minutes=ci_minutes,
    )
    return Asker(world, (await tokens.create_token(world.runtime, wish, SYSTEM)).secret)


async def opened(world: World, count: int) -> list[int]:
    """So many pull requests."""
    numbers = [await world.open() for _ in range(count)]
    await world.settle()
    return numbers


async def test_an_agent_waits_until_one_of_its_own_has_left(world: World) -> None:
    await world.make_queue()
    agent = await an_agent(world, open_entries=2)
    first, second, third = await opened(world, 3)
    for number in (first, second):
        await agent.done("submitPullRequest", number)
    status, answer = await agent.post("submitPullRequest", third)
    assert (status, answer["code"], answer["budget"]) == (429, "over_budget", "open_entries")
    assert (answer["used"], answer["limit"], answer["of"]) == (2, 2, "token")
    assert "agent has 2 of 2 PRs in all queues" in answer["detail"]
    # A person submits it beside the agent.
    await gates.ends(world, first)
    await world.settle()
    assert (await agent.done("submitPullRequest", third))["result"] == "created"


async def test_people_learn_the_limit_of_a_queue_by_a_comment(world: World) -> None:
    await world.make_queue(open_entries_per_submitter=1)
    first, second = await opened(world, 2)
    for number in (first, second):
        await world.comment("/merge", on=number)
        await world.settle()
    assert list((await world.value()).entries) == [first]
    reply = world.repository.issues[second].comments[-1].body
    assert "bob has 1 of 1 PRs in the queue for `main`" in reply
    await world.comment("/merge", on=second, by="alice")
    await world.settle()
    assert second in (await world.value()).entries


async def test_an_agent_that_used_up_its_minutes_learns_when_the_next_day_begins(
    world: World,
) -> None:
    await world.make_queue()
    agent = await an_agent(world, ci_minutes=5)
    first, second = await opened(world, 2)
    await agent.done("submitPullRequest", first)
    await gates.under_test(world, first)
    await world.rest(6 * 60)
    await gates.ends(world, first)
    await world.settle()
    headers = {"x-api-token": agent.secret}
    owner, name = REPO.split("/")
    body = {
        "repo": {"host": HOST, "owner": owner, "name": name},
        "targetBranch": "main",
        "pr": {"number": second},
    }
    now = world.clock.now()
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{world.url}/v1/submitPullRequest", json=body, headers=headers) as answer,
    ):
        said = await answer.json()
        waits = timedelta(seconds=int(answer.headers["Retry-After"]))
    assert (answer.status, said["budget"], said["limit"]) == (429, "ci_minutes", 5)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    assert datetime.fromisoformat(said["until"]) == midnight
    assert abs(now + waits - midnight) < timedelta(minutes=2)


async def test_minutes_that_are_used_up_restart_no_tests(world: World) -> None:
    await world.make_queue(open_entries_per_submitter=1)
    agent = await an_agent(world, ci_minutes=5)
    (number,) = await opened(world, 1)
    await agent.done("submitPullRequest", number)
    await gates.under_test(world, number)
    assert (await agent.done("restartTestsOnPullRequest", number))["result"] == "restarted"
    await gates.under_test(world, number)
    await world.rest(6 * 60)
    status, answer = await agent.post("restartTestsOnPullRequest", number)
    assert (status, answer["code"], answer["budget"]) == (429, "over_budget", "ci_minutes")
    await world.comment("/merge retry", on=number)
    await world.settle()
    assert "CI minutes" in world.repository.issues[number].comments[-1].body
    assert len((await world.value()).runs) == 1
    await gates.ends(world, number)
    await world.settle()


async def test_a_limit_is_made_by_the_command_line_and_told_in_one_sentence(world: World) -> None:
    admin = await asker(world)
    await world.make_queue()
    agent = await an_agent(world, open_entries=1)
    shown = await admin.done("tokens/list", repo=None, targetBranch=None)
    limits = {each["name"]: each["open_entries"] for each in shown["tokens"]}
    assert limits == {"story": 0, "agent": 1}
    first, second = await opened(world, 2)
    assert "created" not in await agent.headgate("submit", str(first))
    with pytest.raises(AssertionError) as refused:
        await agent.headgate("land", str(second), "--no-wait")
    assert "agent has 1 of 1 PRs in all queues" in str(refused.value)
