"""Turns and durable writes of the store beside the driver alone doing the same rows.

Rounds alternate; the unit is CPU of this process, all its threads, for one
transaction function. What PostgreSQL's server spends is not in it, the wait for it is.
"""

import asyncio
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from service.clock import RandomIds, SystemClock
from service.crash_points import NoCrashes
from service.database import inbox, outbox
from service.database.database import Store, open_store
from service.database.outbox import Lane, OutboxItem
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import EntryUpdated, Recorded, RetireRun, Step
from service.mergequeue.store import journal, queues
from service.provider.signals import Delivery
from tests.bench import databases
from tests.store import builders
from tests.store.conftest import a_stored_queue

ROUNDS = 5
WRITES = 2000
TURNS = 200
AT_ONCE = 64
BODY = b"x" * 18_500
NOW = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)

Timed = Callable[[int], Awaitable[None]]


@dataclass(frozen=True)
class Round:
    """What one round cost for each function."""

    cpu_us: float
    wall_us: float


def run(scale: float = 1.0) -> list[dict[str, Any]]:
    """Measure every subject on every database there is; `scale` multiplies the rounds' sizes."""
    return [
        line
        for url in databases.addresses()
        for line in asyncio.run(measured(url, max(0.01, scale)))
    ]


async def measured(url: str, scale: float) -> list[dict[str, Any]]:
    """The lines of one database."""
    store = await open_store(url, clock=SystemClock(), ids=RandomIds(), crash_points=NoCrashes())
    with driver_alone() as driver:
        turns, writes = max(5, int(TURNS * scale)), max(50, int(WRITES * scale))
        lines = [
            await compared(
                f"{store.dialect}: store a delivery of 18.5 kB, {AT_ONCE} at once",
                writes,
                Deliveries(store).at_once,
                driver.deliveries,
            ),
            await compared(
                f"{store.dialect}: store a delivery of 18.5 kB, one by one",
                writes // 10,
                Deliveries(store, "alone").one_by_one,
                driver.deliveries_one_by_one,
            ),
        ]
        for entries in (100, 1000):
            subject = await Turns.of(store, entries)
            label = f"{store.dialect}: turn without the engine, {entries} entries"
            lines.append(await compared(label, turns, subject.take, driver.turns))
            label = f"{store.dialect}: load a queue of {entries} entries"
            lines.append(await compared(label, max(2, turns // 20), subject.load, None))
    await store.close()
    return lines


async def compared(
    subject: str, count: int, ours: Timed, reference: Callable[[int], None] | None
) -> dict[str, Any]:
    """One line: medians over the rounds, ours and the reference one after the other."""
    found: list[Round] = []
    beside: list[Round] = []
    for _ in range(ROUNDS + 1):
        found.append(await timed(ours, count))
        if reference is not None:
            beside.append(await timed(as_coroutine(reference), count))
    line: dict[str, Any] = {"subject": subject, "n": count * ROUNDS, **columns("store", found[1:])}
    if beside:
        line |= columns("driver", beside[1:])
        line["ratio"] = round(line["store_cpu_us"] / line["driver_cpu_us"], 2)
    return line


def as_coroutine(function: Callable[[int], None]) -> Timed:
    async def call(count: int) -> None:
        function(count)

    return call


async def timed(subject: Timed, count: int) -> Round:
    cpu, wall = time.process_time(), time.perf_counter()
    await subject(count)
    return Round(
        (time.process_time() - cpu) / count * 1e6, (time.perf_counter() - wall) / count * 1e6
    )


def columns(who: str, rounds: list[Round]) -> dict[str, float]:
    """What is printed of one side."""
    return {
        f"{who}_cpu_us": round(statistics.median(each.cpu_us for each in rounds), 1),
        f"{who}_wall_us": round(statistics.median(each.wall_us for each in rounds), 1),
    }


class Deliveries:
    """Deliveries stored as the receiver does."""

    def __init__(self, store: Store, name: str = "together") -> None:
        self._store = store
        self._name = name
        self._next = 0

    async def at_once(self, count: int) -> None:
        """Many receivers wait for their commit at the same time."""
        for _ in range(0, count, AT_ONCE):
            await asyncio.gather(*(self._accept() for _ in range(AT_ONCE)))

    async def one_by_one(self, count: int) -> None:
        """Nobody else waits, so each pays for a commit of its own."""
        for _ in range(count):
            await self._accept()

    def _accept(self) -> Awaitable[object]:
        self._next += 1
        delivery = Delivery(
            "github.test", f"{self._name}-{self._next}", "push", None, "101", BODY, NOW
        )
        return self._store.run_kind("accept", inbox.accept, delivery)


@dataclass
class Turns:
    """Turns that each change one entry, tell one event and ask for one effect."""

    store: Store
    queue: MergeQueue
    turn: int = 0

    @classmethod
    async def of(cls, store: Store, count: int) -> "Turns":
        """Over a queue that holds so many entries, each with a run in front of it."""
        return cls(store, await store.run(a_full_queue, count))

    async def take(self, count: int) -> None:
        """So many turns, one after another."""
        for _ in range(count):
            self.turn += 1
            self.queue = await self.store.run_kind("turn", one_turn, self.queue, self.turn)

    async def load(self, count: int) -> None:
        """The whole value from its rows."""
        for _ in range(count):
            await self.store.read(queues.load, self.queue.id)


def a_full_queue(session: Connection, count: int) -> MergeQueue:
    empty = a_stored_queue(session, f"branch-{count}")
    entries = {pr: builders.an_entry(pr, id=f"{count}-{pr}") for pr in range(1, count + 1)}
    runs = {
        f"{count}-r{pr}": builders.a_run(f"{count}-r{pr}", (pr,)) for pr in range(1, count // 10)
    }
    whole = replace(empty, entries=entries, runs=runs)
    return queues.save(session, empty, Step(whole, (), (), None, None))


def one_turn(session: Connection, before: MergeQueue, turn: int) -> MergeQueue:
    """What a turn does around the engine."""
    head = queues.head_of(session, before.id, lock=True)
    assert head is not None
    pr = 1 + turn % len(before.entries)
    changed = replace(before.entries[pr], priority=turn % 256, state_since=NOW)
    after = replace(before, entries={**before.entries, pr: changed}, next_seq=turn)
    event = Recorded(NOW, builders.ANN, EntryUpdated(pr, changed.id, changed.priority, False))
    run = f"{before.id}-{turn}"
    effect = OutboxItem(Lane.CONTROL, run, "retire", RetireRun(run, False), NOW, run=run)
    saved = queues.save(session, before, Step(after, (), (event,), None, NOW), head.epoch)
    journal.append(session, before.id, [event])
    outbox.append(session, 1, before.id, head.epoch, [effect])
    return saved


class Driver:
    """SQLite's driver with rows of the same size, durable in the same way."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._execute = connection.execute

    def deliveries(self, count: int) -> None:
        """Deliveries, as many to a commit as wait at once."""
        for _ in range(0, count, AT_ONCE):
            self._execute("BEGIN IMMEDIATE")
            for _ in range(AT_ONCE):
                self._deliver()
            self._execute("COMMIT")

    def deliveries_one_by_one(self, count: int) -> None:
        """Deliveries with a commit each."""
        for _ in range(count):
            self._execute("BEGIN IMMEDIATE")
            self._deliver()
            self._execute("COMMIT")

    def _deliver(self) -> None:
        self._execute("SAVEPOINT one")
        row = self._execute(
            "INSERT INTO small (a, b, c, d, e, f) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
            ("github.test", "guid", "push", "open", "101", "2026-03-02T14:00:00"),
        ).fetchone()
        self._execute("INSERT INTO large VALUES (?, ?)", (row[0], BODY))
        self._execute("RELEASE one")

    def turns(self, count: int) -> None:
        """Two rows changed and two added, with a commit each."""
        text = "x" * 700
        for _ in range(count):
            self._execute("BEGIN IMMEDIATE")
            self._execute("SELECT a FROM small WHERE id = 1").fetchone()
            for row in (1, 2):
                self._execute(
                    "UPDATE small SET a = ?, b = ?, c = ? WHERE id = ?", (text, text, text, row)
                )
            for _ in range(2):
                self._execute("INSERT INTO small (a, b, c) VALUES (?, ?, ?)", ("x", "y", text))
            self._execute("COMMIT")


@contextmanager
def driver_alone() -> Iterator[Driver]:
    """The reference: one connection, no SQLAlchemy, no thread."""
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(f"{folder}/driver.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        names = ", ".join(f"{name} TEXT" for name in "abcdef")
        connection.execute(f"CREATE TABLE small (id INTEGER PRIMARY KEY, {names})")
        connection.execute("CREATE TABLE large (id INTEGER PRIMARY KEY, body BLOB)")
        yield Driver(connection)
        connection.close()


if __name__ == "__main__":
    for each in run():
        print(each)
