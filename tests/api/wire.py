"""Requests as bytes on a socket, a clock that a test moves, a tiny application around it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from aiohttp import web

from service.http import connections
from service.http.health import Readiness
from service.http.route import Route
from service.process.api import app
from service.runtime import Runtime


class HandClock:
    """Time that stands until a test moves it."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._sleeping: list[tuple[float, asyncio.Future[None]]] = []
        self._fell_asleep = asyncio.Event()
        self._times = 0
        self._spans: set[float] = set()

    def now(self) -> datetime:
        return datetime(2026, 3, 2, 14, 2, 19, tzinfo=UTC) + timedelta(seconds=self._now_s)

    def monotonic_s(self) -> float:
        return self._now_s

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return await asyncio.sleep(0)
        until = asyncio.get_running_loop().create_future()
        self._sleeping.append((self._now_s + seconds, until))
        self._times += 1
        self._spans.add(seconds)
        self._fell_asleep.set()
        return await until

    async def slept(self, times: int) -> None:
        """Return once somebody has begun to wait for the n-th time."""
        while self._times < times:
            self._fell_asleep.clear()
            await self._fell_asleep.wait()

    async def waited_on_for(self, seconds: float) -> None:
        """Return once somebody has begun to wait for just this long."""
        while seconds not in self._spans:
            self._fell_asleep.clear()
            await self._fell_asleep.wait()

    def advance(self, seconds: float) -> None:
        self._now_s += seconds
        for at, until in self._sleeping:
            if at <= self._now_s and not until.done():
                until.set_result(None)
        self._sleeping = [each for each in self._sleeping if not each[1].done()]


@dataclass(frozen=True)
class Reply:
    """An answer as it came over the wire; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Wire:
    """One connection to a server, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, *parts: bytes) -> None:
        self._writer.write(b"".join(parts))
        await self._writer.drain()

    async def reply(self, *, to_head: bool = False) -> Reply:
        """The next answer, its body as long as it says."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
        status = int(first.split()[1])
        length = 0 if to_head or status in (100, 304) else int(headers["content-length"])
        return Reply(status, headers, await self._reader.readexactly(length))

    @property
    def has_ended(self) -> bool:
        """Whether the server has closed the connection, as far as is heard here."""
        return self._reader.at_eof()

    async def is_closed(self) -> bool:
        """Whether the server says no more; waits until it says anything at all."""
        try:
            return await self._reader.read(1) == b""
        except ConnectionResetError:
            return True

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


@asynccontextmanager
async def served(app: web.Application) -> AsyncIterator[int]:
    """The application on a port of its own."""
    runner = connections.runner(app, drain_s=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Wire]:
    """A connection to the port."""
    wire = Wire(*await asyncio.open_connection("127.0.0.1", port))
    try:
        yield wire
    finally:
        await wire.close()


def head(path: str, *lines: str, method: str = "POST") -> bytes:
    """The head of a request, up to and with the blank line."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: test", *lines, "", ""]).encode()


async def answer(
    client: Wire, path: str, *lines: str, method: str = "POST", body: bytes = b"{}"
) -> Reply:
    """One request and what came of it."""
    length = [f"Content-Length: {len(body)}"] if method == "POST" else []
    await client.send(head(path, *lines, *length, method=method), body if length else b"")
    return await client.reply(to_head=method == "HEAD")


@asynccontextmanager
async def serving(runtime: Runtime, readiness: Readiness, *endpoints: Route) -> AsyncIterator[Wire]:
    """A client of these endpoints alone."""
    door = app.Door(runtime, readiness)
    made = web.Application()
    for route in endpoints:
        made.router.add_route("*", route.path, door.handler(route))
    made[connections.BROKEN] = door.broken
    async with served(made) as port, connected(port) as wire:
        yield wire
