"""The address of the service, and the admin listener: what operators are told, and where."""

import asyncio
import socket
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families as parsed
from structlog.testing import capture_logs

from bot import forms, listening, settings
from bot.listening import Address
from service.database.outbox import Lane
from service.errors import StartRefused
from service.http import connections
from service.http.health import Readiness
from service.metrics.process_families import ProcessMeter
from service.runtime import Runtime
from tests.operations.conftest import clock, provider, runtime  # noqa: F401


def server(text: str) -> web.AppRunner:
    """A server that answers every request with this text."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=text)

    app = web.Application()
    app.router.add_get("/", answer)
    app[connections.BROKEN] = listening.broken
    return connections.runner(app, drain_s=1.0)


async def request(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to an address on which a request was sent."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    return reader, writer


@pytest.fixture
def address():
    opened = Address(settings.alone(port=0))
    yield opened
    opened.close()


async def test_a_request_between_two_servers_waits_for_the_second(address: Address):
    first, second = server("first"), server("second")
    url = await address.listen(first)
    await first.cleanup()
    reader, writer = await request(url)
    try:
        assert await address.listen(second) == url
        assert (await reader.read()).endswith(b"second")
    finally:
        writer.close()
        await second.cleanup()


async def test_an_address_that_is_closed_refuses_connections(address: Address):
    only = server("only")
    url = await address.listen(only)
    await only.cleanup()
    address.close()
    with pytest.raises(ConnectionRefusedError):
        await request(url)


async def test_the_port_of_another_server_is_refused_by_its_setting(address: Address):
    first, second = server("first"), server("second")
    port = int((await address.listen(first)).rpartition(":")[2])
    with pytest.raises(StartRefused, match=f"HEADGATE_PORT: {port} on 127.0.0.1 is in use"):
        await Address(settings.alone(port=port)).listen(second)
    for each in (first, second):
        await each.cleanup()


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("not.a.host.invalid", "HEADGATE_HOST: not.a.host.invalid is no address of this machine"),
        ("192.0.2.1", "HEADGATE_HOST: cannot listen on 192.0.2.1"),
    ],
)
async def test_a_host_that_is_not_of_this_machine_is_refused_by_its_setting(host: str, words: str):
    elsewhere = settings.alone(host=host, port=0, dashboard_auth="token")
    runner = server("unheard")
    with pytest.raises(StartRefused, match=words):
        await Address(elsewhere).listen(runner)
    await runner.cleanup()


@pytest.fixture
def measured(runtime: Runtime) -> Runtime:  # noqa: F811
    return replace(runtime, telemetry=ProcessMeter("0.0.7", "3.11.9"))


async def test_it_tells_of_the_process_and_takes_get_alone(measured: Runtime):
    readiness = Readiness()
    runner = listening.runner_for_operators(measured, readiness)
    url = await listening.listen_for_operators(runner, settings.alone(admin_listen="127.0.0.1:0"))
    assert url is not None
    try:
        async with aiohttp.ClientSession(url) as http:
            async with http.get("/metrics") as answer:
                assert answer.status == 200
                kind = answer.headers["Content-Type"]
                assert kind == "text/plain; version=0.0.4; charset=utf-8"
                shown = {one.name: one for one in parsed(await answer.text())}
            lanes = {
                one.labels["lane"]: one.value for one in shown["headgate_outbox_pending"].samples
            }
            assert lanes == dict.fromkeys(Lane, 0)
            assert shown["headgate_delivery_lag_seconds"].samples[0].value == 0
            async with http.get("/healthz") as answer:
                assert (answer.status, await answer.json()) == (200, {"status": "ok"})
            async with http.get("/readyz") as answer:
                assert answer.status == 503
            readiness.mark("recovery", "ok")
            async with http.get("/readyz") as answer:
                assert answer.status == 200
            for method in ("HEAD", "POST", "PUT", "DELETE"):
                async with http.request(method, "/metrics") as answer:
                    assert answer.status == 405
            async with http.get("/v1/status") as answer:
                assert answer.status == 404
    finally:
        await runner.cleanup()


async def test_it_can_be_off(measured: Runtime):
    runner = listening.runner_for_operators(measured, Readiness())
    off = settings.alone(admin_listen="off")
    assert await listening.listen_for_operators(runner, off) is None
    await runner.cleanup()


async def test_an_address_in_use_is_refused_by_its_setting(measured: Runtime):
    runner = listening.runner_for_operators(measured, Readiness())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StartRefused, match="HEADGATE_ADMIN_LISTEN"):
            await listening.listen_for_operators(
                runner, settings.alone(admin_listen=f"127.0.0.1:{port}")
            )
    await runner.cleanup()


async def test_beyond_loopback_it_warns(measured: Runtime):
    runner = listening.runner_for_operators(measured, Readiness())
    with capture_logs() as said:
        await listening.listen_for_operators(runner, settings.alone(admin_listen="0.0.0.0:0"))
    assert [line["event"] for line in said] == ["admin_listener_is_open"]
    await runner.cleanup()


@pytest.mark.parametrize("given", ["9642", ":9642", "host", "::1:9642", "host:65536", "a:b", ""])
def test_an_address_must_have_host_and_port(given: str):
    with pytest.raises(ValueError, match="HOST:PORT"):
        forms.parse_listen(given)


@pytest.mark.parametrize("given", ["off", "127.0.0.1:9642", "[::1]:0", "localhost:65535"])
def test_an_address_or_off_is_taken_as_it_is(given: str):
    assert forms.parse_listen(given) == given
