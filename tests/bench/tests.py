"""The lists of 100,000 tests beside a bare handler of the same bytes.

The list of failing tests stands also beside one SQL query that finds the same rows.

Pages of 100 rows, over each database, with ten days of history (at a larger scale also with 45):
the first twenty of each list in turn, read again; and the first one, read for the first time
after an upload of all tests, while what is too old is deleted. There both the service and the
bare handler are asked once after each upload: a process that has waited meanwhile takes several
times as long over anything. As in life few tests fail most of the times, and the sets of uploads
are at hand, for the process that answers has taken them in.
"""

import asyncio
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from tempfile import TemporaryDirectory
from typing import Any

from service.boundary import NoBoundary
from service.clock import Clock, RandomIds, SystemClock
from service.database.database import Store, StoreOptions, Tx, open_store
from service.testhealth.store import states
from service.testhealth.store.cases import Place
from service.testhealth.store.retention import EVIDENCE
from service.testhealth.store.states import CaseState
from service.vocabulary import Health
from tests.bench import api, databases, load, tests_server
from tests.bench.load import Round
from tests.bench.tests_server import FLAKY_EVERY, FOLDER, TESTS

ROUNDS = 5
PAGES = 200
FIRST_PAGES = 2
GOALS = {"sqlite": 12.0, "postgresql": 14.0}
SQL_GOAL = 2.0
BESIDE_SQL = "list-failing-tests, first after an upload, beside one SQL query"
DAYS = (10, 45)

Rounds = tuple[list[Round], list[Round]]
"""Of the service, and of the bare handler."""


def run(scale: float = 1.0) -> Sequence[dict[str, object]]:
    """Measure every list; `scale` multiplies the pages of a round."""
    found: list[dict[str, object]] = []
    lengths = DAYS if scale > 1 else DAYS[:1]
    with databases.kinds() as kinds:
        for days, database in product(lengths, kinds):
            with kinds[database]() as url:
                found += measured(url, days, database, scale)
    return found


def measured(url: str, days: int, database: str, scale: float) -> list[dict[str, object]]:
    """The lines of the table for so much history."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.bench.tests_server", url, str(days), folder]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            assert server.stdin is not None
            about = json.loads(server.stdout.readline())
            try:
                taken = asyncio.run(each_list(about, url, server.pid, scale))
            finally:
                server.stdin.close()
    return [line(f"{what}, days of history: {days}", database, taken[what]) for what in taken]


def line(what: str, database: str, taken: Rounds) -> dict[str, object]:
    """One line of the table."""
    ours, bare = taken
    return {
        "goal": "V9",
        "subject": what,
        "database": database,
        **api.columns("service", ours),
        **api.columns("bare", bare),
        "ratio": round(api.median(ours) / api.median(bare), 2),
        "ratio_goal": SQL_GOAL if what.startswith(BESIDE_SQL) else GOALS[database],
    }


async def each_list(about: dict[str, Any], url: str, pid: int, scale: float) -> dict[str, Rounds]:
    """What is measured → its rounds: every list read again, and read for the first time."""
    pages, firsts = max(20, int(PAGES * scale)), max(2, int(FIRST_PAGES * scale))
    found = {name: await again(about, name, pid, pages) for name in about["lists"]}
    clock = SystemClock()
    options = StoreOptions(alone=False)
    store = await open_store(
        url, clock=clock, ids=RandomIds(), boundary=NoBoundary(), options=options
    )
    ci = Ci(store, clock, Place(*about["place"]), about["bare"])
    for name in about["lists"]:
        sent = [requests(about, name)[0]] * firsts
        found[f"{name}, first after an upload"] = await first(about, pid, ci, (sent, sent))
    asked, by_sql = requests(about, "list-failing-tests")[0], request(tests_server.SQL, "", "")
    sent = [asked] * firsts
    found[BESIDE_SQL] = await first(about, pid, ci, (sent, [by_sql] * firsts))
    await store.close()
    return found


async def again(about: dict[str, Any], name: str, pid: int, pages: int) -> Rounds:
    """Rounds of the service and of the bare handler, one after the other; the first is left out."""
    sent = list(itertools.islice(itertools.cycle(requests(about, name)), pages))
    ours, bare = [], []
    for _ in range(ROUNDS + 1):
        ours.append(await load.round_of_many(about["port"], pid, sent))
        bare.append(await load.round_of_many(about["bare"], pid, sent))
    return ours[1:], bare[1:]


async def first(
    about: dict[str, Any], pid: int, ci: "Ci", sent: tuple[Sequence[bytes], Sequence[bytes]]
) -> Rounds:
    """The same of requests that are sent once after an upload each, to either side."""
    to_us, to_bare = sent
    ours, bare = [], []
    for _ in range(ROUNDS + 1):
        ours.append(await load.round_with_pauses(about["port"], pid, to_us, ci.upload))
        bare.append(await load.round_with_pauses(about["bare"], pid, to_bare, ci.upload))
    return ours[1:], bare[1:]


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
