"""Handlers that are counted and timed (API.md 7, process part)."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from service.runtime import Runtime

UNKNOWN = "unknown"
"""The endpoint of every path that is none: what people type is no label."""

NOBODY = "none"
"""The status of a request that was broken off: nobody was answered."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def measured(runtime: Runtime, endpoint: str, handler: Handler) -> Handler:
    """The handler, telling the meter what it answered and how long that took."""
    meter, clock = runtime.telemetry, runtime.clock

    async def answered(request: web.Request) -> web.StreamResponse:
        began_s = clock.monotonic_s()
        # What a handler lets out is answered by `Door.broken`.
        status = "500"
        try:
            answer = await handler(request)
            status = str(answer.status)
        except asyncio.CancelledError:
            status = NOBODY
            raise
        finally:
            meter.count("headgate_api_requests_total", endpoint, status)
            took_s = clock.monotonic_s() - began_s
            meter.observe("headgate_api_request_duration_seconds", took_s, endpoint)
        return answer

    return answered
