"""PostgreSQL freezes while people, programs and GitHub ask: each has an answer in time."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from service import time_limits
from service.clock import SystemClock
from tests.harness.asking import HOST, Asker, asker
from tests.harness.databases import Server
from tests.harness.world import REPO, World, WorldOptions, living

WITHIN_S = 2 * time_limits.ANSWER_S
"""GitHub waits no longer for the answer to a webhook."""

Asked = tuple[str, str, dict[str, Any]]


def requests_of(world: World, asks: Asker, number: int) -> Iterator[Asked]:
    """Name, method and the rest of requests of each kind."""
    owner, name = REPO.split("/")
    place = {"host": HOST, "owner": owner, "name": name, "targetBranch": "main"}
    token = {"x-api-token": asks.secret}
    signed_in = {"Authorization": aiohttp.encode_basic_auth("x", asks.secret)}
    body = {"repo": {"host": HOST, "owner": owner, "name": name}, "targetBranch": "main"}
    about = {**body, "pr": {"number": number}}
    for path, sent in (
        ("getQueue", body),
        ("getQueue", {**body, "sinceVersion": "1", "waitFor": 20}),
        ("explainPullRequest", about),
        ("submitPullRequest", about),
        ("runDoctor", body),
    ):
        yield f"/v1/{path}", "POST", {"json": sent, "headers": token}
    yield "/v1/streamQueueEvents", "GET", {"params": place, "headers": token}
    yield "/v1/status", "GET", {}
    yield "/readyz", "GET", {}
    yield "/healthz", "GET", {}
    for page in ("/", f"/{REPO}/main"):
        yield page, "GET", {"headers": signed_in}
    stream = {**signed_in, "Accept": "text/event-stream"}
    yield f"/{REPO}/main", "GET", {"headers": stream}
    hook = json.dumps({"ref": "refs/heads/main", "after": "0" * 40, "zen": "x"}).encode()
    secret = world.sandbox.webhook_secret.encode()
    signature = "sha256=" + hmac.new(secret, hook, hashlib.sha256).hexdigest()
    for event in ("push", "pull_request", "ping", "check_run"):
        headers = {
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": f"frozen-{event}",
            "X-Hub-Signature-256": signature,
            "Content-Type": "application/json",
        }
        yield "/webhooks/github", "POST", {"data": hook, "headers": headers}


@pytest.mark.fault(
    "PostgreSQL freezes (SIGSTOP) while everybody asks",
    holds="each request of people, programs and GitHub is answered",
    within="10 s",
)
async def test_a_frozen_server_lets_every_request_be_answered(
    tmp_path: Path, outage_url: str, own_postgres: Server
) -> None:
    async with living(tmp_path, WorldOptions(database_url=outage_url)) as world:
        number = await world.open()
        asks = await asker(world)
        clock, took = SystemClock(), []

        async def ask(http: aiohttp.ClientSession, path: str, method: str, more: Any) -> None:
            began_s = clock.monotonic_s()
            async with http.request(method, path, allow_redirects=False, **more) as answer:
                await answer.content.read(1)
                took.append((clock.monotonic_s() - began_s, answer.status, method, path))

        async with aiohttp.ClientSession(world.url) as http:
            every = list(requests_of(world, asks, number))
            with own_postgres.hung():
                await asyncio.gather(*(ask(http, path, how, more) for path, how, more in every))
        assert len(took) == len(every)
        assert [one for one in took if one[0] > WITHIN_S] == []
        assert {status for _, status, *_ in took} <= {200, 202, 503}
