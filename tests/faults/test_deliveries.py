"""Webhooks that are lost, doubled, late or forged: the same pull requests are merged.

`make test` plays a few pull requests, `make soak ROWS=faults` fifty.
"""

import os
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.sandbox import deliver
from bot.sandbox.world import Attempt
from tests.harness import world as worlds
from tests.harness.world import World, WorldOptions, living

IS_LONG = os.environ.get("HEADGATE_FAULTS") == "long"
COUNT = 50 if IS_LONG else 3
FORGED_EVERY = 25 if IS_LONG else 2
"""Of the deliveries with a command."""
SPEED = 4.0 if IS_LONG else worlds.SPEED
"""Fifty keep the machine so busy that calls would wait for minutes of a fast clock."""
PAUSE_S = 7.0 if IS_LONG else 0.0
"""Between commands: a person may send ten a minute."""
QUEUE: dict[str, Any] = {"batch": True, "batching_min_size": 8, "batching_max_wait_time_minutes": 0}
SWEPT = {"period_comments_s": 20, "period_redelivery_s": 3600}
DISTURBED = (("duplicate", {"n": 1}), ("reorder", {"window": 6}), ("delay", {"s": 4}))


async def submitted(world: World, count: int) -> list[int]:
    """So many pull requests with green checks, all asked to merge by a comment."""
    numbers = [await world.open(files={f"{place}.txt": "x\n"}) for place in range(count)]
    await world.settle()
    for number in numbers:
        await world.comment("/merge", on=number)
        await world.rest(PAUSE_S)
    return numbers


@pytest.mark.jumping
@pytest.mark.fault(
    "no webhook arrives at all",
    holds="all are merged by sweeps",
    within="1 h",
)
async def test_without_any_webhook_all_pull_requests_are_merged_by_sweeps(tmp_path: Path) -> None:
    async with living(tmp_path, WorldOptions(settings=SWEPT, speed=SPEED)) as world:
        await world.make_queue(**QUEUE)
        await world.settle()
        await world.fault({}, "drop")
        numbers = await submitted(world, COUNT)

        async def are_merged() -> bool:
            is_recorded = len(await world.landed_trees()) == COUNT
            return is_recorded and sorted(await world.merged()) == numbers

        await world.until(are_merged, within_s=3600)


async def end_of_story(folder: Path, *, is_disturbed: bool) -> tuple[dict[int, str], str]:
    """Play one story; return the state of each pull request and the tree of `main`."""
    async with living(folder, WorldOptions(speed=SPEED)) as world, aiohttp.ClientSession() as http:
        await world.make_queue(**QUEUE)
        if is_disturbed:
            forge(world, http)
            for kind, values in DISTURBED:
                await world.fault({}, kind, **values)
        # First, because test branches take numbers too.
        held_back = await world.open(files={"draft.txt": "x\n"})
        await world.act("draft", number=held_back)
        numbers = await submitted(world, COUNT)
        await world.comment("/merge", on=held_back)
        await world.settle()
        await world.comment("/merge cancel", on=held_back)
        await world.settle()
        states = {number: await world.state(number) for number in (*numbers, held_back)}
        assert len(await world.landed_trees()) == COUNT
        git = world.repository.git
        return states, git.objects.a_commit(str(git.branch("main"))).tree


def forge(world: World, http: aiohttp.ClientSession) -> None:
    """Send a forged cancellation by a maintainer before every so many commands."""
    carry, commands = world.sandbox.world.courier, 0
    assert carry is not None

    async def courier(attempt: Attempt) -> None:
        nonlocal commands
        commands += b'"/merge"' in attempt.body
        if b'"/merge"' in attempt.body and commands % FORGED_EVERY == 0:
            headers = deliver.headers_of(world.sandbox.world, attempt, attempt.body)
            headers["X-GitHub-Delivery"] = f"forged-{commands}"
            body = attempt.body.replace(b'"/merge"', b'"/merge cancel"')
            url = f"{world.url}/webhooks/github"
            async with http.post(url, data=body, headers=headers) as answer:
                assert answer.status == 401
        await carry(attempt)

    world.sandbox.world.courier = courier


@pytest.mark.jumping
@pytest.mark.fault(
    "webhooks are doubled, reordered, late and forged",
    holds="the same end as without",
    within="20 min",
)
async def test_doubled_reordered_late_and_forged_deliveries_lead_to_the_same_end(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    clean = await end_of_story(tmp_path_factory.mktemp("clean"), is_disturbed=False)
    disturbed = await end_of_story(tmp_path_factory.mktemp("disturbed"), is_disturbed=True)
    assert disturbed == clean
    assert sorted(clean[0].values()) == ["CANCELLED", *["MERGED"] * COUNT]
