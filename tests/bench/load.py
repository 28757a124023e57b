"""Load from one process on another: requests over kept connections, and what they cost there.

The unit is server CPU: user and system time of the served process over a round, by the
kernel's own account, divided by the requests of the round.
"""

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

CONNECTIONS = 8


@dataclass(frozen=True)
class Round:
    """What one round cost and how it went."""

    cpu_us: float
    per_second: float
    p50_ms: float
    p99_ms: float


async def round_of(port: int, pid: int, request: bytes, count: int) -> Round:
    """Send the request `count` times over eight connections; see `round_of_many`."""
    return await round_of_many(port, pid, [request] * count)


async def round_of_many(port: int, pid: int, requests: Sequence[bytes]) -> Round:
    """Send each request once over eight connections.

    Raises RuntimeError for an answer that is no 2xx or has no length, and for a closed connection.
    """
    loop = asyncio.get_running_loop()
    count = len(requests)
    left = _Left(iter(requests), count, loop.create_future())
    made = [
        await loop.create_connection(lambda: _Asking(left), "127.0.0.1", port)
        for _ in range(CONNECTIONS)
    ]
    cpu_before, began = cpu_us(pid), time.perf_counter()
    try:
        for _, asking in made:
            asking.ask()
        await left.over
        took, cpu = time.perf_counter() - began, cpu_us(pid) - cpu_before
    finally:
        for transport, _ in made:
            transport.close()
    times = sorted(left.times_s)
    return Round(
        cpu_us=cpu / count,
        per_second=count / took,
        p50_ms=times[len(times) // 2] * 1000,
        p99_ms=times[math.ceil(len(times) * 0.99) - 1] * 1000,
    )


async def times_ms(
    port: int, requests: Iterable[bytes], pause: Callable[[], Awaitable[None]]
) -> list[float]:
    """Send each request over one connection, each after a pause; how long each answer took.

    Raises RuntimeError as `round_of_many` does.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times = []
    try:
        for request in requests:
            await pause()
            began = time.perf_counter()
            writer.write(request)
            length = _length((await reader.readuntil(b"\r\n\r\n"))[:-4])
            if isinstance(length, str):
                raise RuntimeError(length)
            await reader.readexactly(length)
            times.append((time.perf_counter() - began) * 1000)
    finally:
        writer.close()
    return times


def cpu_us(pid: int) -> float:
    """Microseconds that all threads of a process have run so far."""
    return sum(_ran_ns(pid)) / 1000


def children_us(pid: int) -> float:
    """Microseconds that the ended children of a process have run; counted in ticks of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    # proc_pid_stat(5): cutime and cstime, the 16th and 17th; two stand before the name's end.
    return (int(fields[13]) + int(fields[14])) * 1_000_000 / os.sysconf("SC_CLK_TCK")


def _ran_ns(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        yield int((task / "schedstat").read_text().split()[0])


class _Left:
    """What is still to be asked in this round, by any connection."""

    def __init__(self, requests: Iterator[bytes], count: int, over: "asyncio.Future[None]") -> None:
        self.requests = requests
        self.count = count
        self.over = over
        self.waiting = 0
        self.times_s: list[float] = []


class _Asking(asyncio.Protocol):
    """One connection that asks as long as there is anything left."""

    def __init__(self, left: _Left) -> None:
        self._left = left
        self._got = bytearray()
        self._expected = 0
        self._began = 0.0
        self._is_asking = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def ask(self) -> None:
        """Send one request, if one is left."""
        left = self._left
        if left.count == 0:
            return
        left.count -= 1
        left.waiting += 1
        self._is_asking = True
        self._began = time.perf_counter()
        self._transport.write(next(left.requests))

    def data_received(self, data: bytes) -> None:
        self._got += data
        if not self._expected:
            end = self._got.find(b"\r\n\r\n")
            if end < 0:
                return
            length = _length(bytes(self._got[:end]))
            if isinstance(length, str):
                self._give_up(length)
                return
            self._expected = end + 4 + length
        if len(self._got) < self._expected:
            return
        self._expected = 0
        self._got.clear()
        self._answered()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody will answer here.

        Says nothing where nothing was asked: the server ends connections that are idle while
        others wait for a slow answer.
        """
        if self._is_asking:
            self._give_up(f"the connection was closed ({exc or 'by the server'})")

    def _give_up(self, why: str) -> None:
        if not self._left.over.done():
            self._left.over.set_exception(RuntimeError(why))

    def _answered(self) -> None:
        left = self._left
        self._is_asking = False
        left.times_s.append(time.perf_counter() - self._began)
        left.waiting -= 1
        self.ask()
        if not left.waiting and not left.count and not left.over.done():
            left.over.set_result(None)


def _length(head: bytes) -> int | str:
    """The length of the body that follows, or why the round cannot go on."""
    if not head.startswith(b"HTTP/1.1 2"):
        return f"not a success: {head[:100]!r}"
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return "an answer without length"
