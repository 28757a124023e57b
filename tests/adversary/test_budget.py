"""Attacks that use up what everybody shares: memory, time, the provider's calls."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from service.body_budget import UNPROVED_BYTES_MAX, BodyBudget
from service.errors import Overloaded
from tests.harness.processes import Service, Stage, stage

MIB = 1024 * 1024
CHUNK = b"x" * 65_536
WRONG = "sha256=" + "0" * 64
BODIES = 20
BODY_BYTES = 24 * MIB
RSS_GROWTH_MAX = 3 * UNPROVED_BYTES_MAX
"""The budget, and as much again for what the allocator keeps and aiohttp buffers."""


@pytest.fixture
async def on_stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path) as set_up:
        yield set_up


def headers(signature: str = WRONG, delivery: str = "attack") -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "X-GitHub-Event": "ping",
        "X-GitHub-Delivery": delivery,
        "X-Hub-Signature-256": signature,
    }


async def send(set_up: Stage, service: Service, size: int) -> int:
    """Send a body under a wrong signature; the status, 0 when the connection was cut."""

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(size // len(CHUNK)):
            yield CHUNK

    url = f"{service.url}/webhooks/github"
    try:
        async with set_up.http.post(url, data=chunks(), headers=headers()) as answer:
            return answer.status
    except aiohttp.ClientError:
        return 0


async def ping(set_up: Stage, service: Service, number: int) -> int:
    """Deliver a small signed body as GitHub would; the status."""
    body = json.dumps({"zen": "calm", "pad": "x" * 60_000}).encode()
    secret = set_up.environment["HEADGATE_GITHUB_WEBHOOK_SECRET"].encode()
    signature = "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()
    url = f"{service.url}/webhooks/github"
    given = headers(signature, f"ping-{number}")
    async with set_up.http.post(url, data=body, headers=given) as answer:
        return answer.status


def peak_bytes(service: Service) -> int:
    """The most memory that the process has held so far."""
    for line in Path(f"/proc/{service.process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the process does not say how much memory it holds")


@pytest.mark.first
async def test_unsigned_bodies_share_one_budget_of_memory(on_stage: Stage) -> None:
    """Hurts every repository served: large webhooks without a valid signature fill the memory."""
    async with on_stage.serving() as service:
        assert await ping(on_stage, service, 0) == 202
        before = peak_bytes(service)
        attack = [asyncio.create_task(send(on_stage, service, BODY_BYTES)) for _ in range(BODIES)]
        pings: list[int] = []
        overtaken = 0
        while not all(task.done() for task in attack):
            pings.append(await ping(on_stage, service, len(pings) + 1))
            async with on_stage.http.get(f"{service.url}/healthz") as answer:
                assert answer.status == 200
            overtaken += not all(task.done() for task in attack)
        assert {await task for task in attack} <= {0, 401, 408, 503}
        assert set(pings) == {202}, "a small signed delivery was refused"
        assert overtaken, "a small signed delivery waited for the large ones"
        assert peak_bytes(service) - before < RSS_GROWTH_MAX


def test_a_small_body_is_never_refused_because_of_large_ones() -> None:
    """Hurts every repository served: large bodies hold the whole budget, GitHub's get no room."""
    budget = BodyBudget(1_000)
    evicted: list[str] = []
    with (
        budget.share(lambda: evicted.append("large")) as large,
        budget.share(lambda: evicted.append("larger")) as larger,
        budget.share(lambda: evicted.append("small")) as small,
    ):
        large.take(300)
        larger.take(690)
        small.take(100)
        small.finish()
        assert evicted == ["larger"]
        with pytest.raises(Overloaded):
            larger.take(1)
        with pytest.raises(Overloaded):
            large.take(800)
        assert evicted == ["larger", "large"]
        assert budget.held == 100
    assert budget.held == 0


def test_a_slow_body_gives_way_to_a_quick_one_of_its_size() -> None:
    """Hurts every repository served: many half-sent bodies of GitHub's usual size never end."""
    budget = BodyBudget(1_000)
    evicted: list[int] = []
    with budget.share(lambda: evicted.append(1)) as slow:
        slow.take(400)
        with budget.share(lambda: evicted.append(2)) as other:
            other.take(400)
            with budget.share(lambda: evicted.append(3)) as quick:
                quick.take(390)
                quick.finish()
    assert evicted == [1]
