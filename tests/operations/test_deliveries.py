"""What becomes of a delivery whose translation meets trouble at the provider."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from service import tracing
from service.database import inbox
from service.database.database import Tx
from service.database.tables_deliveries import InboxRow
from service.errors import DatabaseUnavailable
from service.process import deliveries
from service.provider.errors import AppRefused, NotPermitted, ProviderError, Suspended, Unavailable
from service.provider.signals import AccessChanged, Delivery, Signal
from service.runtime import Runtime, Translator
from service.tracing import Span, Traces
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


async def test_one_that_an_outage_of_the_provider_stops_counts_no_attempt_for_a_day(
    runtime: Runtime, clock: WaitingClock
):
    def away(_: Delivery) -> tuple[Signal, ...]:
        raise Unavailable("The provider is away.", clock.now())

    end = clock.now() + timedelta(hours=24)
    faulty = translating(runtime, away)
    await accepted(faulty)
    while (due := await runtime.store.read(inbox.next_due)) is not None and due < end:
        await worked_on(faulty, clock)
        assert await runtime.store.read(stored) == ("open", "The provider is away.")
    for _ in range(deliveries.ATTEMPTS_MAX):
        assert (await runtime.store.read(stored))[0] == "open"
        await worked_on(faulty, clock)
    assert await runtime.store.read(stored) == ("poisoned", "The provider is away.")


@pytest.mark.fault(
    "the database is away while a delivery is worked on", holds="no delivery is parked", within="-"
)
async def test_one_that_an_outage_of_the_database_breaks_off_is_tried_a_second_later_for_ever(
    runtime: Runtime, clock: WaitingClock
):
    await accepted(translating(runtime, unreadable))
    for _ in range(20):
        (row,) = (await deliveries.claim(runtime, 8)).rows
        away = DatabaseUnavailable("The database is away.", retry_after_s=1)
        await deliveries.interrupted(runtime, row, away)
        assert (await deliveries.claim(runtime, 8)).rows == ()
        await clock.sleep(1)
    await worked_on(runtime, clock)
    assert await runtime.store.read(stored) == ("done", "ignored")


@pytest.mark.fault(
    "GitHub was away for long, and the first try after that meets another trouble",
    holds="the delivery is tried as often as any other before it is parked",
    within="-",
)
async def test_an_outage_takes_no_attempt_from_what_comes_after_it(
    runtime: Runtime, clock: WaitingClock
):
    def away(_: Delivery) -> tuple[Signal, ...]:
        raise Unavailable("The provider is away.", clock.now())

    faulty = translating(runtime, unreadable)
    await accepted(faulty)
    for _ in range(2 * deliveries.ATTEMPTS_MAX):
        await worked_on(translating(runtime, away), clock)
    for _ in range(deliveries.ATTEMPTS_MAX):
        assert (await runtime.store.read(stored))[0] == "open"
        await worked_on(faulty, clock)
    assert await runtime.store.read(stored) == ("poisoned", "push lacks something.")


async def test_a_day_after_it_came_each_try_counts(runtime: Runtime, clock: WaitingClock):
    def away(_: Delivery) -> tuple[Signal, ...]:
        raise Unavailable("The provider is away.", clock.now())

    faulty = translating(runtime, away)
    await accepted(faulty)
    await clock.sleep(deliveries.WAITS_FOR.total_seconds())
    for _ in range(deliveries.ATTEMPTS_MAX):
        assert (await runtime.store.read(stored))[0] == "open"
        await worked_on(faulty, clock)
    assert (await runtime.store.read(stored))[0] == "poisoned"


async def test_one_that_is_parked_leaves_its_lane_to_the_next(
    runtime: Runtime, clock: WaitingClock
):
    await accepted(translating(runtime, unreadable))
    next_one = Delivery(HOST, "guid-2", "push", None, "1", b"{}", clock.now())
    assert await deliveries.accept(translating(runtime, unreadable), next_one)
    for _ in range(deliveries.ATTEMPTS_MAX):
        (row,) = (await deliveries.claim(runtime, 8)).rows
        await deliveries.interrupted(runtime, row, KeyError("a mistake of ours"))
        await wait_for_next(runtime, clock)
    (row,) = (await deliveries.claim(runtime, 8)).rows
    assert [one.delivery.id for one in row.deliveries] == ["guid-2"]


async def test_one_that_meets_a_mistake_of_ours_is_parked_after_five_attempts(
    runtime: Runtime, clock: WaitingClock
):
    await accepted(translating(runtime, unreadable))
    pauses = []
    while (await runtime.store.read(stored))[0] == "open":
        (row,) = (await deliveries.claim(runtime, 8)).rows
        await deliveries.interrupted(runtime, row, KeyError("a mistake of ours"))
        pauses.append(await wait_for_next(runtime, clock))
    assert pauses == [2, 4, 8, 16, 0]
    assert await runtime.store.read(stored) == ("poisoned", "A mistake of ours; the log has it.")


async def test_one_of_an_unknown_host_is_ignored(runtime: Runtime):
    await accepted(translating(runtime, unreadable))
    strange = replace(runtime, translators={})
    (row,) = (await deliveries.claim(strange, 8)).rows
    await deliveries.take_up(strange, row)
    assert await runtime.store.read(stored) == ("done", "ignored: unknown host")


async def test_one_whose_host_is_unknown_is_stored(runtime: Runtime):
    await accepted(replace(runtime, translators={}))
    assert len((await deliveries.claim(runtime, 8)).rows) == 1


async def test_one_that_is_known_wakes_no_worker(runtime: Runtime):
    faulty = translating(runtime, unreadable)
    before = runtime.wakeups.version("inbox")
    await accepted(faulty)
    assert runtime.wakeups.version("inbox") == before + 1
    delivery = Delivery(HOST, "guid-1", "push", None, "1", b"{}", runtime.clock.now())
    assert not await deliveries.accept(faulty, delivery)
    assert runtime.wakeups.version("inbox") == before + 1


async def test_what_this_process_claimed_and_no_task_owns_is_claimed_again_as_before(
    runtime: Runtime,
):
    await accepted(translating(runtime, unreadable))
    (row,) = (await deliveries.claim(runtime, 8)).rows
    assert (await deliveries.claim(runtime, 8)).rows == ()
    owned = await deliveries.claim(runtime, 8, {row.id})
    assert (owned.rows, owned.given_back) == ((), 0)
    lost = await deliveries.claim(runtime, 8, ())
    assert (lost.rows, lost.given_back) == ((row,), 1)


async def worked_on(runtime: Runtime, clock: WaitingClock) -> None:
    """Work on the only delivery when it is due."""
    await wait_for_next(runtime, clock)
    (row,) = (await deliveries.claim(runtime, 8)).rows
    await deliveries.take_up(runtime, row)


async def wait_for_next(runtime: Runtime, clock: WaitingClock) -> float:
    """Wait until the delivery is due; the seconds, 0 if none is open."""
    due = await runtime.store.read(inbox.next_due)
    pause_s = 0 if due is None else max((due - clock.now()).total_seconds(), 0)
    await clock.sleep(pause_s)
    return pause_s


async def test_one_that_is_settled_names_its_signals(runtime: Runtime):
    host = translating(runtime, lambda _: (AccessChanged(HOST, "999", suspended=False),) * 2)
    await accepted(host)
    (row,) = (await deliveries.claim(host, 8)).rows
    await deliveries.take_up(host, row)
    assert await runtime.store.read(stored) == ("done", "AccessChanged, AccessChanged")


@pytest.mark.parametrize(("action", "noted"), [("opened", "opened"), (None, "")])
async def test_work_on_one_is_traced_by_its_action(
    runtime: Runtime, action: str | None, noted: str
):
    kept: list[Span] = []

    class Keeper:
        record = staticmethod(kept.append)

    def about(_: Delivery) -> tuple[Signal, ...]:
        tracing.about("bc084540-ba7a-5517-b5ea-b3e25c361956")
        return ()

    traced = replace(runtime, traces=Traces(Keeper(), runtime.clock.now, "one"))
    delivery = Delivery(HOST, "guid-1", "push", action, "1", b"{}", runtime.clock.now())
    await deliveries.accept(translating(runtime, unreadable), delivery)
    (row,) = (await deliveries.claim(traced, 8)).rows
    await deliveries.take_up(translating(traced, about), row)
    (span,) = [each for each in kept if each.name == "webhook push"]
    assert span.fields["headgate.delivery.action"] == noted


@pytest.mark.parametrize("refusal", [AppRefused("The key is refused."), Suspended("Suspended.")])
@pytest.mark.fault(
    "GitHub refuses or has suspended the App",
    holds="what was said meanwhile is heard",
    within="5 min after the App is accepted again",
)
async def test_one_waits_uncounted_while_the_app_is_refused(
    refusal: ProviderError, runtime: Runtime, clock: WaitingClock
):
    def refused(_: Delivery) -> tuple[Signal, ...]:
        raise refusal

    faulty = translating(runtime, refused)
    await accepted(faulty)
    for _ in range(2 * deliveries.ATTEMPTS_MAX):
        (row,) = (await deliveries.claim(faulty, 8)).rows
        await deliveries.take_up(faulty, row)
        await clock.sleep(deliveries.LATEST.total_seconds())
    (row,) = (await deliveries.claim(runtime, 8)).rows
    await deliveries.take_up(runtime, row)
    assert await runtime.store.read(stored) == ("done", "ignored")


async def test_one_that_lacks_a_right_is_parked_and_blocks_no_other(
    runtime: Runtime, clock: WaitingClock
):
    def refused(_: Delivery) -> tuple[Signal, ...]:
        raise NotPermitted("Resource not accessible by integration.")

    faulty = translating(runtime, refused)
    await accepted(faulty)
    for _ in range(deliveries.ATTEMPTS_MAX):
        (row,) = (await deliveries.claim(faulty, 8)).rows
        await deliveries.take_up(faulty, row)
        await clock.sleep(60)
    assert (await runtime.store.read(stored))[0] == "poisoned"
