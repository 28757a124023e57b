"""A request with an `Idempotency-Key` is carried out once (docs/design/http.md 5)."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from service.accounts.store.tables_repeats import IdempotencyRow
from service.errors import Conflict, DatabaseUnavailable, Invalid, NotFound, Overloaded
from service.http import connections
from service.http.models.common import Request
from service.http.route import Posted
from service.process.api import app
from service.vocabulary import Role
from tests.api.wire import Reply, Wire, answer, connected, served, serving

KEY = "Idempotency-Key: one"
SECRET = "hgt_of_the_answer"


class Deeds:
    """An endpoint that makes a new thing each time, or refuses as it is told."""

    def __init__(self) -> None:
        self.done = 0
        self.refusal: Exception | None = None
        self.begun = asyncio.Event()
        self.going_on: asyncio.Event | None = None

    async def act(self, *_: object) -> bytes:
        self.done += 1
        self.begun.set()
        if self.going_on is not None:
            await self.going_on.wait()
        if self.refusal is not None:
            raise self.refusal
        return json.dumps({"made": self.done, "secret": SECRET}).encode()

    def endpoint(self, path: str = "/make", *, writes: bool = True) -> Posted:
        return Posted(path, Role.ADMIN, Request, self.act, writes=writes)


@pytest.fixture
def deeds() -> Deeds:
    return Deeds()


@pytest.fixture
async def client(runtime, readiness, deeds):
    endpoints = (deeds.endpoint(), deeds.endpoint("/other"), deeds.endpoint("/ask", writes=False))
    async with serving(runtime, readiness, *endpoints) as wire:
        yield wire


@pytest.fixture
def own(admin: str) -> str:
    return f"x-api-token: {admin}"


@asynccontextmanager
async def door_of(runtime, readiness, deeds: Deeds) -> AsyncIterator[tuple[Wire, Wire]]:
    """Two clients of one endpoint."""
    door = app.Door(runtime, readiness)
    made = web.Application()
    made.router.add_route("*", "/make", door.handler(deeds.endpoint()))
    made[connections.BROKEN] = door.broken
    async with served(made) as port, connected(port) as one, connected(port) as two:
        yield one, two


def code_of(reply: Reply) -> tuple[int, str]:
    return reply.status, json.loads(reply.body)["code"]


async def test_the_same_request_is_answered_with_the_same_bytes(client, deeds, own):
    first = await answer(client, "/make", own, KEY)
    again = await answer(client, "/make", own, KEY, "X-Request-Id: second")
    assert (first.status, again.status, first.body, deeds.done) == (200, 200, again.body, 1)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["x-request-id"] == "second"
    assert again.headers["content-type"] == first.headers["content-type"]
    assert "idempotency-replayed" not in first.headers


async def test_without_a_key_it_is_done_each_time(client, deeds, own):
    for _ in range(2):
        assert (await answer(client, "/make", own)).status == 200
    assert deeds.done == 2


async def test_a_key_is_ignored_where_nothing_changes(client, deeds, own):
    for body in (b"{}", b"{ }"):
        assert (await answer(client, "/ask", own, KEY, body=body)).status == 200
    assert deeds.done == 2
    assert (await answer(client, "/ask", own, "Idempotency-Key: a b")).status == 200


async def test_a_key_belongs_to_one_endpoint(client, deeds, own):
    for path in ("/make", "/other"):
        assert (await answer(client, path, own, KEY)).status == 200
    assert deeds.done == 2


async def test_another_body_under_the_same_key_is_refused(client, deeds, own):
    await answer(client, "/make", own, KEY)
    refused = await answer(client, "/make", own, KEY, body=b"{ }")
    assert code_of(refused) == (422, "idempotency_key_reused")
    assert deeds.done == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "caf\xe9"])
async def test_a_key_is_visible_and_not_too_long(runtime, readiness, deeds, own, key):
    async with serving(runtime, readiness, deeds.endpoint()) as client:
        refused = await answer(client, "/make", own, f"Idempotency-Key: {key}")
    assert code_of(refused) == (400, "invalid_header")
    assert deeds.done == 0


async def test_the_longest_key_is_taken_and_two_are_not(client, deeds, own):
    assert (await answer(client, "/make", own, f"Idempotency-Key: {'x' * 255}")).status == 200
    assert code_of(await answer(client, "/make", own, KEY, KEY)) == (400, "invalid_header")


REFUSALS = [
    (NotFound("It is not there.", code="queue_not_found"), 404),
    (Conflict("It is there.", code="queue_exists"), 409),
    (Invalid("It must not.", code="limit_reached"), 422),
]


@pytest.mark.parametrize(("refusal", "status"), REFUSALS)
async def test_a_lasting_refusal_is_kept_as_it_was_told(client, deeds, own, refusal, status):
    deeds.refusal = refusal
    first = await answer(client, "/make", own, KEY)
    deeds.refusal = None
    again = await answer(client, "/make", own, KEY)
    assert (first.status, again.status, again.body) == (status, status, first.body)
    assert again.headers["content-type"] == "application/problem+json; charset=utf-8"
    assert json.loads(again.body)["request_id"] == first.headers["x-request-id"]


async def test_a_faulty_body_is_kept_too(client, deeds, own):
    first = await answer(client, "/make", own, KEY, body=b"not json")
    again = await answer(client, "/make", own, KEY, body=b"not json")
    assert (first.status, again.body) == (400, first.body)
    assert again.headers["idempotency-replayed"] == "true"
    assert code_of(await answer(client, "/make", own, KEY)) == (422, "idempotency_key_reused")


PASSING = [
    (Overloaded("Too much.", retry_after_s=1), 503),
    (DatabaseUnavailable("The disk is full.", retry_after_s=1), 503),
    (Conflict("It lands.", code="landing_in_progress"), 409),
]


@pytest.mark.parametrize(("refusal", "status"), PASSING)
async def test_what_passes_is_not_kept(client, deeds, own, refusal, status):
    deeds.refusal = refusal
    assert (await answer(client, "/make", own, KEY)).status == status
    deeds.refusal = None
    assert (await answer(client, "/make", own, KEY)).status == 200
    assert deeds.done == 2


async def test_after_a_mistake_of_ours_it_may_be_tried_again(client, runtime, readiness, own):
    async def breaks(*_: object) -> bytes:
        raise ZeroDivisionError("of ours")

    endpoint = Posted("/breaks", Role.ADMIN, Request, breaks, writes=True)
    async with serving(runtime, readiness, endpoint) as wire:
        assert code_of(await answer(wire, "/breaks", own, KEY)) == (500, "internal_error")
    async with serving(runtime, readiness, endpoint) as wire:
        assert code_of(await answer(wire, "/breaks", own, KEY)) == (500, "internal_error")


async def test_while_the_first_runs_the_second_is_told_to_wait(runtime, readiness, deeds, own):
    deeds.going_on = asyncio.Event()
    async with door_of(runtime, readiness, deeds) as (one, two):
        first = asyncio.create_task(answer(one, "/make", own, KEY))
        await deeds.begun.wait()
        waiting = await answer(two, "/make", own, KEY)
        assert code_of(waiting) == (409, "idempotency_in_progress")
        assert waiting.headers["retry-after"] == "1"
        deeds.going_on.set()
        assert (await first).status == 200
        assert (await answer(two, "/make", own, KEY)).body == (await first).body
    assert deeds.done == 1


async def test_when_the_process_died_it_is_free_after_a_minute(
    runtime, readiness, deeds, own, clock
):
    held = deeds.going_on = asyncio.Event()
    async with door_of(runtime, readiness, deeds) as (one, two):
        dead = asyncio.create_task(answer(one, "/make", own, KEY))
        await deeds.begun.wait()
        clock.advance(59)
        assert (await answer(two, "/make", own, KEY)).status == 409
        clock.advance(1)
        deeds.going_on = None
        second = await answer(two, "/make", own, KEY)
        assert (second.status, deeds.done) == (200, 2)
        held.set()
        # Who comes late says what it did, and the answer that is kept is the newer one.
        assert (await dead).status == 200
        assert (await answer(two, "/make", own, KEY)).body == second.body


async def test_an_answer_is_forgotten_after_a_day(client, deeds, own, clock):
    await answer(client, "/make", own, KEY)
    clock.advance(24 * 3600)
    assert "idempotency-replayed" not in (await answer(client, "/make", own, KEY)).headers
    assert deeds.done == 2


async def test_no_secret_lies_open_in_the_database(client, runtime, own):
    await answer(client, "/make", own, KEY)

    def bodies(session) -> list[bytes]:
        table = IdempotencyRow.__table__
        return [bytes(row.body) for row in session.execute(table.select())]

    (stored,) = await runtime.store.read(bodies)
    assert SECRET.encode() not in stored


async def test_plain_text_is_kept_as_plain_text(client, deeds, own):
    deeds.refusal = NotFound("It is not there.", code="queue_not_found")
    for _ in range(2):
        told = await answer(client, "/make", own, KEY, "Accept: text/plain")
        assert (told.status, told.body) == (404, b"It is not there.")
        assert told.headers["content-type"] == "text/plain; charset=utf-8"
