"""What the process's own figures say of requests, those that nobody could answer included."""

import asyncio
from dataclasses import replace

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from service.http import waiting
from service.metrics.process_families import ProcessMeter
from service.process.api.app import measured
from service.runtime import Runtime
from tests.api.wire import HandClock

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
