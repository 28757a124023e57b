"""What one check event costs the service, and how fast a backlog of many repositories drains.

PostgreSQL runs with fsync here, as one in use does. An event is counted to its end: the delivery
stored, the turn, the comment and the check run written.
"""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, text

from bot import telemetry
from service.clock import RandomIds, SystemClock
from service.crash_points import NoCrashes
from service.database import inbox
from service.database.database import Store, open_store
from service.process.workers import flows
from service.process.workers.flow import Flow
from service.provider.signals import Delivery
from service.runtime import Options, Runtime
from tests.bench import databases, load
from tests.bench.databases import Fresh
from tests.bench.service import EVENTS, Server, delivery, served, submission
from tests.bench.tables import Row
from tests.harness.databases import Server as Postgres
from tests.harness.runtimes import a_runtime

RATES = (20, 100)
"""Check events a second."""
BACKLOGS = (10, 100, 1_000, 5_000)
"""Repositories with waiting deliveries."""
DELIVERIES_MIN = 600
PROCESSES = (1, 2, 3)
BODY = b"x" * 500
HOST = "github.test"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLOCK = SystemClock()


def run(scale: float = 1.0) -> list[Row]:
    """Measure over each database; `scale` multiplies the work."""
    with databases.durable() as server:
        return [
            row
            for database, fresh in databases.made_by(server).items()
            for row in over(database, fresh, server, scale)
        ]


def over(database: str, fresh: Fresh, postgres: Postgres | None, scale: float) -> Iterator[Row]:
    """Measure over one database."""
    for rate in RATES:
        with fresh() as url, served(url, EVENTS, "works") as server:
            used = postgres if database == "postgresql" else None
            yield {**asyncio.run(costs(server, rate, used)), "database": database}
    rates: dict[int, float] = {}
    for repositories in BACKLOGS:
        with fresh() as url:
            count = max(1, int(repositories * min(scale, 1.0)))
            rates[repositories] = asyncio.run(drained(url, count))
        yield {
            "subject": f"one delivery each of {repositories:,} repositories",
            "per_second": round(rates[repositories]),
            "ratio": round(rates[repositories] / rates[BACKLOGS[0]], 2),
            "ratio_floor": 0.8,
            "database": database,
        }
    if BACKLOGS:
        with fresh() as url:
            rates[0] = asyncio.run(drained(url, 10, each=60))
        yield {
            "subject": "60 deliveries each of 10 repositories",
            "per_second": round(rates[0]),
            "database": database,
        }
    if database == "postgresql":
        yield from shared(fresh, scale)


def shared(fresh: Fresh, scale: float) -> Iterator[Row]:
    """Several processes over one database, each of whose lanes waits for a provider."""
    alone = 0.0
    for processes in PROCESSES:
        with fresh() as url:
            rate = asyncio.run(drained_by(url, processes, max(24, int(96 * min(scale, 1.0)))))
        alone = alone or rate
        yield {
            "subject": f"one delivery each, calls of a second, {processes} processes",
            "per_second": round(rate),
            "ratio": round(rate / alone, 2),
            "ratio_floor": 0.8 * processes,
            "database": "postgresql",
        }


async def costs(server: Server, rate: int, postgres: Postgres | None) -> Row:
    """From a stored check event to its decision, and what all of it costs."""
    port, pid = server.about["port"], server.pid
    await load.round_of_many(port, pid, [submission(server, n) for n in range(1, EVENTS + 1)])
    server.tell("built")
    server.tell("pause")
    server.tell("counted")
    shas = server.tell("green")
    database_s = cpu_s(postgres)
    began = time.perf_counter()
    for number, sha in enumerate(shas):
        await CLOCK.sleep(max(0.0, began + number / rate - time.perf_counter()))
        await load.round_of_many(port, pid, [delivery(f"v5-{number}", sha)])
    taken = sorted(server.tell("report"))
    counted = server.tell("counted")
    database_s = cpu_s(postgres) - database_s
    return {
        "subject": f"check event, {rate} a second",
        "p50_ms": round(statistics.median(taken), 1),
        "p99_ms": round(taken[int(len(taken) * 0.99) - 1], 1),
        "statements": round(counted["statements"] / len(taken), 1),
        "statements_goal": 8,
        "commits": round(counted["commits"] / len(taken), 2),
        "commits_goal": 2,
        "cpu_ms": round(counted["cpu_ms"] / len(taken), 1),
        "cpu_goal_ms": 8,
        "database_cpu_ms": round(database_s * 1000 / len(taken), 1),
    }


def cpu_s(postgres: Postgres | None) -> float:
    """CPU of all processes of the server until now."""
    pids = () if postgres is None else postgres.processes()
    return sum(map(_cpu_of_s, pids))


def _cpu_of_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    # utime, stime, and those of children that have ended (proc(5)).
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


async def drained(url: str, repositories: int, each: int = 1) -> float:
    """Deliveries a second that the flow takes up and settles, without a signal in them.

    So few repositories that one round is over at once are filled again and again.
    """
    telemetry.start("json", "warning", CLOCK)
    store = await open_store(url, clock=CLOCK, ids=RandomIds(), crash_points=NoCrashes())
    flow = Flow(runtime_over(store), flows.DELIVERIES)
    took_s, count = 0.0, 0
    while count < DELIVERIES_MIN:
        await store.run(_put, repositories, each, count)
        count += repositories * each
        began = time.perf_counter()
        await flow.drain()
        took_s += time.perf_counter() - began
    await store.close()
    return count / took_s


async def drained_by(url: str, processes: int, repositories: int) -> float:
    """The same with several processes, which begin together."""
    store = await open_store(url, clock=CLOCK, ids=RandomIds(), crash_points=NoCrashes())
    await store.run(_put, repositories, 1, 0)
    await store.close()
    command = (sys.executable, "-m", "tests.bench.draining", url)
    pipe = asyncio.subprocess.PIPE
    workers = [
        await asyncio.create_subprocess_exec(*command, f"worker-{n}", stdin=pipe, stdout=pipe)
        for n in range(processes)
    ]
    for one in workers:
        assert one.stdout is not None
        while await one.stdout.readline() != b"ready\n":
            continue
    ends = await asyncio.gather(*(one.communicate(b"\n") for one in workers))
    said = [out.splitlines()[-1].split() for out, _ in ends]
    worked = sum(int(count) for count, _ in said)
    if worked != repositories:
        raise RuntimeError(f"{worked} lanes were worked on, and {repositories} waited")
    return repositories / max(float(took_s) for _, took_s in said)


def _put(session: Connection, repositories: int, each: int, first: int) -> None:
    for number in range(first, first + each):
        for repository in range(repositories):
            guid = f"{repository}-{number}"
            waiting = Delivery(HOST, guid, "push", None, str(repository), BODY, NOW)
            inbox.accept(session, waiting)
    session.execute(text("ANALYZE"))


def runtime_over(store: Store) -> Runtime:
    """The parts of a process for which no delivery has a signal."""
    return a_runtime(
        store, CLOCK, translators={HOST: lambda _: ()}, options=Options(version="bench")
    )
