"""One whole answer, head and body written in one piece.

aiohttp builds the head of each response from a dictionary; ours differ only in status, length
and request id, so the rest is bytes made once (PERFORMANCE.md 3.2, V1).
"""

from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime
from http import HTTPStatus

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

JSON = "application/json; charset=utf-8"
PROBLEM = "application/problem+json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"

# A larger body is handed over by itself: copying it next to its head would cost more.
JOINED_MAX = 32_768


class Answer(web.StreamResponse):
    """An answer that is complete before its first byte is sent.

    `head` ends with a line break and lacks length, connection and the blank line; a HEAD
    request gets the same head and no body.
    """

    def __init__(self, status: int, head: bytes, body: bytes, *, closes: bool = False) -> None:
        super().__init__(status=status)
        self._head = head
        self._bytes = body
        self._closes = closes

    @property
    def keep_alive(self) -> bool | None:
        """Whether the connection stays for another request."""
        return not self._closes

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send everything, once."""
        transport = request.transport
        if transport is None:
            return None
        closes = self._closes = self._closes or not request.keep_alive
        connection = b""
        if closes:
            connection = b"Connection: close\r\n"
        elif request.version.minor == 0:
            connection = b"Connection: keep-alive\r\n"
        body = self._bytes
        head = b"%bContent-Length: %d\r\n%b\r\n" % (self._head, len(body), connection)
        if request.method == "HEAD":
            transport.write(head)
        elif len(body) > JOINED_MAX:
            transport.write(head)
            transport.write(body)
        else:
            transport.write(head + body)
        await request.writer.drain()
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to send."""


class Heads:
    """Heads of answers, with the present second's date."""

    def __init__(self) -> None:
        self._second = -1
        self._date = b""
        self._starts: dict[tuple[int, str, str], bytes] = {}

    def head(
        self,
        status: int,
        content_type: str,
        request_id: str,
        now: datetime,
        cached: str = "no-store",
    ) -> bytes:
        """The head that every answer of ours has (API.md 1.3, 1.5); `cached`: Cache-Control."""
        second = now.second + 60 * now.minute + 3600 * (now.hour + 24 * now.toordinal())
        if second != self._second:
            self._second = second
            self._date = b"Date: " + format_datetime(now, usegmt=True).encode() + b"\r\n"
        start = self._starts.get((status, content_type, cached))
        if start is None:
            start = _start(status, content_type, cached)
            self._starts[status, content_type, cached] = start
        return b"%b%bX-Request-Id: %b\r\n" % (start, self._date, request_id.encode())


def _start(status: int, content_type: str, cached: str) -> bytes:
    return (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        f"Content-Type: {content_type}\r\n"
        f"Cache-Control: {cached}\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Server: headgate\r\n"
    ).encode()


def lines(headers: Mapping[str, str]) -> bytes:
    """Further lines of a head; names and values are ours, never a client's."""
    return b"".join(f"{name}: {value}\r\n".encode() for name, value in headers.items())
