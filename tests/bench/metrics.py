"""The metrics page of 50 queues.

Measured while nothing changes but the clock; at a larger scale also with ten times the history.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import product

from tests.bench import api, databases, load
from tests.bench.load import Round

ROUNDS = 5
PAGES = 20
CPU_MS_GOAL = 20.0
MONTHS = (1, 10)


def run(scale: float = 1.0) -> Sequence[dict[str, object]]:
    """Measure every subject over each database; `scale` multiplies the pages of a round."""
    pages = max(10, int(PAGES * scale))
    lengths = MONTHS if scale > 1 else MONTHS[:1]
    found = []
    with databases.kinds() as kinds:
        for months, database in product(lengths, kinds):
            with kinds[database]() as url:
                found.append(measured(months, database, url, pages))
    return found


def measured(months: int, database: str, url: str, pages: int) -> dict[str, object]:
    """One line of the table."""
    command = [sys.executable, "-m", "tests.bench.metrics_server", url, str(months)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        about = json.loads(server.stdout.readline())
        try:
            taken = asyncio.run(rounds(about, server.pid, pages))
        finally:
            server.stdin.close()
    return {
        "goal": "V8",
        "subject": f"50 queues, months of history: {months}",
        "database": database,
        "bytes": about["bytes"],
        "requests": pages * ROUNDS,
        **api.columns(taken),
        "cpu_goal_ms": CPU_MS_GOAL,
    }


async def rounds(about: dict[str, object], pid: int, pages: int) -> list[Round]:
    """Return rounds of pages; the first round is left out."""
    head = f"GET {about['path']} HTTP/1.1\r\nHost: bench\r\nx-api-token: {about['token']}\r\n\r\n"
    request = head.encode()
    port = int(str(about["port"]))
    return [await load.round_of(port, pid, request, pages) for _ in range(ROUNDS + 1)][1:]
