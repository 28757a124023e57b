"""Hot reads of the API beside a bare handler that returns the same bytes.

Rounds alternate between the two; the ratio is between medians of server CPU per request. Over
PostgreSQL what its server spends is not in it.
"""

import asyncio
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from tests.bench import databases, load
from tests.bench.load import Round

ROUNDS = 5
REQUESTS = 600


@dataclass(frozen=True)
class Subject:
    """One line of the table: what is asked, of how large a queue, and the goal."""

    number: str
    endpoint: str
    entries: int
    goals: Mapping[str, float]
    changing: bool = False

    @property
    def what(self) -> str:
        """As the table calls it."""
        changing = ", one changed between any two reads" if self.changing else ""
        return f"{self.endpoint}, {self.entries} entries{changing}"


SUBJECTS = (
    Subject("V1", "getSubmittedPullRequest", 100, {"sqlite": 1.7, "postgresql": 3.0}),
    Subject("V2", "getQueue", 100, {"sqlite": 1.8, "postgresql": 3.0}),
    Subject("V2", "getQueue", 1_000, {"sqlite": 1.8, "postgresql": 3.0}),
    Subject("V3", "getQueue", 1_000, {"sqlite": 3.0, "postgresql": 5.0}, changing=True),
)


def run(scale: float = 1.0) -> list[dict[str, Any]]:
    """Measure every subject over each database; `scale` multiplies the requests of a round."""
    requests = max(50, int(REQUESTS * scale))
    found = []
    with databases.kinds() as kinds:
        for subject, database in product(SUBJECTS, kinds):
            with kinds[database]() as url:
                found.append(measured(subject, database, url, requests))
    return found


def measured(subject: Subject, database: str, url: str, requests: int) -> dict[str, Any]:
    """One line of the table."""
    command = [sys.executable, "-m", "tests.bench.api_server", url, str(subject.entries)]
    command += ["changing"] if subject.changing else []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        about = json.loads(server.stdout.readline())
        try:
            ours, bare = asyncio.run(rounds(subject, about, server.pid, requests))
        finally:
            server.stdin.close()
    return {
        "goal": subject.number,
        "subject": subject.what,
        "database": database,
        "requests": requests * ROUNDS,
        **columns("service", ours),
        **columns("bare", bare),
        "ratio": round(median(ours) / median(bare), 2),
        "ratio_goal": subject.goals[database],
    }


async def rounds(
    subject: Subject, about: dict[str, Any], pid: int, requests: int
) -> tuple[list[Round], list[Round]]:
    """Rounds of the service and of the bare handler, one after the other; the first is left out."""
    body = json.dumps(about["requests"][subject.endpoint]).encode()
    head = (
        f"POST /v1/{subject.endpoint} HTTP/1.1\r\nHost: bench\r\nx-api-token: {about['token']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    request = head.encode() + body
    ours, bare = [], []
    for _ in range(ROUNDS + 1):
        ours.append(await load.round_of(about["port"], pid, request, requests))
        bare.append(await load.round_of(about["bare"], pid, request, requests))
    return ours[1:], bare[1:]


def median(rounds_: list[Round]) -> float:
    """CPU of the middle round, in microseconds a request."""
    return statistics.median(each.cpu_us for each in rounds_)


def columns(who: str, rounds_: list[Round]) -> dict[str, float]:
    """What is printed of one side."""
    return {
        f"{who}_cpu_us": round(median(rounds_), 1),
        f"{who}_per_second": round(statistics.median(each.per_second for each in rounds_)),
        f"{who}_p50_ms": round(statistics.median(each.p50_ms for each in rounds_), 2),
        f"{who}_p99_ms": round(statistics.median(each.p99_ms for each in rounds_), 2),
    }
