"""The loop and its network do what processes and connections do."""

import asyncio
import socket
from contextvars import copy_context

import pytest

from tests.whole_service.loop import PROCESS, NothingLeft, rest
from tests.whole_service.network import HOST, NetworkLoop


def started(loop: NetworkLoop, name: str, work) -> "asyncio.Task[None]":
    """Work of a process."""
    context = copy_context()
    context.run(PROCESS.set, name)
    return loop.create_task(work, context=context)


def test_a_dead_process_takes_no_step_not_even_of_its_clean_up() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await rest(10)
            seen.append("worked")
        finally:
            seen.append("cleaned up")

    async def story(loop: NetworkLoop) -> None:
        task = started(loop, "one", work())
        await rest(1)
        loop.kill("one")
        await rest(100)
        assert seen == []
        assert loop.bury() == [task]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert seen == ["cleaned up"]

    with asyncio.Runner(loop_factory=NetworkLoop) as runner:
        runner.run(story(runner.get_loop()))  # type: ignore[arg-type]  # the factory's own


def test_hours_pass_at_once_and_threads_run_where_they_are_asked_for() -> None:
    async def story(loop: NetworkLoop) -> None:
        await rest(36_000)
        assert loop.time() >= 36_000
        assert await asyncio.to_thread(sum, (1, 2)) == 3

    with asyncio.Runner(loop_factory=NetworkLoop) as runner:
        runner.run(story(runner.get_loop()))  # type: ignore[arg-type]  # the factory's own


def test_bytes_arrive_in_order_although_each_takes_its_own_time() -> None:
    async def story(loop: NetworkLoop) -> None:
        waits = iter((0.0, 0.5, 0.1, 0.4, *([0.0] * 20)))
        loop.latency_s = lambda: next(waits)
        got: asyncio.Future[bytes] = loop.create_future()

        class Taker(asyncio.Protocol):
            said = b""

            def data_received(self, data: bytes) -> None:
                self.said += data

            def connection_lost(self, _: Exception | None) -> None:
                got.set_result(self.said)

        server = await loop.create_server(Taker, HOST, 0)
        sock = socket.socket()
        await loop.sock_connect(sock, server.sockets[0].getsockname())
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=sock)
        for word in (b"one ", b"two ", b"three"):
            transport.write(word)
        transport.close()
        assert await got == b"one two three"
        server.close()
        with pytest.raises(ConnectionRefusedError):
            await loop.sock_connect(sock, server.sockets[0].getsockname())

    with asyncio.Runner(loop_factory=NetworkLoop) as runner:
        runner.run(story(runner.get_loop()))  # type: ignore[arg-type]  # the factory's own


def test_who_waits_for_nothing_is_told_so() -> None:
    async def story() -> None:
        await asyncio.Event().wait()

    with pytest.raises(NothingLeft), asyncio.Runner(loop_factory=NetworkLoop) as runner:
        runner.run(story())
