"""The service's writes, its start and its calls."""

import asyncio
import hashlib
import hmac
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from service.clock import SystemClock
from tests.bench import budget, databases, load, start, targets
from tests.bench.databases import Fresh
from tests.bench.load import Round
from tests.bench.service_server import SECRET

ROUNDS = 5
DELIVERIES = 1_000
SUBMISSIONS = 100
EVENTS = 100
EVENTS_PER_SECOND = 100
BODY_BYTES = 18_500
TARGETS_RATIO_GOALS = {"sqlite": 4.0, "postgresql": 5.0}
CLOCK = SystemClock()
Row = dict[str, object]


@dataclass
class Server:
    """The process under test, and what it said of itself."""

    process: "subprocess.Popen[str]"
    about: dict[str, Any]

    @property
    def pid(self) -> int:
        """Its id."""
        return self.process.pid

    def tell(self, line: str) -> Any:
        """Say one line; its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@contextmanager
def serving(fresh: Fresh, concurrency: int, workers: str) -> Iterator[Server]:
    """A server over values whose queue tests so many at once, ended at the end."""
    with fresh() as url, served(url, concurrency, workers) as server:
        yield server


@contextmanager
def served(url: str, concurrency: int, workers: str) -> Iterator[Server]:
    """The same over this database."""
    module = "tests.bench.service_server"
    command = [sys.executable, "-m", module, url, str(concurrency), workers]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield Server(process, json.loads(process.stdout.readline()))
        finally:
            process.stdin.close()


def run(scale: float = 1.0) -> Sequence[Row]:
    """Measure every subject, requests over each database; `scale` multiplies the work."""
    rows: list[Row] = []
    with databases.kinds() as kinds:
        for database, fresh in kinds.items():
            rows += over(database, fresh, scale)
    with TemporaryDirectory() as folder:
        return [*rows, *start.run(Path(folder), scale), budget.run()]


def over(database: str, fresh: Fresh, scale: float) -> Iterator[Row]:
    """What is measured over one database."""
    with serving(fresh, 5, "rests") as server:
        count = max(20, int(DELIVERIES * scale))
        yield {**asyncio.run(deliveries(server, count)), "database": database}
        count = max(10, int(SUBMISSIONS * scale))
        yield {**asyncio.run(submissions(server, count)), "database": database}
        goal = TARGETS_RATIO_GOALS[database]
        yield {**asyncio.run(targets.run(server)), "database": database, "ratio_goal": goal}
    with serving(fresh, EVENTS, "works") as server:
        yield {**asyncio.run(decisions(server)), "database": database}


async def deliveries(server: Server, count: int) -> Row:
    """V4: a webhook verified, typed, deduplicated, stored, answered."""
    rounds = []
    for number in range(ROUNDS + 1):
        requests = [delivery(f"v4-{number}-{n}", "0" * 40) for n in range(count)]
        pid = server.process.pid
        rounds.append(await load.round_of_many(server.about["port"], pid, requests))
    return row("V4", f"webhook of {BODY_BYTES} bytes", rounds[1:])


async def submissions(server: Server, count: int) -> Row:
    """V6: a pull request submitted, its turn included, the provider answering at once."""
    rounds = []
    for number in range(ROUNDS + 1):
        first = 10_000 + number * count
        requests = [submission(server, first + n) for n in range(count)]
        pid = server.process.pid
        rounds.append(await load.round_of_many(server.about["port"], pid, requests))
    return row("V6", "submitPullRequest", rounds[1:])


async def decisions(server: Server) -> Row:
    """V5: from a stored check event to the committed turn, at 100 events a second."""
    port, pid = server.about["port"], server.process.pid
    await load.round_of_many(port, pid, [submission(server, n) for n in range(1, EVENTS + 1)])
    server.tell("built")
    server.tell("pause")
    shas = server.tell("green")
    for number, sha in enumerate(shas):
        began = time.perf_counter()
        await load.round_of_many(port, pid, [delivery(f"v5-{number}", sha)])
        await CLOCK.sleep(max(0.0, 1 / EVENTS_PER_SECOND - (time.perf_counter() - began)))
    taken = sorted(server.tell("report"))
    return {
        "goal": "V5",
        "subject": f"check event to decision, {len(taken)} events",
        "p50_ms": round(statistics.median(taken), 1),
        "p50_goal_ms": 15,
        "p99_ms": round(taken[int(len(taken) * 0.99) - 1], 1),
        "p99_goal_ms": 60,
    }


def delivery(guid: str, sha: str) -> bytes:
    """A signed `check_run` delivery."""
    payload = {
        "action": "completed",
        "check_run": {"head_sha": sha, "conclusion": "success", "app": {"id": 7}},
        "repository": {"id": 1, "full_name": "octo/widgets"},
        "sender": {"id": 2, "login": "ci", "type": "Bot"},
        "padding": "",
    }
    payload["padding"] = "x" * (BODY_BYTES - len(json.dumps(payload)))
    body = json.dumps(payload).encode()
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    head = (
        "POST /webhooks/github HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        f"X-GitHub-Event: check_run\r\nX-GitHub-Delivery: {guid}\r\n"
        f"X-Hub-Signature-256: sha256={signature}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def submission(server: Server, number: int) -> bytes:
    """A call of `/submitPullRequest`."""
    repo = {"host": server.about["host"], "owner": "octo", "name": "widgets"}
    body = json.dumps({"repo": repo, "targetBranch": "main", "pr": {"number": number}}).encode()
    head = (
        "POST /v1/submitPullRequest HTTP/1.1\r\nHost: bench\r\n"
        f"x-api-token: {server.about['token']}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def row(goal: str, subject: str, rounds: list[Round]) -> Row:
    """One line of the table."""
    return {
        "goal": goal,
        "subject": subject,
        "cpu_us": round(statistics.median(each.cpu_us for each in rounds), 1),
        "per_second": round(statistics.median(each.per_second for each in rounds)),
    }
