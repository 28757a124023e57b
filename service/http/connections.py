"""Bounds on connections and heads of requests, and answers to broken HTTP.

Limits of docs/design/limits.md 1 that hold before any handler runs. aiohttp closes a connection
that has not sent a whole head, or no further one, in `IDLE_S`.
"""

import asyncio
import ipaddress
import resource
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence

from aiohttp import web
from aiohttp.http import RawRequestMessage

from service import time_limits
from service.http.addresses import is_among
from service.vocabulary import Network

IDLE_S = 15.0
LINE_BYTES_MAX = 8192
HEADERS_MAX = 64
CONNECTIONS_MAX = 4_000
OWN_DESCRIPTORS = 256
"""Kept from connections: for the database, GitHub, git and files."""
DESCRIPTORS_MIN = 2 * OWN_DESCRIPTORS
DESCRIPTORS_WANTED = OWN_DESCRIPTORS + 2 * CONNECTIONS_MAX
CONNECTIONS_AN_ADDRESS = 100

Broken = Callable[[web.BaseRequest, int, BaseException | None], web.StreamResponse]

PROXIES: web.AppKey[Sequence[Network]] = web.AppKey("proxies")
"""Networks of proxies, which may hold more connections than other addresses."""

BROKEN: web.AppKey[Broken] = web.AppKey("broken")
"""The application's answer where no handler could give one: broken HTTP, mistakes of ours."""

DRAIN_S = 20.0


def runner(app: web.Application, *, drain_s: float = DRAIN_S) -> web.AppRunner:
    """A runner for an application that has set `BROKEN`, with every limit set.

    At the end open requests have `drain_s` to be answered.
    """
    # The application writes its own line for each request.
    return _Runner(app, access_log=None, shutdown_timeout=drain_s)


class _Runner(web.AppRunner):
    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        crowd = ConnectionCounts(self.app.get(PROXIES, ()))
        return _Server(made, self.app[BROKEN], crowd)


class _Server(web.Server):
    """Makes connections with our limits, which aiohttp has no public way to count."""

    def __init__(self, made: web.Server, broken: Broken, crowd: "ConnectionCounts") -> None:
        super().__init__(made.request_handler, request_factory=made.request_factory)
        self.broken = broken
        self.crowd = crowd

    def __call__(self) -> web.RequestHandler:
        return _Connection(self)


class _Connection(web.RequestHandler):
    """One connection, counted by address while it lasts."""

    __slots__ = ("_address", "_broken", "_crowd")

    def __init__(self, server: _Server) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # aiohttp allows None
            auto_decompress=False,
            keepalive_timeout=IDLE_S,
            max_line_size=LINE_BYTES_MAX,
            max_field_size=LINE_BYTES_MAX,
            max_headers=HEADERS_MAX,
        )
        self._broken = server.broken
        self._crowd = server.crowd
        self._address = ""

    async def start(self) -> None:
        """Serve the requests of the connection: whoever asks waits briefly for the database."""
        time_limits.answer_soon()
        await super().start()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, or close it at once if there are too many."""
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if isinstance(peer, tuple) and peer else ""
        has_room = self._crowd.enter(self._address)
        super().connection_made(transport)
        if not has_room:
            self.force_close()

    def data_received(self, data: bytes) -> None:
        """Parse bytes; if they stop being HTTP, fail the body that is being read.

        aiohttp only queues the error behind the request whose body is broken, which would go on
        waiting for its end.
        """
        super().data_received(data)
        reading = self._current_request
        if reading is not None and self._messages:
            following = self._messages[-1][0]
            if not isinstance(following, RawRequestMessage) and not reading.content.is_eof():
                reading.content.set_exception(web.RequestPayloadError("broken HTTP"))

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the connection."""
        self._crowd.leave(self._address)
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - aiohttp's words are not ours
    ) -> web.StreamResponse:
        """Answer in our form where no handler could."""
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun; another cannot follow it")
        return self._broken(request, status, exc)

    def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> Coroutine[object, object, tuple[web.StreamResponse, bool]]:
        """Send an answer; a request without a path (CONNECT, `OPTIONS *`) matched no route."""
        if isinstance(resp, web.HTTPNotFound) and not request.path.startswith("/"):
            resp = self._broken(request, 405, None)
        return super().finish_response(request, resp, start_time)


def has_left(request: web.BaseRequest) -> bool:
    """Return whether the client has ended the connection of a request."""
    return request.transport is None or request.transport.is_closing()


class ConnectionCounts:
    """Connections by address. This machine and trusted proxies hold those of many clients."""

    def __init__(self, proxies: Sequence[Network]) -> None:
        self._proxies = proxies
        self._connected: Counter[str] = Counter()

    def enter(self, address: str) -> bool:
        """Count one more connection, and return whether there is room; call `leave` either way."""
        self._connected[address] += 1
        if self._connected.total() > min(CONNECTIONS_MAX, _room()):
            return False
        if self._connected[address] <= CONNECTIONS_AN_ADDRESS:
            return True
        return _is_loopback(address) or is_among(address, self._proxies)

    def leave(self, address: str) -> None:
        """Count one less."""
        self._connected[address] -= 1
        if not self._connected[address]:
            del self._connected[address]


def claim_descriptors() -> int:
    """Raise this process's limit on open files as far as it may be and is of use; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < DESCRIPTORS_WANTED:
        soft = DESCRIPTORS_WANTED if hard < 0 else min(hard, DESCRIPTORS_WANTED)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft if soft >= 0 else DESCRIPTORS_WANTED


def _room() -> int:
    """Return how many connections each of two listeners may hold, by the limit on open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS_MAX if soft < 0 else max(soft - OWN_DESCRIPTORS, 2) // 2


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return True  # a Unix socket has no address, and only this machine reaches it
