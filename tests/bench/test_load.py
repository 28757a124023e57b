"""The load ends, also where the server does not answer as it should."""

import asyncio
import os
from contextlib import suppress

import pytest

from tests.bench import load

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


async def a_round(answer: bytes, *, closes: bool = False) -> load.Round:
    """Twenty requests to a server that says the same to each."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readline():
                writer.write(answer)
                if closes:
                    break
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(10):
            return await load.round_of(port, os.getpid(), b"ask\n", 20)


async def test_a_round_of_answers_is_measured():
    measured = await a_round(OK)
    assert measured.per_second > 0
    assert measured.p50_ms <= measured.p99_ms


@pytest.mark.parametrize(
    ("answer", "closes", "why"),
    [
        (OK.replace(b"200 OK", b"404 Not Found"), False, "not a success: .*404"),
        (b"HTTP/1.1 200 OK\r\n\r\n", False, "without length"),
        (OK[:20], True, "closed"),
    ],
)
async def test_a_round_that_cannot_go_on_says_why(answer, closes, why):
    with pytest.raises(RuntimeError, match=why):
        await a_round(answer, closes=closes)


async def test_a_slow_answer_is_awaited_where_the_server_ends_idle_connections():
    everybody_came, idle = asyncio.Event(), list[asyncio.StreamWriter]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        idle.append(writer)
        if len(idle) == load.CONNECTIONS:
            everybody_came.set()
        if await reader.readline():
            await everybody_came.wait()
            idle.remove(writer)
            for other in idle:
                other.close()
                await other.wait_closed()
            # A round trip, in which the other side learns of the ends.
            writer.write(OK[:20])
            await writer.drain()
            writer.write(OK[20:])
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(10):
            measured = await load.round_of(port, os.getpid(), b"ask\n", 1)
    assert measured.p50_ms > 0
