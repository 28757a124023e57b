"""Loops of a process: each goes on after a crash, and a stop ends all of them.

The time jumps to what is due next.
"""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from service.database import inbox, instances, outbox
from service.database.outbox import Lane, OutboxItem
from service.errors import DatabaseUnavailable
from service.mergequeue.operations.check_reads import CheckReadScheduler
from service.mergequeue.store import queues
from service.process.guard import failure_of
from service.process.workers.loops import Sweeps, Timers
from service.process.workers.supervisor import Workers
from service.provider.signals import Delivery
from service.provider.values import Reply
from service.runtime import Runtime
from service.troubles import Trouble, TroubleName
from service.vocabulary import QueueRef
from tests.harness.clock import FastClock
from tests.harness.database_faults import put_between
from tests.harness.values import ValuesProvider

pytestmark = pytest.mark.jumping


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Nothing of this depends on the kind of database."""
    return sqlite_url


@pytest.fixture
async def clock() -> FastClock:
    """The time of the test's loop."""
    return FastClock(1)


@dataclass
class Noted:
    """A sweep that notes the seconds in which it runs, and ends by its error while it has one."""

    runtime: Runtime
    lasts_s: float = 0
    error: Exception | None = None
    at: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.__name__ = "noted"
        self.began_s = self.runtime.clock.monotonic_s()

    def passed_s(self) -> float:
        return round(self.runtime.clock.monotonic_s() - self.began_s, 1)

    async def __call__(self, runtime: Runtime) -> None:
        self.at.append(self.passed_s())
        await runtime.clock.sleep(self.lasts_s)
        if self.error is not None:
            raise self.error


async def run_for(runtime: Runtime, seconds: float, *loops: Sweeps) -> None:
    """Run these loops alone, as the supervisor of a process runs them."""
    workers = Workers(runtime, is_working=False)
    workers._others = loops
    running = asyncio.create_task(workers.run())
    await runtime.clock.sleep(seconds)
    await workers.stop()
    await running


SECOND = timedelta(seconds=1)


async def test_a_sweep_runs_once_a_period_the_first_time_after_one(runtime: Runtime):
    often, seldom = Noted(runtime), Noted(runtime)
    await run_for(runtime, 65, Sweeps(runtime, ((often, 20 * SECOND), (seldom, 50 * SECOND))))
    assert (often.at, seldom.at) == ([20, 40, 60], [50])


async def test_a_sweep_of_the_start_runs_at_once(runtime: Runtime):
    sweep = Noted(runtime)
    await run_for(runtime, 45, Sweeps(runtime, ((sweep, 20 * SECOND),), at_start=True))
    assert sweep.at == [0, 20, 40]


async def test_a_sweep_that_lasts_longer_than_its_period_runs_without_a_pause(runtime: Runtime):
    sweep = Noted(runtime, lasts_s=30)
    await run_for(runtime, 95, Sweeps(runtime, ((sweep, 20 * SECOND),), at_start=True))
    assert sweep.at == [0, 30, 60, 90]


async def test_a_drain_says_whether_a_sweep_was_due(runtime: Runtime):
    sweep = Noted(runtime)
    sweeps = Sweeps(runtime, ((sweep, 20 * SECOND),), at_start=True)
    assert [await sweeps.drain(), await sweeps.drain()] == [True, False]
    assert sweep.at == [0]


@pytest.mark.fault(
    "a sweep ends by a mistake of ours", holds="the other sweeps run, and it runs again",
    within="60 s and its period",
)  # fmt: skip
async def test_a_loop_that_crashes_runs_again_after_growing_pauses_and_delays_no_other(
    runtime: Runtime,
):
    broken, other = Noted(runtime, error=ValueError("a mistake")), Noted(runtime)
    loops = (
        Sweeps(runtime, ((broken, timedelta(0)),), at_start=True),
        Sweeps(runtime, ((other, 100 * SECOND),)),
    )
    with capture_logs() as logs:
        await run_for(runtime, 210, *loops)
    assert broken.at == [0, 1, 3, 7, 15, 31, 63, 123, 183]
    assert other.at == [100, 200]
    assert {line["event"] for line in logs} == {"crashed"}


@pytest.mark.parametrize(
    ("lasts_s", "later"), [(60, [123, 243, 363]), (61, [123, 185, 247, 309, 371])]
)
async def test_a_loop_that_ran_for_long_before_it_crashed_begins_with_a_short_pause(
    runtime: Runtime, lasts_s: float, later: list[float]
):
    broken = Noted(runtime, error=ValueError("a mistake"))
    loop = Sweeps(runtime, ((broken, timedelta(0)),), at_start=True)
    running = asyncio.create_task(run_for(runtime, 400, loop))
    await runtime.clock.sleep(100)
    broken.lasts_s = lasts_s
    await running
    assert broken.at == [0, 1, 3, 7, 15, 31, 63, *later]


@pytest.mark.fault(
    "the database is away", holds="each loop runs again", within="5 s after its return"
)
async def test_a_loop_that_misses_the_database_runs_again_within_five_seconds(runtime: Runtime):
    away = DatabaseUnavailable("The database is away.", retry_after_s=1)
    sweep = Noted(runtime, error=away)
    with capture_logs() as logs:
        await run_for(runtime, 30, Sweeps(runtime, ((sweep, timedelta(0)),), at_start=True))
    assert sweep.at == [0, 1, 3, 7, 12, 17, 22, 27]
    assert {line["event"] for line in logs} == {"database_unavailable"}


async def test_a_stop_waits_for_effects_that_are_on_their_way(runtime: Runtime, queue: QueueRef):
    provider = Slow(runtime)
    runtime = replace(runtime, providers={queue.repo.host: provider})
    reply = Reply(7, "answer-7", "text")
    item = OutboxItem(Lane.NOTICE, reply.action_id, "reply", reply, runtime.clock.now())
    await runtime.store.run(outbox.append, queue.repository_id, queue.id, 0, [item])
    workers = Workers(runtime)
    running = asyncio.create_task(workers.run())
    await provider.begun.wait()
    await workers.stop()
    await running
    assert provider.said == [replace(reply, first=True)]
    assert await runtime.store.read(outbox.next_due) is None


class Slow(ValuesProvider):
    """Needs three seconds for a text."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self._clock = runtime.clock

    async def say(self, repo, notice):
        self.begun.set()
        await self._clock.sleep(3)
        return await super().say(repo, notice)


async def test_a_process_that_only_answers_has_no_loop_where_it_is_alone(runtime: Runtime):
    workers = Workers(runtime, is_working=False)
    assert not await workers.drain()
    await asyncio.wait_for(workers.run(), 1)


async def test_timers_look_every_five_seconds_without_a_wake_up(runtime: Runtime, queue: QueueRef):
    reads: list[float] = []
    began_s = runtime.clock.monotonic_s()

    def is_away() -> bool:
        reads.append(round(runtime.clock.monotonic_s() - began_s, 1))
        return False

    put_between(runtime.store).is_away = is_away
    running = asyncio.create_task(Timers(runtime).run())
    await runtime.clock.sleep(12)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert sorted(set(reads)) == [0, 5, 10]


async def test_a_crash_of_timers_is_over_when_they_wait_again_for_the_next(runtime: Runtime):
    job = Timers.job
    crashed = Trouble(TroubleName.WORKER_CRASHED, runtime.clock.now(), note=job)
    runtime.troubles.report(crashed, job)
    running = asyncio.create_task(Timers(runtime).run())
    await runtime.clock.sleep(12)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert runtime.troubles.all() == ()


class Asked(ValuesProvider):
    """Notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []

    async def failed_deliveries(self, since):
        self.words.append("lost webhooks")
        return await super().failed_deliveries(since)

    async def prepare(self, repo, target):
        self.words.append("mirror")


async def test_at_its_start_a_process_asks_for_lost_webhooks_prepares_and_removes_old_rows(
    runtime: Runtime, queue: QueueRef
):
    provider = Asked()
    at_work = replace(runtime, providers={queue.repo.host: provider})
    old = runtime.clock.now() - timedelta(days=400)
    delivery = Delivery(queue.repo.host, "old", "push", None, "1", b"{}", old)
    await runtime.store.run(inbox.accept, delivery)
    await runtime.store.run(inbox.settle, [1], "done")
    workers = Workers(at_work)
    running = asyncio.create_task(workers.run())
    await runtime.clock.sleep(3)
    await workers.stop()
    await running
    assert {"lost webhooks", "mirror"} <= set(provider.words)
    assert not await runtime.store.read(inbox.stored_ids, queue.repo.host, ["old"])


async def test_a_process_beside_others_sends_a_heartbeat_at_its_start(runtime: Runtime):
    runtime.store.is_alone = False
    workers = Workers(runtime, is_working=False)
    running = asyncio.create_task(workers.run())
    await runtime.clock.sleep(1)
    await workers.stop()
    await running
    (me,) = await runtime.store.read(instances.living, runtime.instance, runtime.clock.now())
    assert me.id == runtime.instance


async def test_a_drain_of_timers_says_whether_a_queue_or_a_read_was_due(
    runtime: Runtime, queue: QueueRef
):
    timers, now = Timers(runtime), runtime.clock.now()
    assert not await timers.drain()
    await runtime.store.run(queues.postpone, queue.id, now)
    assert await timers.drain()
    assert not await timers.drain()
    reads = runtime.memory.of(CheckReadScheduler)
    assert reads.should_read_now(queue.id, "r1", now)
    assert not reads.should_read_now(queue.id, "r1", now)
    await runtime.clock.sleep(2)
    assert await timers.drain()


@pytest.mark.parametrize(("cause", "why"), [(OSError("disk full"), "disk full"), (None, "away")])
async def test_the_log_says_why_the_database_is_away(cause: Exception | None, why: str):
    async def work() -> None:
        raise DatabaseUnavailable("away", retry_after_s=1) from cause

    with capture_logs() as logs:
        assert isinstance(await failure_of("rows", work()), DatabaseUnavailable)
    assert [line["why"] for line in logs] == [why]
