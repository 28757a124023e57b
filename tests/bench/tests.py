"""The lists of 100,000 tests beside a bare handler of the same bytes (PERFORMANCE.md V9).

Pages of 100 rows, the first twenty of each list in turn; once with ten days of history, and
once with 45.
"""

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench import api, load
from tests.bench.load import Round
from tests.bench.tests_server import FOLDER

ROUNDS = 5
PAGES = 200
GOAL = 12.0
DAYS = (10, 45)


def run(scale: float = 1.0) -> Sequence[dict[str, object]]:
    """Measure every list; `scale` multiplies the pages of a round."""
    return [row for days in DAYS for row in measured(days, max(20, int(PAGES * scale)))]


def measured(days: int, pages: int) -> list[dict[str, object]]:
    """The lines of the table for so much history."""
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/bench.db"
        command = [sys.executable, "-m", "tests.bench.tests_server", url, str(days), folder]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            assert server.stdin is not None
            about = json.loads(server.stdout.readline())
            try:
                return [
                    line(name, days, asyncio.run(rounds(about, name, server.pid, pages)))
                    for name in about["lists"]
                ]
            finally:
                server.stdin.close()


def line(name: str, days: int, taken: tuple[list[Round], list[Round]]) -> dict[str, object]:
    """One line of the table."""
    ours, bare = taken
    return {
        "goal": "V9",
        "subject": f"{name}, days of history: {days}",
        **api.columns("service", ours),
        **api.columns("bare", bare),
        "ratio": round(api.median(ours) / api.median(bare), 2),
        "ratio_goal": GOAL,
    }


async def rounds(
    about: dict[str, Any], name: str, pid: int, pages: int
) -> tuple[list[Round], list[Round]]:
    """Rounds of the service and of the bare handler, one after the other; the first is left out."""
    path = f"{FOLDER}/{name}"
    each = [request(path, about["token"], body) for body in about["lists"][name]]
    sent = list(itertools.islice(itertools.cycle(each), pages))
    ours, bare = [], []
    for _ in range(ROUNDS + 1):
        ours.append(await load.round_of_many(about["port"], pid, sent))
        bare.append(await load.round_of_many(about["bare"], pid, sent))
    return ours[1:], bare[1:]


def request(path: str, token: str, body: str) -> bytes:
    """A request as it goes over the wire."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: bench\r\nx-api-token: {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return (head + body).encode()
