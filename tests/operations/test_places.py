"""Each lane of effects has places of its own, so that notices and builds delay no decision."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from service.clock import SystemClock
from service.database import outbox
from service.database.outbox import Lane, OutboxItem
from service.mergequeue.engine.model import LandMode, Proof, Tip
from service.mergequeue.engine.outputs import Land
from service.mergequeue.operations import turn
from service.process.workers import flow, flows
from service.process.workers.supervisor import Workers
from service.provider.values import Reply
from service.vocabulary import MergeMethod, Sha
from tests.harness.values import ValuesProvider

pytestmark = pytest.mark.each_database

AT_ONCE = flows.EFFECTS_AT_ONCE
TOO_MANY = AT_ONCE + 8
WITHIN_S = 100.0


class WaitingProvider(ValuesProvider):
    """Lets texts on pull request 1 wait, as GitHub's limits do."""

    def __init__(self):
        super().__init__()
        self.is_free = asyncio.Event()
        self.begun: asyncio.Queue[int] = asyncio.Queue()
        self.ended: asyncio.Queue[int] = asyncio.Queue()

    async def say(self, repo, notice):
        self.begun.put_nowait(notice.number)
        if notice.number == 1:
            await self.is_free.wait()
        self.ended.put_nowait(notice.number)
        return await super().say(repo, notice)


class RecordingClock(SystemClock):
    """The machine's clock, which remembers how long was waited."""

    def __init__(self):
        self.waits = []

    async def sleep(self, seconds):
        self.waits.append(seconds)
        await super().sleep(seconds)


@pytest.fixture
def clock():
    return RecordingClock()


@pytest.fixture
def provider():
    return WaitingProvider()


@asynccontextmanager
async def working(runtime):
    workers = Workers(runtime)
    task = asyncio.create_task(workers.run())
    try:
        async with asyncio.timeout(WITHIN_S):
            yield
    finally:
        await workers.stop()
        await asyncio.wait_for(task, WITHIN_S)


def items(clock, lane, number, count):
    texts = [Reply(number, f"{lane}-{index}", "text") for index in range(count)]
    return [OutboxItem(lane, text.action_id, "reply", text, clock.now()) for text in texts]


async def store(runtime, queue, effects):
    await runtime.store.run(outbox.append, queue.repository_id, queue.id, 0, effects)
    outbox.wake(runtime.wakeups)


@pytest.mark.parametrize("lane", [Lane.LANDING, Lane.EVIDENCE])
async def test_what_decides_goes_while_notices_builds_and_reports_wait_for_limits(
    runtime, queue, provider, clock, lane
):
    others = (Lane.CONTROL, Lane.REPORTS, Lane.NOTICE)
    waiting = [item for other in others for item in items(clock, other, 1, TOO_MANY)]
    async with working(runtime):
        await store(runtime, queue, waiting)
        for _ in range(len(others) * AT_ONCE):
            await provider.begun.get()
        clock.waits.clear()
        await store(runtime, queue, items(clock, lane, 2, 1))
        assert await provider.ended.get() == 2
        # Rows are due, but there is no place for them: that must not make the loops spin.
        assert flow.PAUSE_MIN_S not in clock.waits
        pause_s = flow.FULL_PAUSE.total_seconds()
        assert any(pause_s / 2 < each <= pause_s for each in clock.waits)
        provider.is_free.set()
        for _ in waiting:
            assert await provider.ended.get() == 1


def test_a_landing_has_the_lane_of_landings(runtime, queue, clock):
    tip = Tip(Sha("a" * 40), Sha("b" * 40))
    land = Land(1, "run", LandMode.CALL, MergeMethod.SQUASH, tip, (), Proof.EXACT_TREE)
    assert turn.item(runtime, queue, land, clock.now()).lane is Lane.LANDING
