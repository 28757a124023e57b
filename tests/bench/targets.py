"""Impacted targets of 20 MiB, as large as a body may be.

The reference is the standard library's `json.loads` over the same bytes, in this process. The
names of each round are new ones: a set that is known already would cost less.
"""

import json
import statistics
import time
from pathlib import Path
from typing import Protocol

from tests.bench import load
from tests.bench.load import Round

BODY_BYTES = 20 * 1024 * 1024
ROUNDS = 5
# A name of the body with its quotes, comma and space.
NAME_BYTES = 44


class Served(Protocol):
    """The process under test."""

    @property
    def about(self) -> dict[str, object]:
        """Where it is, and a token."""
        ...

    @property
    def pid(self) -> int:
        """Its id."""
        ...

    def tell(self, line: str) -> float:
        """Say one line; its answer."""
        ...


async def run(server: Served) -> dict[str, object]:
    """One line of the table."""
    rounds: list[Round] = []
    references, stalls, peaks = [], [], []
    port = int(str(server.about["port"]))
    for number in range(ROUNDS + 1):
        body = body_of(server, number)
        references.append(parse_us(body))
        before = start_peak(server.pid)
        server.tell("beat")
        request = head(server, len(body)) + body
        rounds.append(await load.round_of_many(port, server.pid, [request]))
        stalls.append(server.tell("stall"))
        peaks.append((memory(server.pid, "VmHWM") - before) / len(body))
    mine = statistics.median(each.cpu_us for each in rounds[1:])
    reference = statistics.median(references[1:])
    return {
        "goal": "V7",
        "subject": "setImpactedTargets, 20 MiB",
        "service_cpu_us": round(mine),
        "json_loads_cpu_us": round(reference),
        "ratio": round(mine / reference, 2),
        "stall_ms": round(max(stalls[1:]), 1),
        "stall_goal_ms": 10,
        "memory_per_body": round(max(peaks[1:]), 1),
        "memory_per_body_goal": 6,
    }


def body_of(server: Served, number: int) -> bytes:
    """A body of exactly 20 MiB whose names no round before had."""
    whole = {
        "repo": {"host": server.about["host"], "owner": "octo", "name": "widgets"},
        "targetBranch": "main",
        "pr": {"number": 900_000 + number, "sha": f"{number:040x}"},
        "impactedTargets": [],
        "pad": "",
    }
    left = BODY_BYTES - len(json.dumps(whole))
    names = [f"//round-{number}/package-{n:08}:library-of-it" for n in range(left // NAME_BYTES)]
    whole["impactedTargets"] = names
    whole["pad"] = "x" * (BODY_BYTES - len(json.dumps(whole)))
    return json.dumps(whole).encode()


def head(server: Served, length: int) -> bytes:
    """The head of the request."""
    return (
        "POST /v1/setImpactedTargets HTTP/1.1\r\nHost: bench\r\n"
        f"x-api-token: {server.about['token']}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def parse_us(body: bytes) -> float:
    """CPU microseconds of the standard library's parser."""
    began = time.process_time()
    json.loads(body)
    return (time.process_time() - began) * 1_000_000


def start_peak(pid: int) -> int:
    """Let the kernel measure the peak anew; bytes resident now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return memory(pid, "VmRSS")


def memory(pid: int, name: str) -> int:
    """Bytes of one line of a process's memory account."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = next(line for line in lines if line.startswith(f"{name}:"))
    return int(found.split()[1]) * 1024
