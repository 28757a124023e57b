"""Answers of the provider that no reader takes: too large, too deep, no JSON."""

import pytest
from aiohttp import web

from bot.github import wire
from bot.github.options import GitHubOptions, addresses_of
from bot.github.wire import Broken, Exchange, Wire

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
    made = Wire(options)

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
