"""The lists of 100,000 tests: any page at ten requests a second, and after each upload.

Pages of 100 rows, over each database, with ten days of history (at a larger scale also with 45).
The first twenty pages of each list in turn, one request every tenth of a second; and the first
page of each, read for the first time after an upload of all tests, while what is too old is
deleted. There the list of failing tests stands beside one SQL query that finds the same rows, asked
by turns over the same connection. As in life few tests fail most of the times, and the sets of
uploads are at hand, for the process that answers has taken them in.
"""

import asyncio
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from typing import Any

from service.clock import Clock, RandomIds, SystemClock
from service.crash_points import NoCrashes
from service.database.database import Store, StoreOptions, Tx, open_store
from service.testhealth.store import states
from service.testhealth.store.cases import Place
from service.testhealth.store.retention import EVIDENCE
from service.testhealth.store.states import CaseState
from service.vocabulary import Health
from tests.bench import databases, load, tests_server
from tests.bench.tests_server import FLAKY_EVERY, FOLDER, TESTS

PAGES = 200
UPLOADS = 10
PER_SECOND = 10
P95_MS = 60
SQL_RATIO = 2.0
BESIDE_SQL = "list-failing-tests"
DAYS = (10, 45)
Row = dict[str, object]


def run(scale: float = 1.0) -> Sequence[Row]:
    """Measure every list; `scale` multiplies the pages of a round."""
    found: list[Row] = []
    lengths = DAYS if scale > 1 else DAYS[:1]
    with databases.kinds() as kinds:
        for days, database in product(lengths, kinds):
            with kinds[database]() as url:
                found += measured(url, days, database, scale)
    return found


def measured(url: str, days: int, database: str, scale: float) -> list[Row]:
    """The lines of the table for so much history."""
    command = [sys.executable, "-m", "tests.bench.tests_server", url, str(days)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        about = json.loads(server.stdout.readline())
        try:
            taken = asyncio.run(each_list(about, url, server.pid, scale))
        finally:
            server.stdin.close()
    about_all = {"goal": "V9", "database": database, "days of history": days}
    return [{**about_all, **row} for row in taken]


async def each_list(about: dict[str, Any], url: str, pid: int, scale: float) -> list[Row]:
    """The lines of every list: any page at a steady rate, and the first page after uploads."""
    pages, count = max(20, int(PAGES * scale)), max(3, int(UPLOADS * scale))
    rows = [await steady(about, name, pid, pages) for name in about["lists"]]
    clock = SystemClock()
    options = StoreOptions(alone=False)
    store = await open_store(
        url, clock=clock, ids=RandomIds(), crash_points=NoCrashes(), options=options
    )
    ci = Ci(store, clock, Place(*about["place"]), about["bare"])
    rows += [await first(about, name, ci, count) for name in about["lists"]]
    await store.close()
    return rows


async def steady(about: dict[str, Any], name: str, pid: int, pages: int) -> Row:
    """The line of a list whose pages are asked for ten times a second."""
    sent = itertools.islice(itertools.cycle(requests(about, name)), pages)
    before = load.cpu_us(pid)
    times = await load.times_ms(about["port"], sent, lambda: SystemClock().sleep(1 / PER_SECOND))
    cpu = (load.cpu_us(pid) - before) / pages
    return {
        "subject": f"{name}, any page, {PER_SECOND} requests a second",
        "cpu_ms": round(cpu / 1000, 1),
        **percentiles(times),
        "p95_goal_ms": P95_MS,
    }


async def first(about: dict[str, Any], name: str, ci: "Ci", count: int) -> Row:
    """The line of a list whose first page is asked for after each upload."""
    ours = await load.times_ms(about["port"], [requests(about, name)[0]] * count, ci.upload)
    row: Row = {"subject": f"{name}, first after an upload", **percentiles(ours)}
    if name != BESIDE_SQL:
        return row
    asked = [request(tests_server.SQL, "", "")] * count
    by_sql = await load.times_ms(about["bare"], asked, ci.upload)
    ratio = statistics.median(ours) / statistics.median(by_sql)
    return {
        **row,
        "by_sql_ms": round(statistics.median(by_sql), 1),
        "ratio": round(ratio, 2),
        "ratio_goal": SQL_RATIO,
    }


def percentiles(times: Sequence[float]) -> Row:
    """The middle time, and the one that one request in twenty exceeds."""
    ordered = sorted(times)
    p95 = ordered[math.ceil(len(ordered) * 0.95) - 1]
    return {"p50_ms": round(statistics.median(ordered), 1), "p95_ms": round(p95, 1)}


class Ci:
    """Whatever writes beside the service."""

    def __init__(self, store: Store, clock: Clock, place: Place, bare: int) -> None:
        self._store = store
        self._clock = clock
        self._place = place
        self._bare = bare
        self._uploads = 0

    async def upload(self) -> None:
        """One more upload, whereupon a test is found another one; old evidence goes."""
        self._uploads += 1
        await self._store.run(self._take_in)
        await load.round_of(self._bare, os.getpid(), request(tests_server.SETS, "", ""), 1)
        for forget in EVIDENCE:
            await self._store.run(forget, tests_server.forgotten_before(self._clock.now()))

    def _take_in(self, session: Tx) -> None:
        now = self._clock.now()
        tests_server.take_in(session, self._place, -self._uploads, now)
        no = FLAKY_EVERY * self._uploads % TESTS
        reason = f"Passed and failed on the same code in {self._uploads} of 212 commits in 14 days."
        states.put(session, self._place, CaseState(no, Health.FLAKY, reason, now))


def requests(about: dict[str, Any], name: str) -> list[bytes]:
    """Requests as they go over the wire, one for each of the list's first pages."""
    path = f"{FOLDER}/{name}"
    return [request(path, about["token"], body) for body in about["lists"][name]]


def request(path: str, token: str, body: str) -> bytes:
    """A request as it goes over the wire."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: bench\r\nx-api-token: {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return (head + body).encode()
