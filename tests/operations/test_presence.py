"""Two processes over one PostgreSQL database: each keeps what it claimed while it lives."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest
from structlog.testing import capture_logs

from service.database import outbox
from service.database.database import Store, Tx
from service.database.outbox import Lane, OutboxItem, OutboxState
from service.metrics.process_families import ProcessMeter
from service.notifications import endpoints, notifications
from service.notifications.endpoints import EndpointChange
from service.notifications.sender import HttpSender
from service.process import deliveries, effects, presence
from service.process.workers.supervisor import Workers
from service.provider.signals import Delivery
from service.provider.values import Emoji, Reaction
from service.runtime import Runtime
from service.vocabulary import QueueRef
from tests.harness.databases import opened_at
from tests.harness.receiver import Receiver, receiving
from tests.metrics.test_process import told
from tests.operations.conftest import WaitingClock
from tests.operations.message_stage import LOOPBACK, Stage, a_caller


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[Store]:
    """The first process's store; the database is one that several may serve."""
    opened = await opened_at(postgres_url)
    yield opened
    await opened.close()


@pytest.fixture
async def other_store(postgres_url: str) -> AsyncIterator[Store]:
    opened = await opened_at(postgres_url)
    yield opened
    await opened.close()


@dataclass
class Pair:
    """Two processes, of which the first has one of everything under way."""

    first: Runtime
    second: Runtime
    receiver: Receiver

    async def taken_by_second(self) -> tuple[int, int, int]:
        """Effects, deliveries and attempts that the second gets if it asks now."""
        return (
            len((await effects.claim(self.second, 9, lanes=outbox.ACTING)).rows),
            len((await deliveries.claim(self.second, 9)).rows),
            len((await notifications.claim(self.second, 9)).rows),
        )


@pytest.fixture
async def pair(
    runtime: Runtime, clock: WaitingClock, queue: QueueRef, other_store: Store
) -> AsyncIterator[Pair]:
    first = replace(runtime, instance="first", sender=HttpSender(LOOPBACK))
    second = replace(first, instance="second", store=other_store, telemetry=ProcessMeter("1", "3"))
    await presence.join(first)
    async with receiving() as receiver:
        caller = await a_caller(first, queue)
        view, secret = await endpoints.create(first, caller, EndpointChange(receiver.url, ("*",)))
        await Stage(first, clock, queue, caller, receiver, view, secret).hold()
        reaction = OutboxItem(Lane.CONTROL, "r", "react", Reaction(3, "7", Emoji.EYES), clock.now())
        await first.store.run(outbox.append, queue.repository_id, queue.id, 1, [reaction])
        sent = Delivery("values.test", "guid-1", "push", None, "1", b"{}", clock.now())
        await deliveries.accept(replace(first, translators={}), sent)
        await clock.sleep(5)
        assert (await effects.claim(first, 9, lanes=outbox.ACTING)).rows
        assert (await deliveries.claim(first, 9)).rows
        assert (await notifications.claim(first, 9)).rows
        yield Pair(first, second, receiver)


@pytest.mark.fault(
    "an instance starts while others work", holds="nothing of theirs is taken", within="-"
)
async def test_a_start_leaves_everything_to_the_living(pair: Pair):
    await presence.recover(pair.second)
    assert await pair.taken_by_second() == (0, 0, 0)


@pytest.mark.fault(
    "an instance ends without a word",
    holds="another one takes over its effects, deliveries and notifications",
    within="its next heartbeat (5 s)",
)
async def test_what_a_process_had_that_ended_without_a_word_is_taken_back(pair: Pair):
    await presence.join(pair.second)
    await pair.first.store.close()
    assert (await presence.beat(pair.second)).gone
    (effect,) = [
        row
        for row in (await effects.claim(pair.second, 9, lanes=outbox.ACTING)).rows
        if row.key == "r"
    ]
    assert effect.state is OutboxState.UNKNOWN
    assert len((await deliveries.claim(pair.second, 9)).rows) == 1
    (attempt,) = (await notifications.claim(pair.second, 9)).rows
    await notifications.carry_out(pair.second, attempt)
    assert [got.id for got in pair.receiver.got] == [attempt.message]
    assert not (await presence.beat(pair.second)).gone


async def test_what_a_process_had_that_stopped_is_anybodys_at_once(pair: Pair):
    await presence.join(pair.second)
    await presence.leave(pair.first)
    assert await pair.taken_by_second() == (1, 1, 1)


async def test_operators_see_how_many_live_and_whether_their_settings_differ(pair: Pair):
    async def levels() -> tuple[float, float]:
        await presence.measure(pair.second)
        assert isinstance(pair.second.telemetry, ProcessMeter)
        shown = told(pair.second.telemetry)
        return shown["headgate_instances"], shown["headgate_config_mismatch"]

    strange = replace(
        pair.second, options=replace(pair.second.options, fingerprint="of other settings")
    )
    with capture_logs() as logs:
        await presence.join(strange)
    (warning,) = [line for line in logs if line["event"] == "settings_differ"]
    assert warning["others"] == ["first"]
    assert await levels() == (2, 1)
    await presence.leave(pair.first)
    assert await levels() == (1, 0)


async def test_a_process_that_only_answers_frees_what_the_dead_had_and_does_none_of_it(pair: Pair):
    await presence.join(pair.second)
    await pair.first.store.close()
    assert await Workers(pair.second, is_working=False).drain()
    assert pair.receiver.got == []
    assert await pair.taken_by_second() == (1, 1, 1)


@pytest.mark.fault(
    "a background job crashes",
    holds="the others go on, and it is named until it succeeds",
    within="its own period",
)
async def test_a_job_that_crashes_is_named_until_it_succeeds(runtime: Runtime):
    def rename(session: Tx, old: str, new: str) -> None:
        session.exec_driver_sql(f"ALTER TABLE {old} RENAME TO {new}")

    async def until(names: list[str]) -> None:
        async with asyncio.timeout(10):
            while [one.note for one in runtime.troubles.all()] != names:
                await runtime.store.read(lambda session: session.exec_driver_sql("SELECT 1"))

    workers = Workers(runtime, is_working=False)
    await runtime.store.run(rename, "instance", "elsewhere")
    beating = asyncio.create_task(workers.run())
    await until(["beat"])
    await runtime.store.run(rename, "elsewhere", "instance")
    await until([])
    await workers.stop()
    await beating
