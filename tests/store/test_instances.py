"""Who serves a database, who is gone, and what they leave."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from sqlalchemy import Connection

from service.database import instances, outbox, probes
from service.database.database import Store
from service.database.instances import GONE_AFTER, Instance, LiveInstance
from service.database.outbox import OutboxItem
from service.process import presence
from tests.harness.databases import opened_at
from tests.store.conftest import ME, NOW, a_stored_queue
from tests.store.test_outbox import build, land

SECOND = timedelta(seconds=1)


def called(name: str) -> Instance:
    return Instance(name, "0.0.7", "same")


@pytest.fixture
async def pair(postgres_url: str) -> AsyncIterator[tuple[Store, Store]]:
    """Two processes' stores over one database."""
    first, second = await opened_at(postgres_url), await opened_at(postgres_url)
    yield first, second
    await first.close()
    await second.close()


async def arrive(store: Store, name: str) -> presence.Freed:
    """What a process does first; what it found left by the dead."""
    await store.show_life(name)
    await store.run(instances.beat, called(name), NOW)
    return await store.run(presence.free_claims_of_gone, name, NOW)


async def living(store: Store, me: str) -> list[str]:
    return [each.id for each in await store.read(instances.living, me, NOW)]


@pytest.mark.parametrize(
    ("key", "silent_s", "lives"),
    [("one", 0, True), ("one", 39.9, True), ("one", 40, False), ("two", 0, False)],
)
def test_who_shows_its_sign_and_was_there_lately_lives(key: str, silent_s: float, lives: bool):
    known = LiveInstance("one", "0.0.7", "same", NOW, NOW)
    shown = {probes.lock_key(key)}
    assert instances.lives(known, shown, NOW + silent_s * SECOND) is lives


def test_a_permit_of_who_stands_still_is_over_before_it_is_gone():
    beat, permit = timedelta(seconds=5), timedelta(seconds=30)
    assert beat + permit < GONE_AFTER


def test_a_heartbeat_keeps_the_start_and_moves_the_last_time(session: Connection):
    instances.beat(session, called(ME), NOW)
    (first,) = instances.living(session, ME, NOW)
    instances.beat(session, called(ME), NOW + SECOND)
    (second,) = instances.living(session, ME, NOW)
    assert second.started_at == first.started_at == first.heartbeat
    assert second.heartbeat > first.heartbeat


async def test_a_landing_whose_instance_stopped_answering_names_its_takeover(
    pair: tuple[Store, Store],
):
    first, second = pair
    await arrive(first, "first")
    queue_id = await first.run(send_one, "first", land("r1"))
    assert await second.read(instances.silent_landing, queue_id, NOW) is None
    await second.run(stand_still, 20)
    (known,) = await second.read(instances.living, "second", NOW)
    takeover = await second.read(instances.silent_landing, queue_id, NOW)
    assert takeover == known.heartbeat + GONE_AFTER


async def test_an_instance_that_stopped_answering_names_no_takeover_where_it_lands_nothing(
    pair: tuple[Store, Store],
):
    first, second = pair
    await arrive(first, "first")
    built = await first.run(send_one, "first", build("r1"))
    landed = await first.run(send_one, "first", land("r2"), "release")
    await second.run(stand_still, 20)
    assert await second.read(instances.silent_landing, built, NOW) is None
    assert await second.read(instances.silent_landing, landed, NOW) is not None


async def test_the_next_process_takes_what_the_last_one_was_sending(database_url: str):
    first = await opened_at(database_url)
    await arrive(first, "first")
    await first.run(send_one, "first")
    await first.close()
    second = await opened_at(database_url)
    left = await arrive(second, "second")
    assert (left.gone, left.effects) == (("first",), 1)
    assert await living(second, "second") == ["second"]
    await second.close()


async def test_what_nobody_is_named_for_belongs_to_nobody(store: Store):
    await store.run(send_one, "long gone, and its row too")
    assert (await arrive(store, ME)).effects == 1


async def test_of_two_processes_none_takes_from_the_other(pair: tuple[Store, Store]):
    first, second = pair
    await arrive(first, "first")
    await first.run(send_one, "first")
    left = await arrive(second, "second")
    assert (left.gone, left.effects) == ((), 0)
    assert await living(first, "first") == await living(second, "second") == ["first", "second"]


async def test_who_ends_without_a_word_is_gone_at_once(pair: tuple[Store, Store]):
    first, second = pair
    await arrive(first, "first")
    await arrive(second, "second")
    await first.run(send_one, "first")
    await first.close()
    left = await second.run(presence.free_claims_of_gone, "second", NOW)
    assert (left.gone, left.effects) == (("first",), 1)


@pytest.mark.fault("an instance hangs", holds="another one takes over what it had", within="40 s")
async def test_who_stands_still_is_gone_after_forty_seconds(pair: tuple[Store, Store]):
    first, second = pair
    await arrive(first, "first")
    await first.run(send_one, "first")
    await second.run(stand_still, 39)
    assert (await arrive(second, "second")).gone == ()
    await second.run(stand_still, 1)
    assert (await second.run(presence.free_claims_of_gone, "second", NOW)).effects == 1
    assert await living(second, "second") == ["second"]
    await arrive(first, "first")
    assert await living(second, "second") == ["second", "first"]


@pytest.mark.fault(
    "PostgreSQL ends the sessions that hold the locks of instances",
    holds="each instance that lives shows it again",
    within="its next heartbeat",
)
async def test_a_sign_that_was_lost_is_shown_again(pair: tuple[Store, Store]):
    first, second = pair
    await arrive(first, "first")
    await arrive(second, "second")
    await second.run(break_locks)
    assert await living(second, "second") == ["second"]
    await first.show_life("first")
    await first.show_life("first")
    assert await living(second, "second") == ["first", "second"]


async def test_who_leaves_gives_back_its_own_alone(pair: tuple[Store, Store]):
    first, second = pair
    await arrive(first, "first")
    await arrive(second, "second")
    await first.run(send_one, "first")
    assert (await second.run(presence.free_own_claims, "second", NOW)).effects == 0
    assert await living(first, "first") == ["first"]
    assert (await first.run(presence.free_own_claims, "first", NOW)).effects == 1
    assert await living(second, "second") == []


def send_one(
    session: Connection, by: str, item: OutboxItem | None = None, branch: str = "main"
) -> int:
    """An effect on its way; return the id of its queue."""
    queue = a_stored_queue(session, branch)
    outbox.append(session, 1, queue.id, 1, [item or build("r1")])
    (row,) = outbox.claim(session, NOW, 1)
    assert outbox.mark_sent(session, by, [row.id], NOW)
    return queue.id


def stand_still(session: Connection, seconds: int) -> None:
    """So much time passes without a heartbeat of the first."""
    moved = f"heartbeat - interval '{seconds} seconds'"
    session.exec_driver_sql(f"UPDATE instance SET heartbeat = {moved} WHERE id = 'first'")


def break_locks(session: Connection) -> None:
    """The server ends every session that only shows a sign, and is waited for."""
    session.exec_driver_sql(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks l"
        " JOIN pg_database d ON d.oid = l.database"
        " WHERE l.locktype = 'advisory' AND d.datname = current_database()"
    )
