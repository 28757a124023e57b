"""The machine's clock was hours ahead, and is set right: nothing waits for its former time."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from service.database import inbox, outbox
from service.database.outbox import Lane, OutboxItem
from service.mergequeue.operations.check_reads import CheckReadScheduler
from service.process import deliveries
from service.process.set_back import FARTHEST, ClockWatch
from service.process.workers import flows, loops
from service.process.workers.flow import Flow
from service.process.workers.loops import Sweeps
from service.provider.signals import Delivery
from service.provider.values import Reply
from service.runtime import Runtime
from service.vocabulary import QueueRef
from tests.harness.values import ValuesProvider
from tests.operations.conftest import WaitingClock

AHEAD = timedelta(hours=3)


class WrongClock(WaitingClock):
    """A clock that is `off` the right time; its waits are right all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.off = timedelta()

    def now(self) -> datetime:
        return super().now() + self.off


@pytest.fixture
def clock() -> WrongClock:
    """Time that can be wrong."""
    return WrongClock()


async def leave_work(runtime: Runtime, queue: QueueRef, off: timedelta) -> None:
    """Store a webhook and an effect, by a clock that is off."""
    at = runtime.clock.now() + off
    delivery = Delivery(queue.repo.host, f"d{off}", "push", None, "1", b"{}", at)
    assert await deliveries.accept(replace_translator(runtime), delivery)
    reply = Reply(7, f"answer{off}", "text")
    item = OutboxItem(Lane.NOTICE, reply.action_id, "reply", reply, at)
    await runtime.store.run(outbox.append, queue.repository_id, queue.id, 0, [item])


def replace_translator(runtime: Runtime) -> Runtime:
    """The same process, which finds a signal in each delivery."""

    def unclear(_: Delivery) -> tuple[()]:
        raise ValueError

    return replace(runtime, translators=dict.fromkeys(runtime.translators, unclear))


async def is_due(runtime: Runtime) -> tuple[bool, bool]:
    """Whether the webhook is due, and the effect."""
    now = runtime.clock.now()
    found = [await runtime.store.read(each.next_due) for each in (inbox, outbox)]
    return tuple(each is not None and each <= now for each in found)  # type: ignore[return-value]


@pytest.mark.each_database
@pytest.mark.fault(
    "this machine's clock is set back by hours while Headgate runs",
    holds="webhooks, effects and sweeps go on",
    within="5 s",
)
async def test_what_waits_for_a_time_that_is_not_to_be_expected_goes_on(
    runtime: Runtime, queue: QueueRef, clock: WrongClock
) -> None:
    watching = ClockWatch()
    clock.off = AHEAD
    await watching.look(runtime)
    await leave_work(runtime, queue, timedelta())
    assert runtime.memory.of(CheckReadScheduler).should_read_now(1, "run", clock.now())
    clock.off = timedelta()
    await clock.sleep(loops.CLOCK_PERIOD.total_seconds())
    assert await is_due(runtime) == (False, False)
    with capture_logs() as logs:
        await watching.look(runtime)
    assert await is_due(runtime) == (True, True)
    assert [line["event"] for line in logs] == ["clock_set_back"]
    assert runtime.memory.of(CheckReadScheduler).should_read_now(1, "run", clock.now())


@pytest.mark.parametrize(
    ("off", "is_pulled"), [(AHEAD, True), (FARTHEST - timedelta(seconds=1), False)]
)
@pytest.mark.fault(
    "the clock was hours ahead before a start",
    holds="webhooks and effects that were stored by it do not wait",
    within="the start, or 2 h if it was less ahead",
)
async def test_a_start_lets_nothing_wait_that_was_stored_by_a_clock_far_ahead(
    runtime: Runtime, queue: QueueRef, off: timedelta, is_pulled: bool
) -> None:
    await leave_work(runtime, queue, off)
    await ClockWatch().look(runtime)
    assert await is_due(runtime) == (is_pulled, is_pulled)


async def test_a_clock_that_runs_right_or_goes_ahead_moves_nothing(
    runtime: Runtime, queue: QueueRef, clock: WrongClock
) -> None:
    watching = ClockWatch()
    await watching.look(runtime)
    await leave_work(runtime, queue, timedelta(minutes=2))
    for off in (timedelta(seconds=-1), timedelta(minutes=1), timedelta(minutes=1)):
        clock.off = off
        await clock.sleep(5)
        await watching.look(runtime)
    assert await is_due(runtime) == (False, False)


async def test_sweeps_and_flows_wait_no_longer_than_their_period(
    runtime: Runtime, queue: QueueRef, clock: WrongClock, provider: ValuesProvider
) -> None:
    ran: list[float] = []

    async def sweep(_: Runtime) -> None:
        ran.append(clock.monotonic_s())

    clock.off = AHEAD
    sweeps, flow = Sweeps(runtime, ((sweep, timedelta(minutes=1)),)), Flow(runtime, flows.NOTICES)
    await clock.sleep(60)
    await sweeps.drain()
    await flow.drain()
    clock.off = timedelta()
    await clock.sleep(60)
    await sweeps.drain()
    await leave_work(runtime, queue, timedelta())
    await flow.drain()
    assert ran == [60, 120]
    assert len(provider.said) == 1
