"""A PostgreSQL server that is restarted or hangs: each question ends in time, and heals."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator

import psycopg
import pytest
from sqlalchemy import Connection, make_url
from sqlalchemy.exc import OperationalError

from service import time_limits
from service.database import postgresql
from service.database.database import Store
from service.errors import DatabaseUnavailable
from tests.harness.databases import Server, opened_at


@pytest.fixture
async def store(outage_url: str) -> AsyncIterator[Store]:
    opened = await opened_at(outage_url)
    yield opened
    await opened.close()


def one(session: Connection) -> int:
    number: int = session.exec_driver_sql("SELECT 1").scalar_one()
    return number


async def outcomes(store: Store) -> list[str]:
    """How each kind of question ends: `done`, or the code of its refusal."""
    asked = (store.run(one), store.read(one), store.access_version(), store.show_life("me"))
    ended = await asyncio.gather(*asked, return_exceptions=True)
    return [told(each) for each in ended]


def told(ended: object) -> str:
    if isinstance(ended, DatabaseUnavailable):
        return ended.code
    return repr(ended) if isinstance(ended, BaseException) else "done"


AWAY = ["database_unavailable"] * 4
DONE = ["done"] * 4


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_a_server_that_was_restarted_is_used_again_by_the_next_question(
    store: Store, own_postgres: Server, mode: str
) -> None:
    assert await outcomes(store) == DONE
    own_postgres.halt(mode)
    assert await outcomes(store) == AWAY
    own_postgres.begin()
    assert await outcomes(store) == DONE


async def test_sockets_that_take_the_number_of_a_lost_session_disturb_no_look(
    store: Store, own_postgres: Server
) -> None:
    await store.access_version()
    own_postgres.halt("immediate")
    loop = asyncio.get_running_loop()
    pairs: list[socket.socket] = []
    # The loop hears of the end of its sessions, if it listens.
    await asyncio.to_thread(own_postgres.begin)
    # Sockets of others take every number that the lost sessions leave.
    for _ in range(20):
        pairs += socket.socketpair()
    transports = [await loop.connect_accepted_socket(asyncio.Protocol, each) for each in pairs]
    assert await outcomes(store) == DONE
    for transport, _ in transports:
        transport.abort()


async def test_a_server_that_hangs_is_refused_in_time_and_used_again_when_it_goes_on(
    store: Store, outage_url: str, own_postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await outcomes(store) == DONE
    monkeypatch.setattr(time_limits, "ANSWER_S", 0.5)
    monkeypatch.setattr(postgresql.LimitedConnection, "wait_s", 1.0)
    monkeypatch.setattr(postgresql.Prompt, "wait_s", 0.5)
    time_limits.answer_soon()
    threads = threading.active_count()
    with own_postgres.hung():
        async with asyncio.timeout(100):
            for _ in range(5):
                assert await outcomes(store) == AWAY
        assert threading.active_count() <= threads + postgresql.POOL_MAX + 2
    deadline = time.monotonic() + 100
    while (last := await outcomes(store)) != DONE:
        assert time.monotonic() < deadline, last
    # A server that was stopped notices late which of its clients have gone.
    # Each look is a session itself, which may last until after the next one.
    while (left := sessions_of(outage_url)) > postgresql.POOL_MAX + 3:
        assert time.monotonic() < deadline, left


def test_a_connection_is_ended_when_its_server_does_not_answer(
    outage_url: str, own_postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = postgresql.engine_of(make_url(outage_url), 1)
    with engine.connect() as session:
        session.commit()
        monkeypatch.setattr(postgresql.LimitedConnection, "wait_s", 0.5)
        with own_postgres.hung(), pytest.raises(OperationalError) as ended:
            one(session)
        assert ended.value.connection_invalidated
    engine.dispose()


def sessions_of(url: str) -> int:
    """How many sessions the server has for this database, this one included."""
    with psycopg.connect(url) as session:
        (count,) = session.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        ).fetchone() or (0,)
    return int(count)


def test_every_connection_notices_a_dead_network(outage_url: str) -> None:
    engine = postgresql.engine_of(make_url(outage_url), 1)
    with engine.connect() as session:
        driver = session.connection.driver_connection
        assert isinstance(driver, postgresql.LimitedConnection)
        options = {each.keyword: each.val for each in driver.pgconn.info}
    engine.dispose()
    assert options[b"tcp_user_timeout"] == b"20000"
    assert options[b"keepalives_idle"] == b"10"
