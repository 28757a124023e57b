"""Answers of the provider that no reader takes: too large, too deep, no JSON."""

import asyncio
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web

from bot.github import wire
from bot.github.artifacts import UNSAFE, Artifacts
from bot.github.options import GitHubOptions, addresses_of
from bot.github.pacing import Priority
from bot.github.sign_in import GitHubSignIn, OAuthClient
from bot.github.troubles import HostTroubles
from bot.github.wire import Broken, Exchange, Wire
from bot.oidc import issuer
from bot.uploader.proxies import Proxies
from service.clock import SystemClock
from service.provider.errors import Unavailable
from service.troubles import Troubles
from tests.github.table import on_table
from tests.harness.proxy import authority, proxying, tls_before

SILENT = HostTroubles("github.localhost", SystemClock(), Troubles(SystemClock()))

BODIES = {
    "/fine": b'{"name": "widgets"}',
    "/long": b'{"name": "' + b"x" * 2_000 + b'"}',
    "/deep": b"[" * 100_000 + b"]" * 100_000,
    "/cut": b'{"name": ',
}


@pytest.fixture
async def sent():
    """What a request to a path of the server is answered with."""

    async def answer(request):
        status = 404 if "refused" in request.query else 200
        return web.Response(
            body=BODIES[request.path], status=status, content_type="application/json"
        )

    app = web.Application()
    app.router.add_get("/{name}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    root = f"http://127.0.0.1:{runner.addresses[0][1]}"
    options = GitHubOptions("github.localhost", addresses_of("x", root), "1", (), ())
    made = Wire(options, SILENT)

    async def send(path):
        return await made.send(Exchange("GET", f"{root}{path}", "", is_app=False))

    yield send
    await made.close()
    await runner.cleanup()


async def test_an_answer_that_is_json_is_read(sent):
    assert (await sent("/fine")).fields.text("name") == "widgets"


@pytest.mark.parametrize("path", ["/deep", "/cut"])
async def test_an_answer_that_cannot_be_read_counts_as_none(sent, path):
    with pytest.raises(Broken, match="not JSON"):
        await sent(path)
    refusal = await sent(f"{path}?refused")
    assert (refusal.status, refusal.content) == (404, None)


async def test_an_answer_that_is_too_large_is_not_read_to_its_end(sent, monkeypatch):
    monkeypatch.setattr(wire, "ANSWER_BYTES_MAX", 1_000)
    with pytest.raises(Broken, match="too large"):
        await sent("/long")
    assert (await sent("/fine")).status == 200


async def asked(root, **more):
    """The reason why a request got no answer, and whether it was sent."""
    made = Wire(
        replace(GitHubOptions("github.localhost", addresses_of("x", root), "1", (), ()), **more),
        SILENT,
    )
    with pytest.raises(Broken) as broken:
        await made.send(Exchange("POST", f"{root}/app", "", is_app=True))
    await made.close()
    return broken.value.message, broken.value.sent


async def test_a_landing_waits_for_no_other_request(monkeypatch):
    monkeypatch.setattr(wire, "REQUESTS_MAX", 1)
    async with on_table() as (table, client):
        table.says("GET /slow", {})
        table.says("PUT /pulls/3/merge", {"sha": "c" * 40})
        await client.get("")
        table.held["GET /slow"] = meeting = asyncio.Barrier(2)
        other = asyncio.create_task(client.get("/slow"))
        await meeting.wait()
        async with asyncio.timeout(5):
            landing = replace(client, priority=Priority.LANDING)
            assert (await landing.create("PUT", "/pulls/3/merge", {})).status == 200
        await meeting.wait()
        await other


NAME = "github.localhost"
TARGET = {f"{NAME}:443": 1}


async def test_a_refusal_of_the_proxy_is_no_request_that_was_sent():
    async with proxying(TARGET, answer=407) as proxy:
        why = await asked(f"https://{NAME}", proxies=Proxies(https=proxy.url))
    assert why == ("cannot connect: the outbound proxy answered 407", False)


async def test_a_proxy_that_is_away_is_named_as_the_proxy_without_its_password():
    away = Proxies(https="http://bob:s3cret@127.0.0.1:1")
    why, is_sent = await asked(f"https://{NAME}", proxies=away)
    assert (why.startswith("cannot connect: the outbound proxy: "), is_sent) == (True, False)
    assert "s3cret" not in why


async def test_a_certificate_that_is_not_trusted_is_told(tmp_path):
    corporate = authority(tmp_path)
    async with (
        tls_before(1, corporate.server(NAME)) as port,
        proxying({f"{NAME}:443": port}) as proxy,
    ):
        why = await asked(f"https://{NAME}", proxies=Proxies(https=proxy.url))
    assert why == (
        "cannot connect: its certificate is not trusted (unable to get local issuer certificate)",
        False,
    )


async def test_a_sign_in_goes_by_the_proxy_too():
    async with proxying(TARGET) as proxy:
        options = replace(
            GitHubOptions(NAME, addresses_of("x", f"https://{NAME}"), "1", (), ()),
            proxies=Proxies(https=proxy.url),
        )
        client = OAuthClient("id", "secret", "https://queue.example.org")
        with pytest.raises(Unavailable):
            await GitHubSignIn(options, client, SystemClock()).person_of("code", "verifier")
    assert proxy.targets == [f"{NAME}:443"]


async def test_an_archive_of_a_public_host_goes_by_a_proxy_of_a_private_address():
    store = "store.blob.example:443"
    async with proxying({store: 1}) as proxy:
        here = Proxies(https=proxy.url.replace("127.0.0.1", "localhost"))
        made = Artifacts(
            GitHubOptions("github.com", addresses_of("github.com"), "1", (), (), proxies=here)
        )
        with pytest.raises(Broken):
            await made.fetch(f"https://{store.partition(':')[0]}/archive.zip")
        assert await made.fetch("https://10.0.0.1/archive.zip") is UNSAFE
        await made.close()
    assert proxy.targets == [store]


async def test_keys_of_an_issuer_go_by_the_proxy_too():
    async with proxying(TARGET) as proxy:
        with pytest.raises(aiohttp.ClientError):
            await issuer.fetched(f"https://{NAME}/.well-known/jwks", proxy.url)
    assert proxy.targets == [f"{NAME}:443"]
