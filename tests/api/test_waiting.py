"""Requests that wait for a change, whose clients leave (docs/design/http.md 12)."""

import asyncio
from dataclasses import replace

from aiohttp import web

from service.database.wakeups import Wakeups
from service.http import connections
from service.http.callers import Caches, Call
from service.http.models.common import Awaited
from service.http.waiting import Versioned
from service.mergequeue.api import changes
from service.process.api.app import measured
from tests.api.wire import HandClock, connected, head, served
from tests.operations import upload_stage

PATH = "/v1/x"
WITHIN_S = 20.0
ASKED_S = 30


async def test_a_wait_ends_at_the_next_look_after_its_client_has_left(store):
    stage = await upload_stage.staged(store)
    clock, is_over = HandClock(), asyncio.Event()
    runtime = replace(stage.runtime, clock=clock, wakeups=Wakeups(clock))
    call = Call(runtime, Caches(runtime.options), stage.caller)

    async def unchanged():
        return Versioned("1", b"{}")

    async def handler(_):
        try:
            return web.Response(
                body=await changes.newest(call, "x", Awaited("1", ASKED_S), unchanged)
            )
        finally:
            is_over.set()

    app = web.Application()
    app[connections.BROKEN] = lambda *_: web.Response(status=500)
    app.router.add_post(PATH, measured(runtime, PATH, handler))
    async with served(app) as port, asyncio.timeout(WITHIN_S):
        async with connected(port) as wire:
            await wire.send(head(PATH, "Content-Length: 0"))
            await clock.slept(1)
        assert not is_over.is_set()
        looks = 1
        while not is_over.is_set():
            clock.advance(changes.LOOK_EVERY_S)
            looks += 1
            slept = asyncio.create_task(clock.slept(looks))
            ended = asyncio.create_task(is_over.wait())
            await asyncio.wait((slept, ended), return_when=asyncio.FIRST_COMPLETED)
            slept.cancel()
            ended.cancel()
    assert clock.monotonic_s() < ASKED_S / 2
