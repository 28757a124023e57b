"""Reads of checks that are postponed to join a burst of events."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import pull_requests, queues, reconcile, turn
from service.mergequeue.operations.check_reads import CheckReadScheduler
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.operations.queues import QueueRequest
from service.process import signals
from service.process.workers import flows
from service.process.workers.flow import Flow
from service.provider.errors import Throttled, Unavailable
from service.provider.values import Checks
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef, RepoRef, Sha
from tests.harness.values import ValuesProvider
from tests.operations.conftest import WaitingClock

T0 = datetime(2026, 3, 2, 14, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def postponed() -> CheckReadScheduler:
    """One read at once, and one that is due two seconds later."""
    looks = CheckReadScheduler()
    assert looks.should_read_now(1, "run", T0)
    assert not looks.is_open
    assert not looks.should_read_now(1, "run", at(0.5))
    return looks


def test_a_postponed_read_is_open_until_it_ended():
    looks = postponed()
    assert looks.is_open
    assert looks.due(at(1)) == ()
    assert looks.due(at(2)) == ((1, "run"),)
    assert looks.next_at() is None
    assert looks.is_open
    looks.ended([(1, "run")])
    assert not looks.is_open


def test_an_event_two_seconds_after_a_read_is_read_at_once():
    looks = CheckReadScheduler()
    assert [looks.should_read_now(1, "run", at(seconds)) for seconds in (0, 2, 4)] == [True] * 3
    assert not looks.is_open


def test_an_event_during_a_postponed_read_causes_another_one():
    looks = postponed()
    begun = looks.due(at(2))
    assert not looks.should_read_now(1, "run", at(2.5))
    looks.ended(begun)
    assert looks.is_open
    assert looks.next_at() == at(4)
    assert looks.due(at(4)) == ((1, "run"),)


async def test_the_worker_keeps_a_postponed_read_open_while_it_reads(
    runtime: Runtime, clock: WaitingClock
):
    for _ in range(2):
        runtime.memory.of(CheckReadScheduler).should_read_now(1, "run", clock.now())
    await clock.sleep(2)
    reading = asyncio.ensure_future(signals.look_again(runtime))
    await asyncio.wait({reading}, timeout=0)
    assert runtime.memory.of(CheckReadScheduler).next_at() is None
    assert runtime.memory.of(CheckReadScheduler).is_open
    assert await reading
    assert not runtime.memory.of(CheckReadScheduler).is_open


def test_a_sweep_reads_a_run_less_often_the_longer_it_lasts():
    looks = CheckReadScheduler()
    swept = [m for m in range(1, 61) if looks.is_swept(1, "run", T0, at(m * 60))]
    assert swept[:6] == [1, 2, 4, 8, 13, 18]
    assert swept[6:] == [23, 28, 33, 38, 43, 48, 53, 58]


class Throttling(ValuesProvider):
    """Counts reads of checks; while it is throttled they fail."""

    def __init__(self) -> None:
        super().__init__()
        self.is_throttled = False
        self.unreadable: Sha | None = None
        self.reads = 0

    async def checks(self, repo: RepoRef, sha: Sha, *, skipped_pass: bool) -> Checks:
        self.reads += 1
        if sha == self.unreadable:
            raise Unavailable("GitHub timed out", at(0))
        if self.is_throttled:
            raise Throttled("used up", at(0))
        return await super().checks(repo, sha, skipped_pass=skipped_pass)


@pytest.fixture
def provider() -> Throttling:
    """Instead of the provider that is never throttled."""
    return Throttling()


async def begin(runtime: Runtime, queue: QueueRef) -> str:
    """Start a test run; its id."""
    await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
    await pull_requests.submit(runtime, queue, 1, SubmitOptions(), SYSTEM)
    await Flow(runtime, flows.CONTROL).drain()
    (run,) = (await turn.value(runtime, queue.id)).runs
    return run


async def test_a_read_that_failed_is_made_again_by_the_next_sweep(
    runtime: Runtime, queue: QueueRef, clock: WaitingClock, provider: Throttling
):
    await begin(runtime, queue)
    provider.reads = 0
    await clock.sleep(600)
    for is_throttled, reads in ((True, 1), (True, 2), (False, 3), (False, 3)):
        provider.is_throttled = is_throttled
        await reconcile.read_running_checks(runtime)
        assert provider.reads == reads
        await clock.sleep(60)


async def test_a_postponed_read_that_failed_is_made_by_the_next_sweep(
    runtime: Runtime, queue: QueueRef, clock: WaitingClock, provider: Throttling
):
    run = await begin(runtime, queue)
    provider.reads = 0
    await clock.sleep(600)
    for _ in range(2):
        runtime.memory.of(CheckReadScheduler).should_read_now(queue.id, run, clock.now())
    await clock.sleep(2)
    provider.is_throttled = True
    assert await signals.look_again(runtime)
    provider.is_throttled = False
    await reconcile.read_running_checks(runtime)
    assert provider.reads == 2


async def test_a_commit_that_cannot_be_read_stops_the_sweep_of_no_other_run(
    runtime: Runtime, queue: QueueRef, clock: WaitingClock, provider: Throttling
):
    await queues.update(runtime, queue, QueueRequest({"concurrency": 2}), SYSTEM)
    await begin(runtime, queue)
    await pull_requests.submit(runtime, queue, 2, SubmitOptions(), SYSTEM)
    await Flow(runtime, flows.CONTROL).drain()
    first, second = (await turn.value(runtime, queue.id)).runs.values()
    provider.unreadable = first.sha
    await clock.sleep(600)
    await reconcile.read_running_checks(runtime)
    runs = (await turn.value(runtime, queue.id)).runs
    assert [bool(runs[each.id].checks) for each in (first, second)] == [False, True]


def test_a_read_after_an_event_counts_for_the_sweep():
    looks = CheckReadScheduler()
    assert looks.should_read_now(1, "run", at(590))
    assert not looks.is_swept(1, "run", T0, at(800))
    assert looks.is_swept(1, "run", T0, at(900))
