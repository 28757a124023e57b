"""The same life in real processes: the memory of the service and that of its stand-in, apart."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.test_two_processes import REPO_REF, open_one, seed, token
from tests.harness.processes import Service, Stage, stage

WAVE = 20
WAVES = int(os.environ.get("HEADGATE_AGE_WAVES", "50"))
WARM = WAVES // 5
"""Waves in which caches fill first."""
SERVICE_MAX = 60_000
"""Bytes of the service's memory that a pull request may take, while caches fill."""
STAND_IN_MAX = 300_000
"""The same of the stand-in: the pull request itself, its checks, and logs up to their bounds."""
WAVE_WITHIN_S = 900.0
SPARE = 8
"""Descriptors that come and go."""
QUEUE: dict[str, Any] = {
    "repo": REPO_REF,
    "targetBranch": "main",
    "batch": True,
    "batchingMinSize": WAVE // 2,
    "batchingMaxWaitTimeMinutes": 1,
}


def measured(service: Service, set_up: Stage) -> dict[str, int]:
    """Bytes and descriptors of both processes, and the bytes of the database."""
    pids = {"service": service.process.pid, "stand-in": set_up.sandbox_pid}
    page = os.sysconf("SC_PAGESIZE")
    found = {"database": sum(each.stat().st_size for each in set_up.folder.glob("headgate.db*"))}
    for name, pid in pids.items():
        found[name] = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
        found[f"descriptors of {name}"] = len(os.listdir(f"/proc/{pid}/fd"))
    return found


async def live_once(set_up: Stage, service: Service, secret: str, wave: int) -> None:
    """Let one wave be opened, submitted, tested in batches and merged."""
    numbers = [await open_one(set_up, f"wave-{wave}-{place}") for place in range(WAVE)]
    for number in numbers:
        body = {"repo": REPO_REF, "targetBranch": "main", "pr": {"number": number}}
        status, answer = await set_up.api(service, "submitPullRequest", secret, **body)
        assert status == 200, answer
    async with asyncio.timeout(WAVE_WITHIN_S):
        while not all([(await set_up.pull(number)).get("merged") for number in numbers]):
            await set_up.clock.sleep(1)


@pytest.mark.soak
async def test_neither_process_keeps_much_of_a_pull_request(tmp_path: Path) -> None:
    async with stage(tmp_path) as set_up:
        await seed(set_up)
        async with set_up.serving() as service:
            secret = await token(set_up)
            status, answer = await set_up.api(service, "createQueue", secret, **QUEUE)
            assert status == 200, answer
            samples = []
            for wave in range(WAVES + WARM):
                await live_once(set_up, service, secret, wave)
                samples.append(measured(service, set_up))
                print((wave + 1) * WAVE, samples[-1])
    first, last = samples[WARM - 1], samples[-1]
    grown = {name: (last[name] - value) / (WAVES * WAVE) for name, value in first.items()}
    assert grown["service"] <= SERVICE_MAX, grown
    assert grown["stand-in"] <= STAND_IN_MAX, grown
    assert last["descriptors of service"] <= first["descriptors of service"] + SPARE
    assert last["descriptors of stand-in"] <= first["descriptors of stand-in"] + SPARE
