"""The configurations of nginx and Caddy in front of a service: what people and jobs do works."""

import asyncio
import io
import json
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.sandbox.pages import COOKIE
from service.accounts import tokens
from service.accounts.tokens import TokenRequest
from service.dashboard import streams
from service.vocabulary import SYSTEM, Role
from tests.dashboard.signing_in import PATH, enter
from tests.deploy import proxies
from tests.harness.browser import Browser
from tests.harness.machine import free_port
from tests.harness.world import WorldOptions

SHA = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"
MIB = 1 << 20
# A stream that is kept back until it ends takes half a minute at this speed.
SPEED = 2.0
SOON_S = 15.0


@pytest.fixture(params=["nginx", "caddy"])
def proxy(request, needs):
    needs(request.param)
    return request.param


@pytest.fixture
def world_options():
    port, public = free_port(), free_port()
    given = {
        "port": port,
        "public_url": f"https://localhost:{public}",
        "dashboard_auth": "github",
        "trusted_proxies": "127.0.0.0/8",
    }
    return WorldOptions(settings=given, speed=SPEED, is_compared=False, required=())


@pytest.fixture
async def public(world, world_options, proxy, tmp_path):
    """The world as it is reached through the proxy."""
    await world.make_queue()
    url = world_options.settings["public_url"]
    port = int(url.rpartition(":")[2])
    with proxies.running(proxy, tmp_path / "proxy", port, world_options.settings["port"]):
        yield replace(world, url=url)


@pytest.fixture
async def http():
    """A client that does not know the proxy's certificate."""
    jar = aiohttp.CookieJar(unsafe=True)
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(cookie_jar=jar, connector=connector) as session:
        yield session


async def test_a_person_signs_in_and_sees_a_change_at_once(public, http):
    http.cookie_jar.update_cookies({COOKIE: "alice"})
    browser = Browser(http)
    page = await enter(public, browser)
    assert (page.status, page.url) == (200, f"{public.url}{PATH}")
    headers = {"Accept": streams.CONTENT}
    async with asyncio.timeout(SOON_S), http.get(page.url, headers=headers) as stream:
        await stream.content.readuntil(streams.CHANGED)
        paused = await browser.press("Pause the queue", reason="Trying the proxy")
        assert (paused.status, "Trying the proxy" in paused.text) == (200, True)
        await stream.content.readuntil(streams.CHANGED)
        assert not stream.content.at_eof()


async def test_a_large_report_passes_and_one_that_is_too_large_is_refused_by_the_service(
    public, http
):
    request = TokenRequest("github.localhost", "octo", "ci", Role.CI)
    token = (await tokens.create_token(public.runtime, request, SYSTEM)).secret

    async def upload(size):
        case = '<testcase classname="a" name="t"/>'
        report = io.BytesIO(f'<testsuite name="s">{case}{" " * size}</testsuite>'.encode())
        repo = {"host": "github.localhost", "owner": "octo", "name": "widgets"}
        data = aiohttp.FormData()
        data.add_field("metadata", json.dumps({"repo": repo, "org_url_slug": "octo", "sha": SHA}))
        data.add_field("file", report, filename="a.xml")
        address = f"{public.url}/v1/flaky-tests/upload-test-results"
        async with http.post(address, data=data, headers={"x-api-token": token}) as answer:
            return answer.status, await answer.json(content_type=None)

    status, taken = await upload(19 * MIB)
    assert status == 200, taken
    status, refused = await upload(21 * MIB)
    assert (status, refused["code"]) == (413, "body_too_large")


async def test_the_service_learns_the_public_name_and_the_address_of_the_client(
    proxy, http, tmp_path
):
    seen = []

    async def note(request):
        seen.append(request.headers)
        return web.Response()

    app = web.Application()
    app.router.add_get("/{path:.*}", note)
    port = free_port()
    upstream = free_port()
    async with TestServer(app, port=upstream):
        with proxies.running(proxy, tmp_path / "proxy", port, upstream):
            forged = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "http"}
            async with http.get(f"https://localhost:{port}/here", headers=forged) as answer:
                assert answer.status == 200
    headers = seen[-1]
    assert headers["Host"] == f"localhost:{port}"
    assert headers["X-Forwarded-For"] in ("127.0.0.1", "::1")
    assert headers["X-Forwarded-Proto"] == "https"
