"""The metrics page of 50 queues beside a bare handler of the same bytes.

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
GOALS = {"sqlite": 5.0, "postgresql": 6.0}
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
            ours, bare = asyncio.run(rounds(about, server.pid, pages))
        finally:
            server.stdin.close()
    return {
        "goal": "V8",
        "subject": f"50 queues, months of history: {months}",
        "database": database,
        "bytes": about["bytes"],
        "requests": pages * ROUNDS,
        **api.columns("service", ours),
        **api.columns("bare", bare),
        "ratio": round(api.median(ours) / api.median(bare), 2),
        "ratio_goal": GOALS[database],
    }


async def rounds(about: dict[str, object], pid: int, pages: int) -> tuple[list[Round], list[Round]]:
    """Rounds of the service and of the bare handler, one after the other; the first is left out."""
    head = f"GET {about['path']} HTTP/1.1\r\nHost: bench\r\nx-api-token: {about['token']}\r\n\r\n"
    request = head.encode()
    ours, bare = [], []
    for _ in range(ROUNDS + 1):
        ours.append(await load.round_of(int(str(about["port"])), pid, request, pages))
        bare.append(await load.round_of(int(str(about["bare"])), pid, request, pages))
    return ours[1:], bare[1:]
