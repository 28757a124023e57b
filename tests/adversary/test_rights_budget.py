"""Attacks by which callers without a token would use up what everybody shares."""

import asyncio

import aiohttp
import pytest

from service.mergequeue.engine.config import Mode
from tests.adversary.judge import landed_on
from tests.harness.world import REPO, World, WorldOptions

SHARE_OF_A_REPOSITORY = 100
"""2 % of 5,000 calls an hour."""


@pytest.fixture
def world_options() -> WorldOptions:
    """A service behind a proxy on this machine, so that one test may have many addresses."""
    return WorldOptions(settings={"trusted_proxies": "127.0.0.0/8"})


async def knock(
    world: World, number: int, head: str, run: int, address: str
) -> aiohttp.ClientResponse:
    """An upload of targets by an invented CI run, from an address of its own."""
    owner, name = REPO.split("/")
    body = {
        "repo": {"host": "github.localhost", "owner": owner, "name": name},
        "targetBranch": "main",
        "pr": {"number": number, "sha": head},
        "impactedTargets": [],
    }
    headers = {"x-forked-workflow-run-id": str(run), "X-Forwarded-For": address}
    url = f"{world.url}/v1/setImpactedTargets"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json=body, headers=headers) as answer,
    ):
        await answer.read()
        return answer


def asked_about_runs(world: World) -> int:
    """How often the service has asked GitHub for a CI run."""
    return sum("/actions/runs/" in call["path"] for call in world.sandbox.world.calls)


async def test_invented_runs_from_everywhere_do_not_use_up_the_rate_limit(world: World) -> None:
    """Hurts everybody with a pull request: without calls to GitHub every queue stands still."""
    await world.make_queue(mode=Mode.PARALLEL)
    fork = await world.open(by="dave", fork=True)
    await world.settle()
    pull = world.repository.issues[fork].pull
    assert pull is not None
    before = asked_about_runs(world)
    found: list[int] = []
    for start in range(0, 300, 30):
        many = [
            knock(world, fork, pull.head_sha, 90_000 + each, f"203.0.{each // 200}.{each % 200}")
            for each in range(start, start + 30)
        ]
        found += [answer.status for answer in await asyncio.gather(*many)]
    assert asked_about_runs(world) - before <= SHARE_OF_A_REPOSITORY
    assert found.count(429) >= 300 - SHARE_OF_A_REPOSITORY
    last = await knock(world, fork, pull.head_sha, 99_999, "198.51.100.7")
    assert (last.status, int(last.headers["Retry-After"]) > 60) == (429, True)
    member = await world.open()
    await world.settle()
    await world.comment("/merge", on=member)
    await world.settle()
    assert await world.state(member) in ("NOT_READY", "PENDING", "TESTING", "MERGED")
    assert await world.reactions(member) != ["-1"]


async def test_what_is_known_here_costs_no_call(world: World) -> None:
    """Hurts everybody with a pull request: free requests would each cost a call to GitHub."""
    await world.make_queue(mode=Mode.PARALLEL)
    member, fork = await world.open(), await world.open(by="dave", fork=True)
    await world.settle()
    await world.comment("/merge", on=member)
    await world.settle()
    heads = {}
    for number in (member, fork):
        pull = world.repository.issues[number].pull
        assert pull is not None
        heads[number] = pull.head_sha
    before = asked_about_runs(world)
    answers = [
        await knock(world, member, heads[member], 1, "203.0.113.1"),
        await knock(world, fork, "a" * 40, 2, "203.0.113.2"),
    ]
    assert [answer.status for answer in answers] == [401, 401]
    assert asked_about_runs(world) == before
    again = [await knock(world, fork, heads[fork], 3, "203.0.113.3") for _ in range(5)]
    assert {answer.status for answer in again} == {401}
    assert asked_about_runs(world) == before + 1
    assert await landed_on(world) == []
