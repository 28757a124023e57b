"""What the process's own figures say of requests, those that nobody could answer included."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from service.http import connections, waiting
from service.metrics.process_families import ProcessMeter
from service.process.api.app import measured
from service.runtime import Runtime
from tests.api.wire import HandClock, connected, head, served

SERIES = "headgate_api_requests_total"


@pytest.fixture
def meter() -> ProcessMeter:
    return ProcessMeter("0.0.7", "3.11.9")


@pytest.mark.parametrize(
    ("broken", "status"), [(ZeroDivisionError(), "500"), (asyncio.CancelledError(), "none")]
)
async def test_what_a_handler_lets_out_is_counted(
    runtime: Runtime, meter: ProcessMeter, broken: BaseException, status: str
):
    async def handler(_: web.Request) -> web.StreamResponse:
        raise broken

    told = measured(replace(runtime, telemetry=meter), "/v1/x", handler)
    with pytest.raises(type(broken)):
        await told(make_mocked_request("GET", "/v1/x"))
    shown = meter.text().decode()
    assert f'{SERIES}{{endpoint="/v1/x",status="{status}"}} 1.0' in shown
    assert 'headgate_api_request_duration_seconds_count{endpoint="/v1/x"} 1.0' in shown


@pytest.mark.parametrize("body", [b"Content-Length: 9", b"Transfer-Encoding: chunked"])
async def test_a_client_that_hangs_up_in_its_body_is_no_error_of_ours(
    runtime: Runtime, meter: ProcessMeter, body: bytes
) -> None:
    is_reading, is_over = asyncio.Event(), asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        is_reading.set()
        await request.content.read()
        return web.Response()

    async def told(request: web.Request) -> web.StreamResponse:
        try:
            return await measured(replace(runtime, telemetry=meter), "/v1/x", handler)(request)
        finally:
            is_over.set()

    app = web.Application()
    app.router.add_post("/v1/x", told)
    app[connections.BROKEN] = lambda *_: web.Response(status=400)
    async with served(app) as port:
        async with connected(port) as client:
            await client.send(head("/v1/x", body.decode()))
            await is_reading.wait()
        await is_over.wait()
    assert f'{SERIES}{{endpoint="/v1/x",status="none"}} 1.0' in meter.text().decode()


@pytest.mark.parametrize("broken", [ConnectionResetError(), BrokenPipeError()])
async def test_a_connection_of_ours_that_breaks_is_an_error_of_ours(
    runtime: Runtime, meter: ProcessMeter, broken: Exception
) -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        raise broken

    told = measured(replace(runtime, telemetry=meter), "/v1/x", handler)
    request = make_mocked_request("GET", "/v1/x")
    transport: Any = request.transport
    transport.is_closing.return_value = False
    with pytest.raises(ConnectionError):
        await told(request)
    assert f'{SERIES}{{endpoint="/v1/x",status="500"}} 1.0' in meter.text().decode()


async def test_waiting_for_a_change_is_not_counted_as_work(
    runtime: Runtime, meter: ProcessMeter, clock: HandClock
):
    async def handler(_: web.Request) -> web.StreamResponse:
        clock.advance(20)
        waiting.note(20)
        return web.Response()

    told = measured(replace(runtime, telemetry=meter), "/v1/x", handler)
    await told(make_mocked_request("GET", "/v1/x"))
    shown = meter.text().decode()
    assert 'headgate_api_request_duration_seconds_bucket{endpoint="/v1/x",le="0.005"} 1.0' in shown
