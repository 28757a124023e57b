"""What the process's own figures say of requests, those that nobody could answer included."""

import asyncio
from dataclasses import replace

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from service.metrics.process_families import ProcessMeter
from service.process.api.app import measured
from service.runtime import Runtime

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
