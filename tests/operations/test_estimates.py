"""Chances of failing reach a queue that plans by them, and no other."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.database.database import Store
from service.mergequeue.engine.config import Hedging
from service.mergequeue.engine.explaining.estimates import PRIOR
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import estimates, pull_requests, queues, turn
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.simulation.history import Arrival, Fate, history_of
from service.mergequeue.simulation.world import sha_of
from service.mergequeue.store import history
from service.mergequeue.store import pull_requests as known_pulls
from service.mergequeue.store.pull_requests import PullRequestHead
from service.process import retention
from service.process.workers.loops import ESTIMATES_PERIOD, HOUSEKEEPING, Sweeps
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Blocker, BlockerCode, QueueRef
from tests.harness import recorded
from tests.harness.recorded import Recording, SetClock

BEGIN = recorded.days_ago(2)
BAD = Fate(breaks=True)


@pytest.fixture
def clock() -> SetClock:
    return SetClock(BEGIN)


@pytest.fixture
def runtime(store: Store, clock: SetClock) -> Runtime:
    return recorded.runtime_of(store, clock)


async def a_queue_of_the_bad_and_the_good(runtime: Runtime, clock: SetClock) -> QueueRef:
    """Paused, after eight good ones by alice and six bad ones by mallory, the last one twice."""
    arrivals = [
        Arrival(
            at=BEGIN + timedelta(minutes=30 * number),
            pr=100 + min(number, 12),
            head=sha_of("head", str(number)),
            author="mallory" if number > 7 else "alice",
            fate=BAD if number > 7 else Fate(),
            ci_s=300.0,
        )
        for number in range(14)
    ]
    queue = await recorded.made(runtime)
    await Recording(runtime, clock, queue, history_of(arrivals, (), 0.0)).play()
    await queues.set_state(runtime, queue, QueueState.PAUSED, None, Requester(SYSTEM))
    return queue


async def hedge(runtime: Runtime, queue: QueueRef) -> None:
    """Let the queue plan by chances."""
    wish = QueueRequest({"hedging": Hedging.SPARE_SLOTS})
    await queues.update(runtime, queue, wish, SYSTEM)


async def p_fail(runtime: Runtime, queue: QueueRef, pr: int) -> float:
    return (await turn.value(runtime, queue.id)).entries[pr].p_fail


async def test_a_queue_that_plans_without_chances_is_told_none(runtime, clock):
    queue = await a_queue_of_the_bad_and_the_good(runtime, clock)
    await pull_requests.submit(runtime, queue, 7, SubmitOptions(), SYSTEM)
    assert not await estimates.refresh(runtime)
    assert await p_fail(runtime, queue, 7) == 0


async def test_a_submission_is_told_what_is_known_and_never_waits_for_more(runtime, clock):
    queue = await a_queue_of_the_bad_and_the_good(runtime, clock)
    await hedge(runtime, queue)
    await pull_requests.submit(runtime, queue, 7, SubmitOptions(), SYSTEM)
    assert await p_fail(runtime, queue, 7) == PRIOR
    assert await estimates.refresh(runtime)
    known = await p_fail(runtime, queue, 7)
    assert known != PRIOR
    await pull_requests.submit(runtime, queue, 8, SubmitOptions(), SYSTEM)
    assert await p_fail(runtime, queue, 8) == pytest.approx(known, abs=0.05)
    assert not await estimates.refresh(runtime) or await p_fail(runtime, queue, 7) == known


async def test_author_and_earlier_failures_raise_the_chance(runtime, clock):
    queue = await a_queue_of_the_bad_and_the_good(runtime, clock)
    await hedge(runtime, queue)
    await estimates.refresh(runtime)
    config = (await turn.value(runtime, queue.id)).config

    def told(pr: int, author: str, *blockers: Blocker) -> float:
        plain = recorded.facts_of(Arrival(BEGIN, pr, sha_of("new"), author))
        facts = replace(plain, blockers=blockers)
        return estimates.of_submission(runtime, queue, config, facts)

    assert told(1, "alice") < told(1, "carol") < told(1, "mallory") < told(112, "mallory")
    failing = Blocker(BlockerCode.CHECK_FAILING, "unit")
    # Nobody has come with failing checks yet, so they say nothing.
    assert told(1, "carol", failing) == pytest.approx(told(1, "carol"), abs=0.02)


async def test_what_a_past_says_is_read_from_its_rows(runtime, clock):
    queue = await a_queue_of_the_bad_and_the_good(runtime, clock)
    head = PullRequestHead(queue.repository_id, 100, sha_of("head", "0"))
    await runtime.store.run(known_pulls.remember_head, head, BEGIN - timedelta(hours=2))
    found = await runtime.store.read(history.judged, queue)
    assert [failed for _, failed in found.samples] == [False] * 8 + [True] * 6
    first, *_, last = [signs for signs, _ in found.samples]
    assert (first.author, first.age_s, first.own_ci) == ("alice", 7200.0, "passed")
    assert (last.author, last.failed_before, last.age_s) == ("mallory", 1, None)
    assert found.failures == {108: 1, 109: 1, 110: 1, 111: 1, 112: 2}


async def test_housekeeping_tells_chances_every_ten_minutes(runtime, clock):
    queue = await a_queue_of_the_bad_and_the_good(runtime, clock)
    await hedge(runtime, queue)
    await pull_requests.submit(runtime, queue, 7, SubmitOptions(), SYSTEM)
    worker = Sweeps(runtime, HOUSEKEEPING, at_start=True)
    assert await worker.drain()
    known = await p_fail(runtime, queue, 7)
    assert known != PRIOR
    clock.present += ESTIMATES_PERIOD - timedelta(seconds=1)
    await retention.prune(runtime)
    assert not await worker.drain()
