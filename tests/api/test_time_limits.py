"""Whoever asks by HTTP waits briefly for the database, whatever part of the service answers."""

import aiohttp
from aiohttp import web

from bot import listening
from service import time_limits
from service.http import connections


async def test_every_request_of_a_server_of_ours_waits_briefly_for_the_database():
    async def limit(_: web.Request) -> web.Response:
        return web.Response(text=str(time_limits.limit_s()))

    app = web.Application()
    app.router.add_get("/", limit)
    app[connections.BROKEN] = listening.broken
    runner = connections.runner(app, drain_s=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert time_limits.limit_s() == time_limits.WORK_S
    try:
        async with aiohttp.ClientSession(site.name) as http, http.get("/") as answer:
            found = float(await answer.text())
    finally:
        await runner.cleanup()
    assert found == time_limits.ANSWER_S
