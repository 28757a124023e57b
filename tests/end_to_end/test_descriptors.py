"""A process that may open few files keeps enough of them for its work, whoever connects."""

import asyncio
import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from bot.cli.exits import Exit
from service.http.connections import IDLE_S, OWN_DESCRIPTORS
from tests.end_to_end.test_two_processes import comment, open_one, seed
from tests.harness.processes import LOOK_EVERY_S, NeverHappened, Service, Stage, stage

FILES = 600
CALLERS = 700
AT_MOST_OPEN = FILES - OWN_DESCRIPTORS // 2
WITHIN_S = IDLE_S - 3
"""Connections that say nothing are closed after `IDLE_S` in any case."""


async def connect(service: Service) -> asyncio.StreamWriter | None:
    """Connect, and say nothing; None where that is refused."""
    host, _, port = service.url.removeprefix("http://").partition(":")
    with suppress(OSError):
        return (await asyncio.open_connection(host, int(port)))[1]
    return None


def opened(service: Service) -> int:
    """The number of files that the process has open."""
    return len(os.listdir(f"/proc/{service.process.pid}/fd"))


async def comes_to_rest(set_up: Stage, service: Service) -> None:
    """Wait until connections that are too many have been closed."""
    deadline = set_up.clock.monotonic_s() + WITHIN_S
    while opened(service) > AT_MOST_OPEN:
        if set_up.clock.monotonic_s() > deadline:
            raise NeverHappened(f"{opened(service)} files of {FILES} are open")
        await set_up.clock.sleep(LOOK_EVERY_S)


@pytest.mark.fault(
    "more clients connect than the process may open files",
    holds="a part of its files is kept from them, and pull requests land meanwhile",
    within="150 s",
)
async def test_connections_leave_files_for_the_work(tmp_path: Path) -> None:
    async with stage(tmp_path) as set_up:
        await seed(set_up)
        async with set_up.serving() as service:
            await set_up.ready(service)
            resource.prlimit(service.process.pid or 0, resource.RLIMIT_NOFILE, (FILES, FILES))
            number = await open_one(set_up, "crowded")
            callers = await asyncio.gather(*(connect(service) for _ in range(CALLERS)))
            await comes_to_rest(set_up, service)
            await comment(set_up, number, "/merge")
            await set_up.landed(number)
            for each in filter(None, callers):
                each.close()


def test_a_process_that_may_open_too_few_files_is_refused(tmp_path: Path) -> None:
    line = f'ulimit -n 64; exec "{sys.executable}" -m bot serve'
    environment = {
        "PATH": os.defpath,
        "PYTHONPATH": os.getcwd(),
        "HEADGATE_SECRET_KEY": "c2VjcmV0LWtleS1vZi1hLXRlc3Qtd29ybGQtMDEyMzQ1Njc4OTAx",
        "HEADGATE_DATA_DIR": str(tmp_path),
    }
    run = subprocess.run(
        ["sh", "-c", line], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == Exit.START_REFUSED
    assert "may open 64 files, and needs 512" in run.stderr
