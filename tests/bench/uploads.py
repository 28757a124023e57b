"""Uploads of 100,000 cases from the wire to the answer (docs/design/detector.md 13).

Known tests and new ones by turns, on both databases. `cpu_s` is what the service and its parsers
compute; PostgreSQL's own work is in `wall_s` alone. Beside it stand the parse of the same bytes
to results and the bare one by lxml; the ratio is to the former. `plain_s` is the wall time of the
plainest way to store as many names in the same database and the same round: COPY on PostgreSQL, one
prepared statement on SQLite, into a table with one unique index. `waited_ms` is how long another
writer waited at most, in rounds of its own: what it computes is no part of an upload.
"""

import asyncio
import gc
import json
import sqlite3
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import psycopg

from service.testhealth.reports import reports
from service.testhealth.reports.reading import ReadOptions
from tests.bench import databases, load
from tests.bench import reports as parsing
from tests.bench.service import Server

ROUNDS = 3
WATCHED_ROUNDS = 2
CASES = 100_000
FAILING_EVERY = 1000
WALL_GOALS_S = {"known": 4.0, "new": 6.0}
RATIO_GOALS = {"known": 5.0, "new": 10.0}
WAITED_GOAL = {"waited_goal_ms": 250}
PLAIN_TABLE = """
    CREATE TABLE plain (repository_id int, id text, name text, file text, line int,
    UNIQUE (repository_id, id))
"""
DROP_PLAIN_TABLE = "DROP TABLE plain"
BOUNDARY = "a-boundary-of-parts"
Row = dict[str, object]


def run(scale: float = 1.0) -> Sequence[Row]:
    """Measure both kinds on both databases; `scale` multiplies the cases."""
    rows: list[Row] = []
    for url in databases.addresses():
        with serving(url) as server:
            rows += measured(server, url, int(CASES * scale))
    return rows


@contextmanager
def serving(url: str) -> Iterator[Server]:
    """A service over this database, ended at the end."""
    command, pipe = [sys.executable, "-m", "tests.bench.uploads_server", url], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield Server(process, json.loads(process.stdout.readline()))
        finally:
            process.stdin.close()


def measured(server: Server, url: str, cases: int) -> list[Row]:
    """The two lines of one database."""
    dialect = url.partition(":")[0].partition("+")[0]
    took: dict[str, list[dict[str, float]]] = {"known": [], "new": []}
    waited: dict[str, list[float]] = {"known": [], "new": []}
    send(server, report(cases, "known"), "first")
    for number in range(ROUNDS):
        for kind, figures in took.items():
            content = report(cases, "known" if kind == "known" else f"new{number}")
            plain = {"plain_s": stored_plainly(url, cases)}
            taken = send(server, content, f"{kind}-{number}")
            figures.append(beside_parsers(content) | plain | taken)
    for number in range(WATCHED_ROUNDS):
        for kind, times_ms in waited.items():
            content = report(cases, "known" if kind == "known" else f"watched{number}")
            times_ms.append(watch(server, content, f"{kind}-watched-{number}"))
    return [
        row(kind, dialect, cases, found) | {"waited_ms": round(max(waited[kind]))} | WAITED_GOAL
        for kind, found in took.items()
    ]


def row(kind: str, dialect: str, cases: int, found: list[dict[str, float]]) -> Row:
    """The medians of one line of the table."""
    middle = {name: statistics.median(each[name] for each in found) for name in found[0]}
    return {
        "goal": "V11",
        "subject": f"upload of {cases:,} {kind} cases, {dialect}",
        **{name: round(value, 2) for name, value in middle.items()},
        "wall_goal_s": WALL_GOALS_S[kind],
        "ratio": round(middle["cpu_s"] / middle["parse_s"], 2),
        "ratio_goal": RATIO_GOALS[kind],
        "plain_ratio": round(middle["wall_s"] / middle["plain_s"], 2),
    }


def stored_plainly(url: str, cases: int) -> float:
    """Seconds of storing as many names in a table of their own, which is dropped again."""
    rows = [(1, f"{n:032x}", f"test_{n}", f"tests/test_{n % 500}.py", n) for n in range(cases)]
    began = time.perf_counter()
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.execute(PLAIN_TABLE)
            connection.executemany("INSERT INTO plain VALUES (?, ?, ?, ?, ?)", rows)
            connection.commit()
            took = time.perf_counter() - began
            connection.execute(DROP_PLAIN_TABLE)
            connection.commit()
        return took
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        connection.execute(PLAIN_TABLE)
        with connection.cursor().copy("COPY plain FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        connection.commit()
        took = time.perf_counter() - began
        connection.execute(DROP_PLAIN_TABLE)
    return took


def beside_parsers(content: bytes) -> dict[str, float]:
    """Seconds of the bare parser, and of ours."""
    gc.disable()
    bare = parsing.took(lambda: parsing.count_by_lxml(content))
    ours = parsing.took(lambda: reports.read(content, None, ReadOptions()))
    gc.enable()
    return {"bare_s": bare, "parse_s": ours}


def send(server: Server, content: bytes, run_id: str) -> dict[str, float]:
    """Upload the report as the run of that id; what it took."""
    request = form(server.about["token"], content, run_id)
    before = load.children_us(server.pid)
    taken = asyncio.run(load.round_of_many(server.about["port"], server.pid, [request]))
    cpu_us = taken.cpu_us + load.children_us(server.pid) - before
    return {"wall_s": taken.p50_ms / 1000, "cpu_s": cpu_us / 1_000_000}


def watch(server: Server, content: bytes, run_id: str) -> float:
    """The same while somebody else writes; how many milliseconds he waited at most."""
    server.tell("watch")
    send(server, content, run_id)
    waited_ms: float = server.tell("waited")
    return waited_ms


def report(cases: int, names: str) -> bytes:
    """A report of tests that no report of other names has; one in a thousand failed."""
    return parsing.suite(
        case(n).replace('"test_', f'"test_{names}_', 1)
        for n in range(cases)
        for case in [parsing.passing if n % FAILING_EVERY else parsing.failing]
    )


def form(token: str, content: bytes, run_id: str) -> bytes:
    """The request as it goes over the wire."""
    metadata = {
        "repo": {"host": "github.com", "owner": "octo", "name": "widgets"},
        "org_url_slug": "octo",
        "sha": f"{zlib.crc32(run_id.encode()):040x}",
        "run_id": run_id,
        "branch": "main",
        "job": "unit",
    }
    body = (
        (
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="metadata"\r\n'
            f"Content-Type: application/json\r\n\r\n{json.dumps(metadata)}\r\n"
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="junit.xml"\r\n'
            "Content-Type: application/xml\r\n\r\n"
        ).encode()
        + content
        + f"\r\n--{BOUNDARY}--\r\n".encode()
    )
    head = (
        "POST /v1/flaky-tests/upload-test-results HTTP/1.1\r\nHost: bench\r\n"
        f"x-api-token: {token}\r\nContent-Type: multipart/form-data; boundary={BOUNDARY}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
