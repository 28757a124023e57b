"""The events of a queue as server-sent events (docs/design/http.md 12)."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from service.http import openapi, waiting
from service.mergequeue.api import events
from service.process.api import routes


@dataclass
class Stream:
    """A stream that a client reads; `begins_at` is the id that it begins with."""

    response: aiohttp.ClientResponse
    begins_at: str = ""

    async def message(self) -> dict[str, str]:
        """The fields of the next message."""
        fields: dict[str, str] = {}
        while line := (await self.response.content.readline()).decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            fields[name] = value
        return fields

    async def event(self) -> tuple[str, Any]:
        """Id and data of the next message that is an event."""
        while "data" not in (fields := await self.message()):
            assert fields, "the stream has ended"
        data = json.loads(fields["data"])
        assert fields["event"] == data["event"]
        return fields["id"], data


@asynccontextmanager
async def streaming(queue, token=None, last=None) -> AsyncIterator[Stream]:
    it = queue.client.instance
    place = {"host": it.host, "owner": it.owner, "name": it.repo, "targetBranch": queue.branch}
    headers = {"x-api-token": token or it.read_token}
    if last is not None:
        headers["Last-Event-ID"] = last
    url = f"{it.url}/v1/streamQueueEvents"
    async with aiohttp.request("GET", url, params=place, headers=headers) as response:
        assert response.status == 200, await response.text()
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.headers["Cache-Control"] == "no-store"
        stream = Stream(response)
        first = await stream.message()
        assert first.keys() == {"retry", "id"}
        stream.begins_at = first["id"]
        yield stream


@pytest.mark.parametrize(
    ("sent", "headers", "field"),
    [({"cursor": "x"}, {}, "cursor"), ({}, {"Last-Event-ID": "x"}, "Last-Event-ID")],
)
async def test_a_wrong_place_is_refused_by_the_name_of_what_held_it(queue, sent, headers, field):
    it = queue.client.instance
    place = {"host": it.host, "owner": it.owner, "name": it.repo, "targetBranch": queue.branch}
    url = f"{it.url}/v1/streamQueueEvents"
    headers = {"x-api-token": it.read_token, **headers}
    async with aiohttp.request("GET", url, params=place | sent, headers=headers) as response:
        problem = await response.json(content_type=None)
    assert (response.status, problem["code"]) == (400, "invalid_page_token")
    assert problem["detail"].startswith(f"`{field}` is not a valid page token")


async def test_an_event_arrives_as_it_happens_with_its_cursor(client, queue):
    number = await queue.submitted()
    async with streaming(queue) as stream:
        await client.done("cancelPullRequest", queue.about(number))
        ident, event = await stream.event()
        while event["event"] != "EntryMoved":
            ident, event = await stream.event()
    assert (event["prNumber"], event["to"]) == (number, "CANCELLED")
    document = json.loads(openapi.encoded(routes.CONTRACT))
    described = document["paths"]["/v1/streamQueueEvents"]["get"]["responses"]["200"]
    example = described["content"]["text/event-stream"]["example"]
    fields = dict(line.split(": ", 1) for line in example.splitlines() if line)
    assert fields.keys() == {"id", "event", "data"}
    assert json.loads(fields["data"]).keys() <= event.keys()
    behind = await client.done("listQueueEvents", queue.named(cursor=ident))
    assert event not in behind["events"]


async def test_a_client_that_comes_again_misses_nothing(client, queue):
    await queue.submitted()
    listed = await client.done("listQueueEvents", queue.named(since="2020-01-01T00:00:00Z", take=1))
    async with streaming(queue, last=listed["cursor"]) as stream:
        first = await stream.event()
        _, second = await stream.event()
    async with streaming(queue, last=first[0]) as stream:
        _, again = await stream.event()
    assert again == second


async def test_a_client_that_saw_no_event_misses_none_either(client, queue):
    number = await queue.submitted()
    async with streaming(queue) as stream:
        seen = stream.begins_at
    await client.done("cancelPullRequest", queue.about(number))
    async with streaming(queue, last=seen) as stream:
        _, event = await stream.event()
        while event["event"] != "EntryMoved":
            _, event = await stream.event()
    assert (event["prNumber"], event["to"]) == (number, "CANCELLED")


async def test_the_place_of_a_quiet_stream_does_not_grow_old(queue, monkeypatch):
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.0)
    async with streaming(queue) as stream:
        later = await stream.message()
    assert later["id"] != stream.begins_at
    async with streaming(queue, last=later["id"]):
        pass


async def test_a_token_that_ends_ends_its_stream(client, queue, monkeypatch):
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.0)
    made = await client.done("tokens/create", {"name": "short", "role": "read"})
    async with streaming(queue, made["token"]) as stream:
        assert (await stream.message()).keys() == {"id"}
        await client.done("tokens/revoke", {"id": made["id"]})
        await asyncio.wait_for(stream.response.read(), 60)


async def test_a_token_that_has_ended_gets_no_event(client, queue):
    number = await queue.submitted()
    made = await client.done("tokens/create", {"name": "ended", "role": "read"})
    async with streaming(queue, made["token"]) as stream:
        await client.done("tokens/revoke", {"id": made["id"]})
        await client.done("cancelPullRequest", queue.about(number))
        assert b"EntryMoved" not in await asyncio.wait_for(stream.response.read(), 60)


async def test_the_place_of_a_client_that_has_left_is_free_before_the_next_heartbeat(
    queue, monkeypatch
):
    monkeypatch.setattr(waiting, "WAITING_A_TOKEN", 1)
    monkeypatch.setattr(events, "HEARTBEAT_S", 1e9)
    monkeypatch.setattr(events, "STREAM_S", 1e9)
    async with streaming(queue):
        with pytest.raises(AssertionError, match="Too many requests wait"):
            await streaming(queue).__aenter__()
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(AssertionError):
                async with streaming(queue):
                    return


async def test_a_stream_ends_after_its_time(queue, monkeypatch):
    monkeypatch.setattr(events, "STREAM_S", 0.0)
    async with streaming(queue) as stream:
        assert await stream.response.read() == b""


async def test_a_stream_ends_with_the_deletion_of_its_queue(client, queue):
    async with streaming(queue) as stream:
        await client.done("deleteQueue", queue.named())
        _, event = await stream.event()
        assert event["event"] == "QueueDeleted"
        assert await stream.message() == {}
