"""Streams that tell an open page that it has changed.

A stream carries no content: the page asks for itself again, with its own rights. The address of a
stream is that of its page, asked for as `text/event-stream`.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import web

from service.errors import ServiceError
from service.http import waiting
from service.http.waiting import Waiting
from service.provider.errors import ProviderError
from service.runtime import Runtime

CONTENT = "text/event-stream"

LASTS_S = 60.0
"""The browser then opens another stream, and its rights are read again."""

LOOK_EVERY_S = 2.0
"""Another process may have made the change, this one may be about to stop, and pages of many
things have no topic, so that they are not drawn again for each of many changes."""

BEAT_EVERY_S = 15.0
"""Proxies close connections on which nothing is sent."""

FIRST = b"retry: 3000\n\n"
"""After this many milliseconds a browser opens another stream."""

CHANGED, BEAT = b"data: changed\n\n", b": \n\n"


class Streams:
    """The open streams of one application, bounded as waiting is (docs/design/http.md 12)."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._places = Waiting(runtime.options)

    async def stop(self, _app: web.Application) -> None:
        """End every stream: the process is about to stop."""
        self._places.is_stopping = True

    async def follow(
        self,
        request: web.Request,
        answer: web.StreamResponse,
        visitor: str,
        tag: Callable[[], Awaitable[tuple[str, str]]],
    ) -> web.StreamResponse:
        """Say when the tag of a page is another one; `tag` also returns the topic to wait for.

        At first it says so once. Raises Overloaded.
        """
        with self._places.place(visitor):
            await answer.prepare(request)
            # Else the browser has gone, or it asks again and is answered why.
            with suppress(ConnectionError, ServiceError, ProviderError):
                await self._tell(request, answer, tag)
        return answer

    async def _tell(
        self,
        request: web.Request,
        answer: web.StreamResponse,
        tag: Callable[[], Awaitable[tuple[str, str]]],
    ) -> None:
        clock, wakeups = self._runtime.clock, self._runtime.wakeups
        ends_s = clock.monotonic_s() + LASTS_S
        told, told_s = "", clock.monotonic_s()
        await answer.write(FIRST)
        while clock.monotonic_s() < ends_s and not self._is_over(request):
            newest, topic = await tag()
            seen = wakeups.version(topic)
            is_late = clock.monotonic_s() - told_s >= BEAT_EVERY_S
            if newest != told or is_late:
                await answer.write(BEAT if newest == told else CHANGED)
                told, told_s = newest, clock.monotonic_s()
            await wakeups.wait(topic, seen, LOOK_EVERY_S)

    def _is_over(self, request: web.Request) -> bool:
        return waiting.has_left(request) or self._places.is_stopping
