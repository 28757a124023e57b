"""PostgreSQL: what passes runs again, what does not is told, and connections stay sane."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Event

import pytest
from sqlalchemy import Connection, make_url
from sqlalchemy.exc import DBAPIError, IntegrityError

from service.clock import RandomIds
from service.crash_points import NoCrashes
from service.database.database import Store, StoreOptions, open_store
from service.errors import DatabaseAway, DatabaseUnavailable, StartRefused
from service.mergequeue.store import queues
from service.mergequeue.store.cache import QueueCache, newest_known
from tests.harness.databases import Server, SetClock, connected, opened_at
from tests.store.conftest import a_stored_queue


@pytest.fixture
async def notes(postgres_url: str):
    """A store with a table of notes."""
    store = await opened_at(postgres_url)
    await store.run(execute, "CREATE TABLE note (text TEXT UNIQUE, number INT DEFAULT 0)")
    await store.run(execute, "INSERT INTO note VALUES ('a'), ('b')")
    yield store
    await store.close()


def execute(session: Connection, statement: str) -> None:
    session.exec_driver_sql(statement)


def numbers(session: Connection) -> dict[str, int]:
    found = session.exec_driver_sql("SELECT text, number FROM note ORDER BY text").all()
    return {row.text: row.number for row in found}


def count_up(session: Connection, text: str) -> None:
    execute(session, f"UPDATE note SET number = number + 1 WHERE text = '{text}'")


def fails_first(times: int, statement: str) -> Callable[[Connection], int]:
    """Counts its runs; the first ones end with this statement."""
    runs = 0

    def fn(session: Connection) -> int:
        nonlocal runs
        runs += 1
        count_up(session, "a")
        if runs <= times:
            execute(session, statement)
        return runs

    return fn


def raising(sqlstate: str) -> str:
    return f"DO $$ BEGIN RAISE SQLSTATE '{sqlstate}'; END $$"


LOST = "SELECT pg_terminate_backend(pg_backend_pid())"


@pytest.mark.parametrize("statement", [raising("40001"), raising("40P01"), raising("55P03"), LOST])
async def test_what_passes_is_run_again_whole(notes: Store, statement: str):
    assert await notes.run(fails_first(4, statement)) == 5
    assert await notes.read(numbers) == {"a": 1, "b": 0}


async def test_what_never_passes_is_unavailable(notes: Store):
    with pytest.raises(DatabaseUnavailable) as refused:
        await notes.run(fails_first(5, raising("40001")))
    assert refused.value.retry_after_s == 30
    assert await notes.read(numbers) == {"a": 0, "b": 0}


@pytest.mark.parametrize("sqlstate", ["53100", "57014", "25006"])
async def test_a_server_that_cannot_now_is_unavailable_at_once(notes: Store, sqlstate: str):
    fn = fails_first(1, raising(sqlstate))
    with pytest.raises(DatabaseUnavailable):
        await notes.run(fn)
    assert await notes.run(fn) == 2


async def test_a_mistake_of_ours_is_told_as_it_is(notes: Store):
    with pytest.raises(IntegrityError):
        await notes.run(execute, "INSERT INTO note VALUES ('a')")


async def test_a_real_deadlock_is_resolved(notes: Store):
    holds = {"a": Event(), "b": Event()}

    def crossing(session: Connection, first: str, second: str) -> None:
        count_up(session, first)
        holds[first].set()
        holds[second].wait(10)
        count_up(session, second)

    await asyncio.gather(notes.run(crossing, "a", "b"), notes.run(crossing, "b", "a"))
    assert await notes.read(numbers) == {"a": 2, "b": 2}


async def test_a_commit_whose_end_is_unknown_is_not_run_again(postgres_url: str):
    store = await open_store(
        postgres_url, clock=SetClock(), ids=RandomIds(), crash_points=NoCrashes()
    )
    await store.run(execute, "CREATE TABLE note (text TEXT, number INT)")
    # A deferred trigger runs inside COMMIT, where it ends its own connection.
    await store.run(
        execute,
        f"""
        CREATE FUNCTION end_me() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM ({LOST}); PERFORM pg_sleep(1); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER end_me AFTER INSERT ON note DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION end_me()
    """,
    )
    runs = []

    def fn(session: Connection) -> None:
        runs.append(1)
        execute(session, "INSERT INTO note VALUES ('a', 0)")

    with pytest.raises(DatabaseUnavailable):
        await store.run(fn)
    assert runs == [1]
    assert await store.read(numbers) == {}
    await store.close()


async def test_readers_cannot_write(notes: Store):
    with pytest.raises(DatabaseUnavailable):
        await notes.read(count_up, "a")


async def test_a_reader_sees_one_snapshot(notes: Store):
    loop = asyncio.get_running_loop()

    def twice(session: Connection) -> tuple[dict[str, int], dict[str, int]]:
        before = numbers(session)
        asyncio.run_coroutine_threadsafe(notes.run(count_up, "a"), loop).result(10)
        return before, numbers(session)

    before, after = await notes.read(twice)
    assert before == after
    assert await notes.read(numbers) == {"a": 1, "b": 0}


async def test_slow_readers_leave_connections_for_writers(notes: Store):
    readers = 4
    busy = Barrier(readers + 1)
    slow = [asyncio.ensure_future(notes.read(lambda _: busy.wait(10))) for _ in range(readers * 2)]
    await notes.run(count_up, "a")
    for _ in range(2):
        await asyncio.to_thread(busy.wait, 10)
    await asyncio.gather(*slow)


async def test_a_turn_keeps_other_turns_out_but_not_their_effects(postgres_url: str):
    store = await opened_at(postgres_url)
    queue = await store.run(a_stored_queue)
    loop = asyncio.get_running_loop()

    def beside(session: Connection) -> None:
        execute(session, "SET lock_timeout = '1ms'")
        refers = f"""
            INSERT INTO green_tree (queue_id, key, org_id, tree, required, run, sha, at)
            VALUES ({queue.id}, 'k', 1, 't', 'r', 'r', 's', now())
        """
        execute(session, refers)

    def other_turn(session: Connection) -> None:
        execute(session, "SET lock_timeout = '1ms'")
        queues.head_of(session, queue.id, lock=True)

    def turn(session: Connection) -> type[object]:
        queues.head_of(session, queue.id, lock=True)
        asyncio.run_coroutine_threadsafe(store.run(beside), loop).result(10)
        blocked = asyncio.run_coroutine_threadsafe(store.run(other_turn), loop)
        return type(blocked.exception(10))

    assert await store.run(turn) is DatabaseUnavailable
    await store.close()


async def test_every_connection_has_its_limits(notes: Store):
    def limits(session: Connection) -> list[str]:
        names = (
            "statement_timeout",
            "lock_timeout",
            "idle_in_transaction_session_timeout",
            "transaction_isolation",
        )
        return [session.exec_driver_sql(f"SHOW {name}").scalar_one() for name in names]

    assert await notes.run(limits) == ["15s", "5s", "30s", "read committed"]
    assert await notes.read(limits) == ["15s", "5s", "30s", "repeatable read"]


async def test_a_server_that_is_not_there_may_come_later(tmp_path: Path):
    with pytest.raises(DatabaseAway, match="HEADGATE_DATABASE_URL"):
        await opened_at(f"postgresql://me:hunter2@/headgate?host={tmp_path}")


REFUSALS = {
    'password authentication failed for user "me"': False,
    "fe_sendauth: no password supplied": False,
    'no pg_hba.conf entry for host "[local]", user "me", database "headgate"': False,
    'role "me" is not permitted to log in': False,
    'database "headgate" does not exist': False,
    "the database system is starting up": True,
    "sorry, too many clients already": True,
}
"""The words by which a server refuses a connection; whether it may take one later."""


@pytest.mark.parametrize("words", REFUSALS)
async def test_a_server_that_refuses_for_good_refuses_the_start(tmp_path: Path, words: str):
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        length = int.from_bytes(await reader.readexactly(4))
        await reader.readexactly(length - 4)
        fields = f"SFATAL\0VFATAL\0C08004\0M{words}\0\0".encode()
        writer.write(b"E" + (len(fields) + 4).to_bytes(4) + fields)
        writer.close()

    with pytest.raises(StartRefused, match=re.escape(words)) as refused:
        async with await asyncio.start_unix_server(refuse, tmp_path / ".s.PGSQL.5432"):
            await opened_at(f"postgresql://me@/headgate?host={tmp_path}")
    assert isinstance(refused.value, DatabaseAway) is REFUSALS[words]


@pytest.mark.parametrize(
    ("setting", "passes"),
    [("default_transaction_read_only = on", True), ("role = pg_monitor", False)],
)
async def test_a_server_that_cannot_migrate_now_may_do_so_later(
    postgres: Server, setting: str, passes: bool
):
    with postgres.database("template1") as url, connected(url) as connection:
        execute(connection, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        execute(connection, f'ALTER DATABASE "{make_url(url).database}" SET {setting}')
        connection.commit()
        with pytest.raises(StartRefused) as refused:
            await opened_at(url)
    assert isinstance(refused.value, DatabaseAway) is passes


async def test_a_pool_of_one_serves_reads_and_writes(postgres_url: str):
    store = await open_store(
        postgres_url,
        clock=SetClock(),
        ids=RandomIds(),
        crash_points=NoCrashes(),
        options=StoreOptions(pool=1),
    )
    found = await asyncio.gather(store.run(queues.deployment_id), store.read(queues.deployment_id))
    assert found[0] == found[1]
    await store.close()


async def test_memory_is_the_newest_until_another_process_commits(postgres_url: str):
    here, there = await opened_at(postgres_url), await opened_at(postgres_url)
    queue = await here.run(a_stored_queue)
    assert await newest_known(here, queue.id) is None
    for store in (here, there):
        store.caches.of(QueueCache).put(queue)
    assert await newest_known(here, queue.id) == queue
    await there.run(execute, "UPDATE merge_queue SET version = version + 1")
    assert await newest_known(here, queue.id) is None
    await here.close()
    await there.close()


async def test_what_is_newest_is_told_again_after_its_session_was_ended(postgres_url: str):
    store = await opened_at(postgres_url)
    before = await store.access_version()
    await store.run(
        execute,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    assert await store.access_version() == before
    await store.close()


class Blocked:
    """A transaction in whose way every look stands, until it has found one waiting.

    `found` is set then; it ends when `released` is set, as it is unless somebody clears that.
    """

    def __init__(self, then: str) -> None:
        self.begun, self.found, self.released = Event(), Event(), Event()
        self.released.set()
        self._then = then

    def __call__(self, session: Connection) -> None:
        execute(session, "LOCK TABLE merge_queue")
        self.begun.set()
        count = 0
        while not count:
            execute(session, "SELECT pg_stat_clear_snapshot()")
            count = session.exec_driver_sql(
                f"SELECT count({self._then}) FROM pg_stat_activity "
                "WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ).scalar_one()
        self.found.set()
        self.released.wait()


async def test_a_look_whose_session_is_ended_is_begun_again(postgres_url: str):
    store = await opened_at(postgres_url)
    before = await store.access_version()
    blocked = Blocked("pg_terminate_backend(pid)")
    blocking = asyncio.create_task(store.run(blocked))
    await asyncio.to_thread(blocked.begun.wait)
    assert await store.access_version() == before
    await blocking
    await store.close()


async def test_who_stops_waiting_leaves_no_answer_to_the_next(postgres_url: str):
    store = await opened_at(postgres_url)
    queue = await store.run(a_stored_queue)
    store.caches.of(QueueCache).put(queue)
    assert await newest_known(store, queue.id) == queue
    before = await store.access_version()
    blocked = Blocked("pid")
    blocked.released.clear()
    blocking = asyncio.create_task(store.run(blocked))
    await asyncio.to_thread(blocked.begun.wait)
    impatient = asyncio.create_task(newest_known(store, queue.id))
    await asyncio.to_thread(blocked.found.wait)
    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    blocked.released.set()
    await blocking
    assert await store.access_version() == before
    assert await newest_known(store, queue.id) == queue
    await store.close()


async def test_a_look_that_is_a_mistake_of_ours_is_told_as_it_is(postgres_url: str):
    store = await opened_at(postgres_url)
    before = await store.access_version()
    await store.run(execute, "ALTER TABLE merge_queue RENAME TO line")
    with pytest.raises(DBAPIError, match="merge_queue"):
        await store.access_version()
    await store.run(execute, "ALTER TABLE line RENAME TO merge_queue")
    assert await store.access_version() == before
    await store.close()
