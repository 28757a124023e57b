"""What becomes of a delivery whose translation meets trouble at the provider."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from service.database.database import Tx
from service.database.tables_deliveries import InboxRow
from service.process import deliveries
from service.provider.errors import ProviderError, Unavailable
from service.provider.signals import Delivery, Signal
from service.runtime import Runtime, Translator
from tests.operations.conftest import WaitingClock

pytestmark = pytest.mark.each_database

HOST = "values.test"


def stored(session: Tx) -> tuple[str, str | None]:
    """State and note of the only delivery."""
    table = InboxRow.__table__
    return tuple(session.execute(select(table.c.state, table.c.note)).one())


def unreadable(_: Delivery) -> tuple[Signal, ...]:
    raise ProviderError("push lacks something.")


def translating(runtime: Runtime, translator: Translator) -> Runtime:
    return replace(runtime, translators={HOST: translator})


async def accepted(runtime: Runtime) -> None:
    delivery = Delivery(HOST, "guid-1", "push", None, "1", b"{}", runtime.clock.now())
    assert await deliveries.accept(runtime, delivery)


async def test_one_that_cannot_be_translated_is_tried_five_times_and_then_parked(
    runtime: Runtime, clock: WaitingClock
):
    faulty = translating(runtime, unreadable)
    await accepted(faulty)
    for _ in range(4):
        (row,) = (await deliveries.claim(faulty, 8)).rows
        await deliveries.take_up(faulty, row)
        assert await runtime.store.read(stored) == ("open", "push lacks something.")
        assert (await deliveries.claim(faulty, 8)).rows == ()
        await clock.sleep(60)
    (row,) = (await deliveries.claim(faulty, 8)).rows
    await deliveries.take_up(faulty, row)
    assert await runtime.store.read(stored) == ("poisoned", "push lacks something.")


async def test_one_whose_translation_must_wait_is_taken_up_at_that_time(
    runtime: Runtime, clock: WaitingClock
):
    def away(_: Delivery) -> tuple[Signal, ...]:
        raise Unavailable("The provider is away.", clock.now() + timedelta(seconds=30))

    await accepted(translating(runtime, away))
    (row,) = (await deliveries.claim(runtime, 8)).rows
    await deliveries.take_up(translating(runtime, away), row)
    await clock.sleep(29)
    assert (await deliveries.claim(runtime, 8)).rows == ()
    await clock.sleep(1)
    (row,) = (await deliveries.claim(runtime, 8)).rows
    await deliveries.take_up(runtime, row)
    assert await runtime.store.read(stored) == ("done", "ignored")


async def test_one_that_says_nothing_is_answered_and_not_stored(runtime: Runtime):
    await accepted(translating(runtime, lambda _: ()))
    assert (await deliveries.claim(runtime, 8)).rows == ()


async def test_one_whose_translation_breaks_is_stored(runtime: Runtime):
    def broken(_: Delivery) -> tuple[Signal, ...]:
        raise KeyError("a mistake of ours")

    await accepted(translating(runtime, broken))
    assert len((await deliveries.claim(runtime, 8)).rows) == 1
