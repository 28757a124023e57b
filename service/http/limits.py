"""Limit how large, how slow and how many request bodies may be (docs/design/limits.md 1).

Nothing here looks at what a body says.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from service.body_budget import BodyBudget, Share, overloaded
from service.clock import Clock
from service.errors import Overloaded
from service.http.errors import HttpRefused

BODY_BYTES_MAX = 20 * 1024 * 1024
LARGE_BYTES = 1024 * 1024
BYTES_A_SECOND_MIN = 50_000
GRACE_S = 10.0
WHOLE_S_MAX = 300.0
LARGE_AT_ONCE = 4
LARGE_A_TOKEN = 2
LARGE_WAIT_S = 30.0
LARGE_RETRY_AFTER_S = 5


class Bodies:
    """Takes bodies in, at most so many large ones at a time in this process.

    Bodies of unproved senders share `unproved` with webhooks (service/body_budget.py).
    """

    def __init__(self, clock: Clock, unproved: BodyBudget) -> None:
        self._clock = clock
        self._places = LargeBodySlots(clock)
        self._unproved = unproved

    @asynccontextmanager
    async def arriving_unproved(
        self, request: web.BaseRequest, sender: str
    ) -> AsyncIterator[bytes]:
        """As `arriving`, for a sender that nobody has checked yet.

        Raises Overloaded also when the body has to give way to smaller ones.
        """
        evicted = asyncio.Event()
        with self._unproved.share(evicted.set) as share:
            async with self.arriving(request, sender, _Counted(share, evicted)) as body:
                share.finish()
                yield body

    @asynccontextmanager
    async def arriving(
        self, request: web.BaseRequest, token_id: str, counted: "_Counted | None" = None
    ) -> AsyncIterator[bytes]:
        """The whole body of a request; a large one keeps its place until the block ends.

        Raises HttpRefused 400, 408, 413 and Overloaded.
        """
        length = request.content_length
        if length is not None and length > BODY_BYTES_MAX:
            raise _too_large()
        has_place = length is not None and length > LARGE_BYTES
        if has_place:
            await self._places.take(token_id)
        try:
            if request.headers.get("Expect", "").lower() == "100-continue":
                await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                request.writer.output_size = 0
            received = bytearray()
            async for chunk in self._chunks(request, counted):
                received += chunk
                if len(received) > BODY_BYTES_MAX:
                    raise _too_large()
                if len(received) > LARGE_BYTES and not has_place:
                    await self._places.take(token_id)
                    has_place = True
            yield bytes(received)
        finally:
            if has_place:
                self._places.leave(token_id)

    async def _chunks(
        self, request: web.BaseRequest, counted: "_Counted | None"
    ) -> AsyncIterator[bytes]:
        """Yield what arrives, as long as it arrives fast enough."""
        # Only waiting for the client counts, not the wait for a place among large bodies.
        waited_s = 0.0
        received = 0
        while not request.content.at_eof():
            allowed_s = min(max(GRACE_S, received / BYTES_A_SECOND_MIN), WHOLE_S_MAX)
            began = self._clock.monotonic_s()
            chunk = await self._next_chunk(request, allowed_s - waited_s, counted)
            waited_s += self._clock.monotonic_s() - began
            received += len(chunk)
            if counted is not None:
                counted.share.take(len(chunk))
            yield chunk

    async def _next_chunk(
        self, request: web.BaseRequest, left_s: float, counted: "_Counted | None"
    ) -> bytes:
        reading = asyncio.ensure_future(request.content.readany())
        ends = [asyncio.ensure_future(self._clock.sleep(max(0.0, left_s)))]
        if counted is not None:
            ends.append(asyncio.ensure_future(_when(counted.evicted)))
        try:
            await asyncio.wait({reading, *ends}, return_when=asyncio.FIRST_COMPLETED)
            if counted is not None and counted.share.is_evicted:
                raise overloaded()
            if not reading.done():
                raise HttpRefused(
                    "request_timeout",
                    "The body arrives too slowly: 50 kB a second after 10 seconds, "
                    "and 5 minutes in all.",
                )
            return reading.result()
        except (HttpProcessingError, web.RequestPayloadError) as broken:
            request.content.feed_eof()
            raise HttpRefused("bad_request", "The body is not framed as HTTP.") from broken
        finally:
            for waiting in (reading, *ends):
                waiting.cancel()


@dataclass(frozen=True, slots=True)
class _Counted:
    """The share of a body of an unproved sender; `evicted` is set when it has to give way."""

    share: Share
    evicted: asyncio.Event


async def _when(evicted: asyncio.Event) -> None:
    await evicted.wait()


class LargeBodySlots:
    """Places for large bodies: so many in all, so many a token, handed on in order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._taken: Counter[str] = Counter()
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()

    async def take(self, token_id: str) -> None:
        """Have a place, at once or after at most 30 s. Raises Overloaded."""
        if self._is_free_for(token_id):
            self._taken[token_id] += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((token_id, place))
        timer = asyncio.ensure_future(self._clock.sleep(LARGE_WAIT_S))
        try:
            await asyncio.wait({place, timer}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if place.done():
                self.leave(token_id)
            raise
        finally:
            timer.cancel()
            if not place.done():
                self._waiting.remove((token_id, place))
        if not place.done():
            raise Overloaded(
                "Too many large bodies arrive at the same time.",
                retry_after_s=LARGE_RETRY_AFTER_S,
            )

    def leave(self, token_id: str) -> None:
        """Give the place back; the first who waits and may have it gets it."""
        self._taken[token_id] -= 1
        if not self._taken[token_id]:
            del self._taken[token_id]
        for waiting in tuple(self._waiting):
            if self._is_free_for(waiting[0]):
                self._waiting.remove(waiting)
                self._taken[waiting[0]] += 1
                waiting[1].set_result(None)
                return

    def _is_free_for(self, token_id: str) -> bool:
        in_all = self._taken.total()
        return in_all < LARGE_AT_ONCE and self._taken[token_id] < LARGE_A_TOKEN


def _too_large() -> HttpRefused:
    return HttpRefused(
        "body_too_large", f"A body may have {BODY_BYTES_MAX} bytes; this one has more."
    )
