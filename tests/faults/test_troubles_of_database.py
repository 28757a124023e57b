"""A database in trouble: health and metrics answer soon, and each place names the same trouble."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import aiohttp
import pytest
from sqlalchemy import Connection

from bot import listening, settings
from service import time_limits, troubles
from service.clock import SystemClock
from service.database.database import Store, StoreOptions
from service.errors import DatabaseUnavailable
from service.http.health import ANSWERED_WITHIN_S, Readiness
from service.metrics.process_families import ProcessMeter
from service.process import presence
from service.runtime import Runtime
from service.troubles import TroubleName
from tests.harness.databases import Server, opened_at
from tests.operations.conftest import clock, provider, runtime  # noqa: F401

WITHIN_S = ANSWERED_WITHIN_S + 0.5


@pytest.fixture
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """A store on the kind of database that the test asks for: its own server, or a file."""
    opened = await opened_at(request.getfixturevalue(request.param))
    yield opened
    await opened.close()


on_own_server = pytest.mark.parametrize("store", ["outage_url"], indirect=True)
on_file = pytest.mark.parametrize("store", ["sqlite_url"], indirect=True)


class Look(NamedTuple):
    """What operators see, and how long it took."""

    took_s: float
    ready: int
    troubles: list[str]
    levels: dict[str, float]


class Operators:
    """Programs that ask the admin listener."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http
        self._clock = SystemClock()

    async def look(self) -> Look:
        """Ask for everything at once."""
        began_s = self._clock.monotonic_s()
        alive, ready, metrics = await asyncio.gather(
            *(self._get(path) for path in ("/healthz", "/readyz", "/metrics"))
        )
        took_s = self._clock.monotonic_s() - began_s
        assert alive[0] == metrics[0] == 200
        levels = {}
        for line in metrics[1].splitlines():
            name, _, value = line.rpartition(" ")
            if name.startswith("headgate_"):
                levels[name] = float(value)
        body = await self._body()
        return Look(took_s, ready[0], [one["name"] for one in body["troubles"]], levels)

    async def until(self, ready: int) -> Look:
        """Look until it is ready, or not."""
        async with asyncio.timeout(15):
            while (seen := await self.look()).ready != ready:
                assert seen.took_s < WITHIN_S
        assert seen.took_s < WITHIN_S
        return seen

    async def _get(self, path: str) -> tuple[int, str]:
        async with self._http.get(path) as answer:
            return answer.status, await answer.text()

    async def _body(self) -> dict[str, Any]:
        async with self._http.get("/readyz") as answer:
            body: dict[str, Any] = await answer.json()
            return body


@asynccontextmanager
async def asking(runtime: Runtime) -> AsyncIterator[Operators]:  # noqa: F811
    """Serve the admin listener of a process."""
    measured = replace(runtime, telemetry=ProcessMeter("0.0.7", "3.11.9"))
    readiness = Readiness(runtime.troubles, write=partial(presence.prove_writable, runtime))
    readiness.mark("recovery", "ok")
    runner = listening.runner_for_operators(measured, readiness)
    url = await listening.listen_for_operators(runner, settings.alone(admin_listen="127.0.0.1:0"))
    try:
        async with aiohttp.ClientSession(url) as http:
            yield Operators(http)
    finally:
        await runner.cleanup()


def level(name: TroubleName) -> str:
    """Return the series of a trouble."""
    return f'headgate_trouble{{name="{name.value}"}}'


@on_own_server
@pytest.mark.fault(
    "PostgreSQL freezes (SIGSTOP)",
    holds="metrics, health and readiness answer by the last levels and name the trouble",
    within="2 s",
)
async def test_a_frozen_server_keeps_no_operator_waiting(
    runtime: Runtime,  # noqa: F811
    own_postgres: Server,
) -> None:
    async with asking(runtime) as operators:
        before = await operators.look()
        assert (before.ready, before.troubles) == (200, [])
        assert before.levels[level(TroubleName.DATABASE_SILENT)] == 0
        with own_postgres.hung():
            seen = await operators.until(503)
            assert seen.troubles == ["database_silent"]
            assert seen.levels[level(TroubleName.DATABASE_SILENT)] == 1
            backlog = 'headgate_outbox_pending{lane="landing"}'
            assert seen.levels[backlog] == before.levels[backlog]
        after = await operators.until(200)
        assert after.troubles == []


@on_own_server
@pytest.mark.fault(
    "PostgreSQL is stopped",
    holds="metrics, health and readiness answer by the last levels and name the trouble",
    within="2 s",
)
async def test_a_stopped_server_is_named_until_it_is_back(
    runtime: Runtime,  # noqa: F811
    own_postgres: Server,
) -> None:
    async with asking(runtime) as operators:
        own_postgres.halt("fast")
        seen = await operators.until(503)
        assert seen.troubles == ["database_unreachable"]
        own_postgres.begin()
        assert (await operators.until(200)).troubles == []


@on_own_server
async def test_each_question_names_the_trouble_of_a_frozen_server(
    store: Store, own_postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limits, "ANSWER_S", 0.5)
    time_limits.answer_soon()
    with own_postgres.hung():
        asks: tuple[Callable[[], Awaitable[object]], ...] = (
            store.access_version,
            lambda: store.is_newest(1, 1),
            lambda: store.show_life("one"),
            lambda: store.read(lambda session: session.exec_driver_sql("SELECT 1")),
        )
        for ask in asks:
            with pytest.raises(DatabaseUnavailable) as caught:
                await ask()
            assert sentence_of(store, TroubleName.DATABASE_SILENT) in caught.value.detail


async def refused(store: Store, *statements: str) -> str:
    """Run statements in one transaction that the database refuses; return the sentence."""

    def run(session: Connection) -> None:
        for one in statements:
            session.exec_driver_sql(one)

    with pytest.raises(DatabaseUnavailable) as caught:
        await store.run(run)
    return caught.value.detail


def sentence_of(store: Store, name: TroubleName) -> str:
    """Return what every place says of the only trouble."""
    (trouble,) = store.troubles.all()
    assert trouble.name is name
    return troubles.sentence(trouble, store.troubles.clock.now())


async def write(store: Store) -> None:
    """Write something that needs no room."""
    await store.run(lambda session: session.exec_driver_sql("UPDATE deployment SET id = id"))


@on_file
@pytest.mark.fault(
    "another program locks the SQLite file",
    holds="reads are answered, writes are refused and name the lock",
    within="2 s",
)
async def test_a_locked_file_is_named_until_a_write_succeeds(
    runtime: Runtime,  # noqa: F811
    sqlite_url: str,
) -> None:
    store = runtime.store
    await store.run(lambda session: session.exec_driver_sql("PRAGMA busy_timeout = 50"))
    other = await opened_at(sqlite_url, StoreOptions(alone=False))
    locked, release = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def hold(session: Connection) -> None:
        session.exec_driver_sql("UPDATE deployment SET id = id")
        loop.call_soon_threadsafe(locked.set)
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result(20)

    holding = asyncio.create_task(other.run(hold))
    await locked.wait()
    try:
        async with asking(runtime) as operators:
            said = await refused(store, "UPDATE deployment SET id = id")
            assert said.startswith(sentence_of(store, TroubleName.DATABASE_LOCKED))
            await store.read(lambda session: session.exec_driver_sql("SELECT 1").scalar())
            seen = await operators.until(503)
            assert seen.troubles == ["database_locked"]
            release.set()
            await holding
            assert (await operators.until(200)).troubles == []
    finally:
        release.set()
        await other.close()


@on_file
@pytest.mark.fault(
    "the disk of SQLite is full",
    holds="writes are refused and name the disk; the next write that succeeds ends it",
    within="-",
)
async def test_a_full_disk_is_named_until_a_write_succeeds(runtime: Runtime) -> None:  # noqa: F811
    store = runtime.store
    limit = "PRAGMA max_page_count = 1"  # SQLite keeps to the pages that there are
    await store.run(lambda session: session.exec_driver_sql(limit))
    fill = "CREATE TABLE filler AS SELECT zeroblob(100000) AS x"
    said = await refused(store, fill)
    assert said.startswith(sentence_of(store, TroubleName.DATABASE_FULL))
    await store.read(lambda session: session.exec_driver_sql("SELECT 1").scalar())
    assert store.troubles.all()
    await write(store)
    assert store.troubles.all() == ()


@on_own_server
async def test_a_server_that_takes_no_writes_is_named(runtime: Runtime) -> None:  # noqa: F811
    store = runtime.store
    said = await refused(store, "SET TRANSACTION READ ONLY", "UPDATE deployment SET id = id")
    assert said.startswith(sentence_of(store, TroubleName.DATABASE_READ_ONLY))
    await write(store)
    assert store.troubles.all() == ()
