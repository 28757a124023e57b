"""Times that a header `Date` tells where a proxy stands between, from which tokens are made."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import aiohttp
import pytest
from aiohttp import web

from bot.github.options import GitHubOptions, addresses_of, parse_private_key
from bot.github.provider import GitHubProvider
from bot.github.told_times import skew_s
from tests.provider.stage import HOST, Stage, on_sandbox

ABSURD = (
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "Sat, 01 Jan 2000 00:00:00 GMT",
    "Thu, 01 Jan 2099 00:00:00 GMT",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "Fri, 31 Dec 9999 23:59:59 -1400",
    "Mon, 01 Jan 2024 00:00:00 +99999999999999999999",
    "Mon, 01 Jan 0001 00:00:00 +1400",
    "yesterday",
)


@asynccontextmanager
async def behind_a_proxy(stage: Stage, dates: list[str]) -> AsyncIterator[GitHubProvider]:
    """A provider whose answers have these dates, one after the other, the last one for good."""

    async def forward(request: web.Request) -> web.Response:
        kept = ("Authorization", "Accept", "Content-Type")
        sent = {name: request.headers[name] for name in kept if name in request.headers}
        url, body = f"{stage.sandbox.url}{request.path_qs}", await request.read()
        async with http.request(request.method, url, headers=sent, data=body) as answer:
            date = dates.pop(0) if len(dates) > 1 else dates[0]
            return web.Response(
                status=answer.status,
                body=await answer.read(),
                headers={"Date": date, "Content-Type": "application/json"},
            )

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", forward)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    options = GitHubOptions(
        host=HOST,
        addresses=addresses_of(HOST, f"http://127.0.0.1:{port}"),
        app_id=str(stage.sandbox.app_id),
        private_keys=(parse_private_key(str(stage.sandbox.key_path)),),
        webhook_secrets=(stage.sandbox.webhook_secret,),
        write_spacing_ms=0,
    )
    provider = GitHubProvider(options, stage.clock)
    try:
        async with aiohttp.ClientSession() as http:
            yield provider
    finally:
        await provider.close()
        await runner.cleanup()


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with on_sandbox(datetime.now(UTC)) as made:
        yield made


@pytest.mark.fault(
    "a proxy tells an absurd time in the header `Date`",
    holds="tokens are made by our own clock, as many as without it",
    within="the call that GitHub refuses",
)
@pytest.mark.parametrize("date", ABSURD)
async def test_an_absurd_date_keeps_no_call_out_and_mints_no_storm(stage: Stage, date: str):
    async with behind_a_proxy(stage, [date]) as provider:
        for _ in range(20):
            await provider.repositories()
            await provider.tip(stage.repo, "main")
            await stage.clock.sleep(100)
    assert stage.called("POST", "/access_tokens") <= 3


async def test_a_date_that_comes_and_goes_keeps_no_call_out(stage: Stage):
    right = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    dates = [ABSURD[0], right, ABSURD[1], ABSURD[2], right] * 20
    async with behind_a_proxy(stage, dates) as provider:
        for _ in range(20):
            await provider.repositories()
            await provider.tip(stage.repo, "main")
            await stage.clock.sleep(10)
    assert stage.called("POST", "/access_tokens") <= 6


@pytest.mark.parametrize("date", ABSURD)
def test_every_date_is_read_without_an_error(date: str):
    assert abs(skew_s(date, datetime.now(UTC))) < 101 * 366 * 86_400
