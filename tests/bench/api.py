"""Reads of a queue as a client or a browser waits for them: one connection, one read at a time.

An entry changes before every read, as a turn's commit would leave it, unless the subject says
otherwise. A goal bounds the server's CPU, which is the time until the answer on an idle machine.
"""

import asyncio
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tests.bench import databases, load
from tests.bench.load import Round

REQUESTS = 100
WARM_UP = 5


@dataclass(frozen=True)
class Subject:
    """One line of the table: which read, of how large a queue, and the goal."""

    endpoint: str
    entries: int
    cpu_goal_ms: float
    is_changing: bool = True

    @property
    def name(self) -> str:
        """Return the subject as the table calls it."""
        changing = "an entry changes before each read" if self.is_changing else "no changes"
        return f"{self.endpoint}, {self.entries} entries, {changing}"


SUBJECTS = (
    Subject("getSubmittedPullRequest", 1_000, 50),
    Subject("getQueue", 400, 50),
    Subject("getQueue", 1_000, 120),
    Subject("queue page", 400, 50),
    Subject("queue page", 1_000, 120),
    Subject("getQueue", 1_000, 120, is_changing=False),
)


def run(scale: float = 1.0) -> list[dict[str, Any]]:
    """Measure every subject over each database; `scale` multiplies the reads."""
    count = max(20, int(REQUESTS * scale))
    rows = []
    with databases.kinds() as kinds:
        for subject, database in product(SUBJECTS, kinds):
            with kinds[database]() as url:
                rows.append(measured(subject, database, url, count))
    return rows


def measured(subject: Subject, database: str, url: str, count: int) -> dict[str, Any]:
    """Return one line of the table."""
    command = [sys.executable, "-m", "tests.bench.api_server", url, str(subject.entries)]
    command += ["changing"] if subject.is_changing else []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        about = json.loads(server.stdout.readline())
        try:
            request = about["requests"][subject.endpoint].encode()
            asyncio.run(load.times_ms(about["port"], [request] * WARM_UP, no_pause))
            before = load.cpu_us(server.pid)
            times = sorted(asyncio.run(load.times_ms(about["port"], [request] * count, no_pause)))
            cpu_ms = (load.cpu_us(server.pid) - before) / count / 1000
        finally:
            server.stdin.close()
    return {
        "goal": "V1",
        "subject": subject.name,
        "database": database,
        "cpu_ms": round(cpu_ms, 2),
        "cpu_goal_ms": subject.cpu_goal_ms,
        "p50_ms": round(statistics.median(times), 1),
        "p95_ms": round(times[int(len(times) * 0.95)], 1),
    }


async def no_pause() -> None:
    """Send the next request at once."""


def columns(rounds: Sequence[Round]) -> dict[str, float]:
    """Return the figures of the middle round."""
    return {
        "cpu_ms": round(statistics.median(each.cpu_us for each in rounds) / 1000, 2),
        "per_second": round(statistics.median(each.per_second for each in rounds)),
        "p50_ms": round(statistics.median(each.p50_ms for each in rounds), 2),
        "p99_ms": round(statistics.median(each.p99_ms for each in rounds), 2),
    }
