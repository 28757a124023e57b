"""The process under test of `service.py`: a whole service over a provider made of values.

Its provider answers at once, so what is measured is the service. Prints one line of JSON;
then obeys lines of its standard input: `built` answers when every entry is under test, `green`
lets every test branch pass, `report` prints the milliseconds from each stored event to its
decision when all are taken, `stall` how long its loop stood at most since `beat`, `counted` the
statements, commits and CPU since `green`, once nothing more is due.
"""

import asyncio
import json
import sqlite3
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import uvloop
from aiohttp import web
from sqlalchemy import Engine, event

from bot import telemetry
from bot.github import webhook
from bot.github.translate import OwnApp
from bot.github.translate import signals_of as translated
from service.accounts import tokens
from service.accounts.store import access
from service.accounts.tokens import TokenRequest
from service.clock import Clock, RandomIds, SystemClock
from service.crash_points import NoCrashes
from service.database.database import Tx, open_store
from service.http import connections
from service.http.health import Readiness
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.operations import queues, turn
from service.mergequeue.operations.pull_requests import Requester
from service.mergequeue.operations.queues import QueueRequest
from service.process import deliveries, presence
from service.process.api import app
from service.process.workers.supervisor import Workers
from service.provider.signals import Delivery
from service.runtime import Options, Runtime
from service.vocabulary import SYSTEM, QueueRef, Role
from tests.bench import door
from tests.harness.runtimes import a_runtime
from tests.harness.stillness import OPEN_DELIVERY, OPEN_EFFECT
from tests.harness.values import ValuesProvider

SECRET = "the webhook secret of a benchmark, 32"
OWN = OwnApp("1", "headgate")
PATIENCE_S = 60.0
PATIENCE = timedelta(seconds=PATIENCE_S)
"""How long a slow machine may take for what is not measured."""


class Latencies:
    """When each delivery was stored, and when its pull request passed."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.stored: list[float] = []
        self.decided: list[float] = []

    async def accept(self, delivery: Delivery) -> bool:
        """Store, and remember when."""
        is_new = await deliveries.accept(self.runtime, delivery)
        self.stored.append(self.runtime.clock.monotonic_s())
        return is_new

    async def watch(self, queue: QueueRef) -> None:
        """Note every pull request that passes as soon as its turn is committed."""
        topic, passed = f"queue/{queue.id}", 0
        while True:
            seen = self.runtime.wakeups.version(topic)
            value = await turn.value(self.runtime, queue.id)
            now = sum(one.state is EntryState.TESTS_PASSED for one in value.entries.values())
            self.decided += [self.runtime.clock.monotonic_s()] * (now - passed)
            passed = now
            await self.runtime.wakeups.wait(topic, seen, 60.0)

    async def all_taken(self, queue: QueueRef) -> None:
        """Wait until each stored delivery has its decision. Raises TimeoutError."""
        topic = f"queue/{queue.id}"
        async with asyncio.timeout(PATIENCE_S):
            while len(self.decided) < len(self.stored):
                await self.runtime.wakeups.wait(topic, self.runtime.wakeups.version(topic), 0.1)

    def milliseconds(self) -> list[float]:
        """From stored to decided, in the order they came."""
        pairs = zip(sorted(self.stored), sorted(self.decided), strict=False)
        return [(decided - stored) * 1000 for stored, decided in pairs]


class Heartbeat:
    """Wakes every millisecond; what comes later than that is the loop standing."""

    EVERY_S = 0.001

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.stall_ms = 0.0

    async def beat(self) -> None:
        """Beat until cancelled."""
        while True:
            began = self._clock.monotonic_s()
            await self._clock.sleep(self.EVERY_S)
            late_s = self._clock.monotonic_s() - began - self.EVERY_S
            self.stall_ms = max(self.stall_ms, late_s * 1000)


class Costs:
    """Statements and commits of this process since `begin`, and its CPU.

    Small questions on connections beside the pool count too.
    """

    POLL_S = 0.25

    def __init__(self) -> None:
        self.statements = self.commits = 0
        self._cpu_s = 0.0
        event.listen(Engine, "before_cursor_execute", self._count_statement)
        event.listen(Engine, "commit", self._count_commit)
        event.listen(Engine, "connect", self._watch)

    def _count_statement(self, *_: object) -> None:
        self.statements += 1

    def _count_commit(self, *_: object) -> None:
        self.commits += 1

    def _watch(self, connection: Any, _: object) -> None:
        """Count commits of SQLite's writer, which speaks to its driver."""
        if isinstance(connection, sqlite3.Connection):
            connection.set_trace_callback(self._heard)

    def _heard(self, statement: str) -> None:
        self.commits += statement.startswith("COMMIT")

    def begin(self) -> None:
        """Count from here."""
        self.statements = self.commits = 0
        self._cpu_s = time.process_time()

    async def counted(self, runtime: Runtime) -> dict[str, float]:
        """Wait until no delivery and no effect is open; what has been counted by then."""
        own = 0
        async with asyncio.timeout(PATIENCE_S):
            while await runtime.store.read(_is_busy, runtime):
                own += 2
                await runtime.clock.sleep(self.POLL_S)
        cpu_ms = (time.process_time() - self._cpu_s) * 1000
        return {
            "statements": self.statements - own,
            "commits": self.commits,
            "cpu_ms": cpu_ms,
        }


def _is_busy(session: Tx, runtime: Runtime) -> bool:
    soon = {"soon": runtime.clock.now() + PATIENCE}
    found = (session.execute(OPEN_DELIVERY).first(), session.execute(OPEN_EFFECT, soon).first())
    return any(one is not None for one in found)


async def serve(url: str, concurrency: int, *, works: bool) -> None:
    """Serve a queue of so many at once until the standard input ends.

    Without workers what follows from a request is left undone, so that its own cost shows.
    """
    costs = Costs()
    clock, ids, provider = SystemClock(), RandomIds(), ValuesProvider()
    telemetry.start("json", "warning", clock)
    store = await open_store(url, clock=clock, ids=ids, crash_points=NoCrashes())
    host = provider.ref.host
    runtime = a_runtime(
        store,
        clock,
        {host: provider},
        translators={host: lambda delivery: translated(delivery, OWN)},
        options=Options(version="bench", public_url="https://queue.example.org", rates=door.RATES),
    )
    await presence.recover(runtime)
    record = await store.read(access.repository_by_ref, None, provider.ref)
    if record is None:
        raise RuntimeError("the repository was not met")
    wish = QueueRequest({"concurrency": concurrency})
    made = await queues.create(runtime, record, "main", wish, SYSTEM)
    latencies = Latencies(runtime)
    readiness = Readiness()
    readiness.mark("recovery", "ok")
    receiver = webhook.receiver(webhook.Receiver(host, (SECRET,), clock, latencies.accept))
    extra = (web.post(webhook.PATH, receiver),)
    runner = connections.runner(app.build_app(runtime, readiness, extra), drain_s=1)
    workers = Workers(runtime)
    heartbeat = Heartbeat(clock)
    tasks = [asyncio.create_task(latencies.watch(made.queue))]
    if works:
        tasks.append(asyncio.create_task(workers.run()))
    port = await door.listen(runner)
    issued = await tokens.create_token(
        runtime, TokenRequest(host, "octo", "bench", Role.ADMIN), SYSTEM
    )
    about = {"port": port, "token": issued.secret, "host": host}
    say(about)
    await obey(runtime, provider, made.queue, Watched(latencies, heartbeat, costs))
    await workers.stop()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await runner.cleanup()
    await store.close()


async def all_built(runtime: Runtime, queue: QueueRef) -> None:
    """Wait until each entry has a run with a commit. Raises TimeoutError."""
    topic = f"queue/{queue.id}"
    async with asyncio.timeout(PATIENCE_S):
        while True:
            seen = runtime.wakeups.version(topic)
            value = await turn.value(runtime, queue.id)
            if sum(run.sha is not None for run in value.runs.values()) >= len(value.entries):
                return
            await runtime.wakeups.wait(topic, seen, PATIENCE_S)


def say(value: object) -> None:
    """One line of JSON on the standard output."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class Watched:
    """What is measured inside the process."""

    latencies: Latencies
    heartbeat: Heartbeat
    costs: Costs


async def obey(
    runtime: Runtime, provider: ValuesProvider, queue: QueueRef, watched: Watched
) -> None:
    """Do what the standard input says, line by line, until it ends."""
    latencies, heartbeat = watched.latencies, watched.heartbeat
    beating: asyncio.Task[None] | None = None
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        if line == "built":
            await all_built(runtime, queue)
            say({})
        elif line == "pause":
            await queues.set_state(runtime, queue, QueueState.PAUSED, None, Requester(SYSTEM))
            say({})
        elif line == "green":
            latencies.stored.clear()
            latencies.decided.clear()
            value = await turn.value(runtime, queue.id)
            shas = [run.sha for run in value.runs.values() if run.sha is not None]
            provider.green.update(shas)
            watched.costs.begin()
            say(shas)
        elif line == "report":
            await latencies.all_taken(queue)
            say(latencies.milliseconds())
        elif line == "counted":
            say(await watched.costs.counted(runtime))
        elif line == "beat":
            heartbeat.stall_ms = 0.0
            beating = asyncio.create_task(heartbeat.beat())
            say({})
        elif line == "stall" and beating is not None:
            beating.cancel()
            say(heartbeat.stall_ms)


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1], int(sys.argv[2]), works=sys.argv[3] == "works"))
