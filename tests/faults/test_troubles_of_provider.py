"""GitHub in trouble: each place where people look says the same sentence, and then no more."""

import html
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from service import troubles
from service.troubles import TroubleName
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions, living

WITHIN_S = 300.0
"""World seconds."""


async def places(world: World, asks: Asker, number: int) -> dict[str, str]:
    """Return what is said of trouble, by place."""
    explained = await asks.done("explainPullRequest", number)
    doctor = await asks.done("runDoctor")
    answers: dict[str, Any] = {"explain": explained, "queue": await asks.done("getQueue")}
    async with aiohttp.ClientSession(world.url) as http:
        for path in ("/v1/status", "/readyz"):
            async with http.get(path) as answer:
                assert answer.status == 200
                answers[path] = await answer.json()
        signed_in = {"Authorization": aiohttp.encode_basic_auth("x", asks.secret)}
        async with http.get("/octo/widgets/main", headers=signed_in) as answer:
            assert answer.status == 200
            page = html.unescape(await answer.text())
    said = {
        name: " ".join(one["text"] for one in answer["troubles"])
        for name, answer in answers.items()
    }
    findings = (one for one in doctor["findings"] if one["audit"] == "service")
    found = (f"{one['found']} {one['mend']}" for one in findings)
    return {**said, "summary": explained["summary"], "page": page, "doctor": " ".join(found)}


FAULTS = [
    pytest.param(
        "secondary_limit",
        {"retry_after": 15},
        TroubleName.SECONDARY_RATE_LIMIT,
        marks=pytest.mark.fault(
            "GitHub's secondary rate limit",
            holds="explain, queue, status, readiness, page and doctor say until when it asks to "
            "wait; after it the pull request lands",
            within="300 s of the sandbox's clock",
        ),
    ),
    pytest.param(
        "fail_before",
        {"status": 503},
        TroubleName.PROVIDER_AWAY,
        marks=pytest.mark.fault(
            "GitHub answers 503",
            holds="explain, queue, status, readiness, page and doctor say that it is away; after "
            "it the pull request lands",
            within="300 s of the sandbox's clock",
        ),
    ),
    pytest.param(
        "reset_before",
        {},
        TroubleName.PROVIDER_AWAY,
        marks=pytest.mark.fault(
            "GitHub cuts every connection",
            holds="explain, queue, status, readiness, page and doctor say that it is away; after "
            "it the pull request lands",
            within="300 s of the sandbox's clock",
        ),
    ),
]


@pytest.mark.parametrize(("kind", "more", "name"), FAULTS)
async def test_each_place_names_the_same_trouble_until_github_answers(
    kind: str, more: dict[str, Any], name: TroubleName, tmp_path: Path
) -> None:
    options = WorldOptions(settings={"dashboard_auth": "token"})
    async with living(tmp_path, options) as world:
        asks = await asker(world)
        await world.make_queue(concurrency=2)
        number = await world.open()
        await world.settle()
        await world.comment("/merge", on=number)
        await world.until(lambda: is_submitted(world, number), WITHIN_S)
        await world.fault({"path": "*"}, kind, **more)

        async def is_named() -> bool:
            return [one.name for one in world.runtime.troubles.all()] == [name]

        await world.until(is_named, WITHIN_S)
        (trouble,) = world.runtime.troubles.all()
        said = await places(world, asks, number)
        sentence = troubles.statement(trouble, world.clock.now()).partition(",")[0]
        for place, text in said.items():
            assert sentence in text, place
        await world.sandbox.control.clear_faults({})
        await world.until(lambda: is_merged(world, number), WITHIN_S)
        await world.until(lambda: is_calm(world), WITHIN_S)
        after = await places(world, asks, number)
        assert [place for place, text in after.items() if sentence in text] == []


async def is_submitted(world: World, number: int) -> bool:
    """Return whether the queue has the pull request."""
    return number in (await world.value()).entries


async def is_calm(world: World) -> bool:
    """Return whether the process has no trouble."""
    return world.runtime.troubles.all() == ()


async def is_merged(world: World, number: int) -> bool:
    """Return whether the sandbox shows it as merged."""
    return number in await world.merged()
