"""`serve` as a real process whose database goes away: it waits, refuses, and goes on."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.end_to_end.test_kill import lands_once
from tests.end_to_end.test_two_processes import comment, open_one, seed
from tests.harness.databases import Server
from tests.harness.machine import free_port
from tests.harness.processes import LOOK_EVERY_S, NeverHappened, Stage, stage


async def answers(set_up: Stage, url: str, path: str, status: int, within_s: float = 30) -> None:
    """Wait until the address is answered with this status."""
    deadline = set_up.clock.monotonic_s() + within_s
    seen: object = None
    while set_up.clock.monotonic_s() < deadline:
        try:
            async with set_up.http.get(f"{url}{path}") as answer:
                seen = answer.status
        except OSError as refused:
            seen = refused
        if seen == status:
            return
        await set_up.clock.sleep(LOOK_EVERY_S)
    raise NeverHappened(f"{path} answers {seen}, not {status}")


@pytest.mark.fault(
    "the database is away at the start",
    holds="the service waits and lands what came meanwhile",
    within="150 s",
)
async def test_serve_waits_for_a_database_that_is_away_and_lands_what_came_meanwhile(
    outage_url: str, own_postgres: Server, tmp_path: Path
) -> None:
    own_postgres.halt("fast")
    async with stage(tmp_path, outage_url) as set_up:
        await seed(set_up)
        address = f"http://127.0.0.1:{free_port()}"
        set_up.environment["HEADGATE_PORT"] = address.rpartition(":")[2]
        starting = asyncio.create_task(set_up.start())
        try:
            await answers(set_up, address, "/healthz", 200)
            await answers(set_up, address, "/readyz", 503)
            await answers(set_up, address, "/v1/tokens/self", 503)
            own_postgres.begin()
            service = await starting
            await answers(set_up, address, "/readyz", 200)
            own_postgres.halt("immediate")
            await answers(set_up, address, "/readyz", 503)
            await answers(set_up, address, "/healthz", 200)
            own_postgres.begin()
            await answers(set_up, address, "/readyz", 200)
            with own_postgres.hung():
                await answers(set_up, address, "/readyz", 503)
            await answers(set_up, address, "/readyz", 200)
            number = await open_one(set_up)
            await comment(set_up, number, "/merge")
            await lands_once(set_up, number)
            service.process.terminate()
            assert await service.ended() == 0
        finally:
            starting.cancel()


async def test_serve_ends_when_it_is_told_to_while_it_waits_for_its_database(
    outage_url: str, own_postgres: Server, tmp_path: Path
) -> None:
    own_postgres.halt("fast")
    async with stage(tmp_path, outage_url) as set_up:
        address = f"http://127.0.0.1:{free_port()}"
        set_up.environment["HEADGATE_PORT"] = address.rpartition(":")[2]
        starting = asyncio.create_task(set_up.start())
        await answers(set_up, address, "/readyz", 503)
        process = set_up.processes[-1]
        os.kill(process.pid or 0, signal.SIGTERM)
        assert not (await starting).url
        assert process.exitcode == 0
    own_postgres.begin()
