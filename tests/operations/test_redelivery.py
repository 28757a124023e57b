"""Deliveries that failed, asked for again: which, how often, and back to when."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from service.memory import Memory
from service.process import deliveries, redelivery
from service.provider.errors import Unavailable
from service.provider.signals import Delivery, FailedDelivery, Lost
from service.runtime import Runtime
from service.troubles import TroubleName
from tests.harness.values import ValuesProvider
from tests.operations.conftest import WaitingClock

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


class LoggingProvider(ValuesProvider):
    """Remembers how far back it was asked to look; `away` makes asking fail."""

    def __init__(self) -> None:
        super().__init__()
        self.looked: list[datetime] = []
        self.away = False

    async def failed_deliveries(self, since: datetime) -> Sequence[FailedDelivery]:
        self.looked.append(since)
        return await super().failed_deliveries(since)

    async def redeliver(self, attempt: str) -> None:
        if self.away:
            raise Unavailable("The provider is away.", self.looked[-1])
        await super().redeliver(attempt)


@pytest.fixture
def provider() -> LoggingProvider:
    """Instead of the provider that remembers less."""
    return LoggingProvider()


def failed(number: int, at: datetime) -> FailedDelivery:
    return FailedDelivery(f"guid-{number}", f"try-{number}", at)


def arrived(runtime: Runtime, number: int, host: str = "values.test") -> Delivery:
    return Delivery(host, f"guid-{number}", "push", None, "1", b"{}", runtime.clock.now())


def storing(runtime: Runtime) -> Runtime:
    """A process that cannot tell whether a delivery says something."""
    return replace(runtime, translators={})


async def test_only_what_never_came_in_is_asked_for(runtime: Runtime, provider: LoggingProvider):
    at = runtime.clock.now() - HOUR
    provider.failed = [failed(number, at) for number in range(4)]
    await deliveries.accept(storing(runtime), arrived(runtime, 1))
    await deliveries.accept(storing(runtime), arrived(runtime, 2, host="other.test"))
    with capture_logs() as logs:
        await redelivery.ask_again(runtime)
    assert provider.redelivered == ["try-0", "try-2", "try-3"]
    assert [(line["event"], line["deliveries"]) for line in logs] == [("redelivered", 3)]
    provider.failed = []
    with capture_logs() as logs:
        await redelivery.ask_again(runtime)
    assert logs == []


async def test_the_first_sweep_looks_three_days_back_and_the_next_to_the_last(
    runtime: Runtime, provider: LoggingProvider, clock: WaitingClock
):
    started = clock.now()
    for _ in range(3):
        await redelivery.ask_again(runtime)
        await clock.sleep(600)
    tenth = started + 10 * MINUTE
    assert provider.looked == [started - 72 * HOUR, started - MINUTE, tenth - MINUTE]


async def test_nothing_is_asked_for_twice_unless_it_failed_again(
    runtime: Runtime, provider: LoggingProvider, clock: WaitingClock
):
    provider.failed = [failed(1, clock.now() - HOUR), failed(2, clock.now() - HOUR)]
    await redelivery.ask_again(runtime)
    await clock.sleep(600)
    provider.failed.append(FailedDelivery("guid-2", "try-2b", clock.now() - MINUTE))
    await redelivery.ask_again(runtime)
    assert provider.redelivered == ["try-1", "try-2", "try-2b"]


async def test_a_sweep_asks_for_a_hundred_a_second_apart_and_the_next_for_the_rest(
    runtime: Runtime, provider: LoggingProvider, clock: WaitingClock
):
    at = clock.now() - HOUR
    provider.failed = [failed(number, at) for number in range(105)]
    await redelivery.ask_again(runtime)
    assert provider.redelivered == [f"try-{number}" for number in range(100)]
    assert clock.waits == [1.0] * 99
    for number in range(100):
        await deliveries.accept(storing(runtime), arrived(runtime, number))
    await redelivery.ask_again(runtime)
    assert provider.redelivered[100:] == [f"try-{number}" for number in range(100, 105)]


@pytest.mark.fault(
    "more webhooks that say nothing were lost than a sweep asks for",
    holds="those behind them are asked for as well, and none twice",
    within="10 min for each hundred",
)
async def test_what_is_not_stored_because_it_says_nothing_keeps_no_other_from_being_asked_for(
    runtime: Runtime, provider: LoggingProvider, clock: WaitingClock
):
    provider.failed = [failed(number, clock.now() - HOUR) for number in range(250)]
    silent = replace(runtime, translators={"values.test": lambda _: ()})
    for _ in range(4):
        before = len(provider.redelivered)
        await redelivery.ask_again(runtime)
        for attempt in provider.redelivered[before:]:
            number = int(attempt.removeprefix("try-"))
            assert await deliveries.accept(silent, arrived(runtime, number))
        await clock.sleep(600)
    assert provider.redelivered == [f"try-{number}" for number in range(250)]


@pytest.mark.fault(
    "the provider is away while lost webhooks are asked for",
    holds="the next sweep asks for the same",
    within="-",
)
async def test_after_trouble_the_next_sweep_looks_as_far_back(
    runtime: Runtime, provider: LoggingProvider, clock: WaitingClock
):
    provider.failed = [failed(1, clock.now() - HOUR)]
    provider.away = True
    await redelivery.ask_again(runtime)
    provider.away = False
    await redelivery.ask_again(runtime)
    assert provider.looked[0] == provider.looked[1]
    assert provider.redelivered == ["try-1"]


async def test_commands_come_first_and_what_sweeps_read_is_not_asked_for(
    runtime: Runtime, provider: LoggingProvider, clock: WaitingClock
):
    at = clock.now() - HOUR
    checks = [replace(failed(number, at), lost=Lost.SWEPT) for number in range(10_000)]
    facts = [failed(number, at) for number in range(10_000, 10_150)]
    comment = replace(failed(20_000, clock.now()), lost=Lost.COMMAND)
    provider.failed = [*checks, *facts, comment]
    await redelivery.ask_again(runtime)
    assert provider.redelivered == [
        "try-20000",
        *(f"try-{number}" for number in range(10_000, 10_099)),
    ]


async def test_a_restart_looks_back_to_the_last_completed_sweep(
    runtime: Runtime, provider: LoggingProvider, clock: WaitingClock
):
    started = clock.now()
    await redelivery.ask_again(runtime)
    await clock.sleep(600)
    await redelivery.ask_again(replace(runtime, memory=Memory()))
    assert provider.looked == [started - 72 * HOUR, started - MINUTE]


async def test_many_known_ones_are_told_apart(runtime: Runtime, provider: LoggingProvider):
    provider.failed = [failed(number, runtime.clock.now()) for number in range(2100)]
    for number in (0, 1500, 2099):
        await deliveries.accept(storing(runtime), arrived(runtime, number))
    await redelivery.ask_again(runtime)
    assert provider.redelivered == [f"try-{number}" for number in range(1, 101)]


async def test_lost_webhooks_are_named_until_one_arrives(
    runtime: Runtime, provider: LoggingProvider
):
    provider.failed = [failed(1, runtime.clock.now() - HOUR)]
    await redelivery.ask_again(runtime)
    assert [one.name for one in runtime.troubles.all()] == [TroubleName.WEBHOOKS_FAIL]
    await deliveries.accept(storing(runtime), arrived(runtime, 1))
    assert runtime.troubles.all() == ()
    await redelivery.ask_again(runtime)
    assert runtime.troubles.all() == ()
