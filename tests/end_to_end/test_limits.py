"""The whole story under GitHub's limits: calls are paced, all pull requests land, all are told."""

import re
from datetime import datetime, timedelta
from itertools import pairwise

import aiohttp
import pytest

from bot.sandbox.acts import seeds
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions

PULL_REQUESTS = 4
STAMP_S = 1  # the log of calls has whole seconds


@pytest.fixture
def world_options() -> WorldOptions:
    """Limits on, on both sides."""
    return WorldOptions(has_limits=True, settings={"build_method": "git"})


@pytest.mark.fault(
    "the limits of github.com for content",
    holds="all land and are told, none is refused",
    within="20 min",
)
async def test_all_land_and_are_told_within_github_s_limits(world: World) -> None:
    await world.make_queue()
    numbers = [await world.open() for _ in range(PULL_REQUESTS)]
    await world.settle()
    for number in numbers:
        await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == numbers
    for number in numbers:
        assert "Merged" in world.comment_on(number)
        assert world.check_on(number).endswith("(success)")
        assert await world.reactions(number) == ["+1"]
    calls = [one for one in world.sandbox.world.calls if one["by"] == "headgate[bot]"]
    assert calls
    assert not [one for one in calls if one["status"] in (403, 429)]
    writes = [one for one in calls if one["method"] in ("POST", "PATCH", "PUT", "DELETE")]
    spaced = [one["at"] for one in writes if not _skips_the_spacing(one)]
    assert max(spaced.count(at) for at in spaced) <= 1 + STAMP_S
    assert all(one <= other for one, other in pairwise(spaced))


async def test_the_answer_about_limits_agrees_with_github_s_own_count(world: World) -> None:
    asking = await asker(world)
    await world.make_queue()
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.settle()
    answer = await asking.done("getProviderLimits", targetBranch=None)
    content = len(world.sandbox.world.content)
    assert content == 3  # the status comment, the draft pull request, the merge
    assert (answer["landed"], answer["calls"]["content"]) == (1, content)
    assert answer["perLandedPullRequest"]["content"] == content
    asked = [one for one in world.sandbox.world.calls if one["path"] == "/api/graphql"]
    assert (answer["calls"]["push"], answer["calls"]["query"]) == (1, len(asked))
    hour = next(one for one in answer["limits"] if one["name"] == "content_hour")
    assert (hour["used"], hour["left"]) == (content, hour["max"] - content)
    assert answer["pressure"] == "none"


@pytest.mark.parametrize(
    ("of_others", "check_runs_written"), [pytest.param(3600, 4, marks=pytest.mark.soak), (4300, 1)]
)
async def test_near_the_limit_only_the_end_is_told_in_full(
    world: World, of_others: int, check_runs_written: int
) -> None:
    await world.make_queue()
    first, number = await world.open(), await world.open()
    await world.settle()
    await world.comment("/merge", on=first)
    await world.settle()
    seeds.set_knobs(world.sandbox.world, {"calls_of_others": of_others})
    asking = await asker(world)
    await asking.done("getProviderLimits", targetBranch=None)
    before = len(world.sandbox.world.calls)
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [first, number]
    assert "Merged" in world.comment_on(number)
    assert world.check_on(number).startswith("Merged into main")
    assert await world.reactions(number) == []
    calls = list(world.sandbox.world.calls)[before:]
    writes = [f"{call['method']} {call['path']}" for call in calls if call["status"] < 300]
    assert sum("PATCH" in one and "/comments/" in one for one in writes) == 0
    assert sum("/check-runs" in one and "GET" not in one for one in writes) <= check_runs_written


@pytest.mark.fault(
    "a limit refuses a test branch",
    holds="it is built at the next slot",
    within="20 min",
)
async def test_a_throttled_build_holds_the_queue_until_the_next_slot(world: World) -> None:
    asking = await asker(world)
    await world.make_queue()
    number = await world.open()
    await world.settle()
    drafts = {"method": "POST", "path": "/repos/octo/widgets/pulls", "times": 1}
    await world.fault(drafts, "secondary_limit", retry_after=180)
    await world.comment("/merge", on=number)

    async def is_held() -> bool:
        return bool((await world.value()).holds)

    await world.until(is_held)
    (hold,) = (await asking.done("getQueue"))["holds"]
    assert (hold["reason"], hold["scope"]) == ("provider_limit", "START")
    slot = datetime.fromisoformat(hold["until"])
    assert timedelta(minutes=1) < slot - world.clock.now() <= timedelta(minutes=3)
    shown = await asking.headgate("queue", "show")
    assert f"until {slot:%Y-%m-%d %H:%M}" in shown
    assert hold["text"] in shown
    explained = await asking.done("explainPullRequest", number)
    built = next(one for one in explained["conditions"] if one["code"] == "branch_built")
    assert not built["met"]
    assert f"{slot:%H:%M} UTC" in built["text"]
    assert re.search(r'headgate_queue_held{.*reason="provider_limit"} 1', await _metrics(asking))

    async def are_merged() -> bool:
        return await world.merged() == [number]

    await world.until(are_merged)
    assert world.clock.now() >= slot
    await world.settle()
    assert (await asking.done("getQueue"))["holds"] == []
    assert "Merged" in world.comment_on(number)


async def _metrics(asking: Asker) -> str:
    url = f"{asking.world.url}/v1/getMergeQueueMetrics"
    headers = {"x-api-token": asking.secret}
    async with aiohttp.ClientSession(headers=headers) as http, http.get(url) as answer:
        return await answer.text()


def _skips_the_spacing(call: dict[str, str]) -> bool:
    """A landing goes first, and a GraphQL query is no write."""
    return call["path"].endswith(("/merge", "/graphql", "/access_tokens"))
