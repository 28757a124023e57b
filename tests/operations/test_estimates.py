"""Chances of failing and measured rates reach every queue."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.database.database import Store
from service.mergequeue.engine import inputs
from service.mergequeue.engine.config import BatchSizing, ConfirmFailures
from service.mergequeue.engine.explaining.estimates import PRIOR, Track
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.engine.reported import Evidence, Rates
from service.mergequeue.engine.states import QueueState, RunKind
from service.mergequeue.operations import estimates, pull_requests, queues, turn
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.simulation.history import Arrival, Fate, history_of
from service.mergequeue.simulation.world import sha_of
from service.mergequeue.store import history, outcomes
from service.mergequeue.store import pull_requests as known_pulls
from service.mergequeue.store.pull_requests import PullRequestHead
from service.process import retention
from service.process.workers.loops import ESTIMATES_PERIOD, HOUSEKEEPING, Sweeps
from service.runtime import Runtime
from service.vocabulary import (
    SYSTEM,
    Blocker,
    BlockerCode,
    Check,
    CheckKind,
    CheckOutcome,
    Explanation,
    QueueRef,
)
from tests.harness import recorded
from tests.harness.databases import SetClock
from tests.harness.recorded import Recording

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


async def p_fail(runtime: Runtime, queue: QueueRef, pr: int) -> float:
    return (await turn.value(runtime, queue.id)).entries[pr].p_fail


async def test_a_submission_is_told_what_is_known_and_never_waits_for_more(runtime, clock):
    queue = await a_queue_of_the_bad_and_the_good(runtime, clock)
    await pull_requests.submit(runtime, queue, 7, SubmitOptions(), SYSTEM)
    assert await p_fail(runtime, queue, 7) == PRIOR
    assert await estimates.refresh(runtime)
    known = await p_fail(runtime, queue, 7)
    assert known > 2 * PRIOR
    await pull_requests.submit(runtime, queue, 8, SubmitOptions(again=True), SYSTEM)
    assert await p_fail(runtime, queue, 8) == pytest.approx(known, abs=0.05)
    assert not await estimates.refresh(runtime) or await p_fail(runtime, queue, 7) == known


async def test_author_and_earlier_failures_raise_the_chance(runtime, clock):
    queue = await a_queue_of_the_bad_and_the_good(runtime, clock)
    await estimates.refresh(runtime)

    def told(pr: int, author: str, *blockers: Blocker) -> float:
        plain = recorded.facts_of(Arrival(BEGIN, pr, sha_of("new"), author))
        facts = replace(plain, blockers=blockers)
        return estimates.of_submission(runtime, queue, facts)

    assert told(1, "alice") < told(1, "carol") < told(1, "mallory") < told(112, "mallory")
    failing = Blocker(BlockerCode.CHECK_FAILING, "unit")
    # Nobody has come with failing checks yet, so they say nothing.
    assert told(1, "carol", failing) == pytest.approx(told(1, "carol"), abs=0.02)


async def test_what_a_past_says_is_read_from_its_rows(runtime, clock):
    queue = await a_queue_of_the_bad_and_the_good(runtime, clock)
    head = PullRequestHead(queue.repository_id, 100, sha_of("head", "0"))
    await runtime.store.run(known_pulls.remember_head, head, None, BEGIN - timedelta(hours=2))
    found = await runtime.store.read(history.judged, queue)
    assert [failed for _, failed in found.samples] == [False] * 8 + [True] * 6
    first, *_, last = [signs for signs, _ in found.samples]
    assert (first.author, first.age_s, first.own_ci) == ("alice", 7200.0, "passed")
    assert (last.author, last.failed_before, last.age_s) == ("mallory", 1, None)
    assert found.failures == {108: 1, 109: 1, 110: 1, 111: 1, 112: 2}
    assert found.interactions == 0


async def test_a_queue_hears_how_many_failures_its_estimates_foresee(runtime, clock):
    queue = await a_queue_of_the_bad_and_the_good(runtime, clock)
    assert (await turn.value(runtime, queue.id)).rates.foreseen == 0.0
    await estimates.refresh(runtime)
    found = await runtime.store.read(history.judged, queue)
    track = Track()
    for signs, failed in found.samples:
        track.count(signs, failed=failed)
    chances = [track.p_fail(signs) for signs, _ in found.samples]
    high = [one for one in chances if one > 0.2]
    assert 0 < len(high) < len(chances)
    foreseen = (await turn.value(runtime, queue.id)).rates.foreseen
    assert foreseen == round(sum(high) / (sum(chances) + 5), 4) > 0.05


async def a_queue_of_flaky_tests(runtime: Runtime, clock: SetClock) -> QueueRef:
    """After sixty good submissions, of whose tests some failed by chance."""
    arrivals = [
        Arrival(at=BEGIN + timedelta(minutes=30 * nth), pr=100 + nth, head=sha_of("h", str(nth)))
        for nth in range(60)
    ]
    queue = await recorded.made(runtime, batch=True, batch_sizing=BatchSizing.ADAPTIVE)
    await Recording(runtime, clock, queue, history_of(arrivals, (600.0,), 0.33)).play()
    return queue


async def test_a_queue_is_told_the_rates_of_its_own_history(runtime, clock):
    queue = await a_queue_of_flaky_tests(runtime, clock)
    assert (await turn.value(runtime, queue.id)).rates == Rates()
    assert await estimates.refresh(runtime)
    found = (await turn.value(runtime, queue.id)).rates
    runs = await runtime.store.read(outcomes.of_runs, queue.id)
    assert runs.flaked > 5
    assert found.flake == round((2 + runs.flaked) / (100 + runs.passed + runs.flaked), 4)
    assert found.conflict == round(3 / 160, 4)
    assert found.minutes == {"unit": 10.0}


async def test_rates_that_hardly_changed_are_not_told_again(runtime, clock):
    queue = await a_queue_of_flaky_tests(runtime, clock)
    await estimates.refresh(runtime)
    version = (await turn.value(runtime, queue.id)).version
    assert not await estimates.refresh(runtime)
    again = Arrival(clock.present, 500, sha_of("again"))
    await Recording(runtime, clock, queue, history_of([again], (660.0,), 0.0)).play()
    assert not await estimates.refresh(runtime)
    assert (await turn.value(runtime, queue.id)).rates.minutes == {"unit": 10.0}
    assert (await turn.value(runtime, queue.id)).version > version


async def test_a_run_that_failed_for_its_own_change_is_no_flake(runtime, clock):
    queue = await a_queue_of_the_bad_and_the_good(runtime, clock)
    runs = await runtime.store.read(outcomes.of_runs, queue.id)
    assert (runs.passed, runs.flaked) == (8, 0)


async def a_queue_with(runtime, clock, pull_requests=1):
    """Return a queue that sends test results, with so many pull requests, tested one by one."""
    queue = await recorded.made(runtime, concurrency=1, confirm_failures=ConfirmFailures.OFF)
    arrivals = [
        Arrival(at=BEGIN, pr=pr, head=sha_of("h", str(pr))) for pr in range(1, pull_requests + 1)
    ]
    recording = Recording(runtime, clock, queue, history_of(arrivals, (600.0,), 0.0))
    await recording.tell(inputs.RepositoryChanged(available=True, sends_results=True))
    await recording.tell(inputs.TargetMoved(recording.target.tip))
    for arrival in arrivals:
        await recording.tell(inputs.Submit(recorded.facts_of(arrival), recorded.ALICE))
    return queue, recording


async def ends_test(runtime, clock, recording, queue, evidence: Evidence | None) -> RunKind:
    """Let the one run pass, or fail with this evidence; 15 minutes later return its kind."""
    (run,) = (await turn.value(runtime, queue.id)).runs.values()
    assert run.sha is not None
    outcome = CheckOutcome.PASSED if evidence is None else CheckOutcome.FAILED
    check = Check(CheckKind.SUITE_RUN, "unit", "7", "", "2", outcome, "-", "https://ci.test")
    await recording.tell(inputs.ChecksReported(run.id, run.sha, (check,), True))
    clock.present += timedelta(minutes=1)
    if evidence is not None:
        await recording.tell(inputs.EvidenceReported(run.id, evidence))
    clock.present += timedelta(minutes=15)
    await recording.tell(inputs.TimePassed())
    return run.kind


@pytest.mark.parametrize(("why", "flaked"), [(Explanation.INFRA, 0), (Explanation.FLAKY, 1)])
async def test_a_pass_after_the_machines_failed_is_no_flake(runtime, clock, why, flaked):
    queue, recording = await a_queue_with(runtime, clock)
    (run,) = (await turn.value(runtime, queue.id)).runs.values()

    async def report(number: str, outcome: CheckOutcome) -> None:
        assert run.sha is not None
        check = Check(CheckKind.SUITE_RUN, "unit", "7", "", number, outcome, "-", "https://ci.test")
        await recording.tell(inputs.ChecksReported(run.id, run.sha, (check,), True))

    await report("2", CheckOutcome.FAILED)
    clock.present += timedelta(minutes=1)
    await recording.tell(inputs.EvidenceReported(run.id, Evidence(1, {"unit": why})))
    await recording.tell(inputs.RerunStarted(run.id, 2))
    await report("3", CheckOutcome.PASSED)
    runs = await runtime.store.read(outcomes.of_runs, queue.id)
    assert (runs.passed, runs.flaked) == (1, flaked)


async def test_a_try_under_a_hold_that_failed_is_no_flake(runtime, clock):
    queue, recording = await a_queue_with(runtime, clock)

    async def ends(evidence: Evidence | None) -> RunKind:
        return await ends_test(runtime, clock, recording, queue, evidence)

    await ends(Evidence(1, {"unit": Explanation.BASE_RED}))
    assert await ends(Evidence(1, {"unit": Explanation.UNEXPLAINED})) is RunKind.TRY
    assert await ends(None) is RunKind.TRY
    assert not (await turn.value(runtime, queue.id)).entries
    runs = await runtime.store.read(outcomes.of_runs, queue.id)
    assert (runs.passed, runs.flaked) == (0, 0)


async def test_a_failure_that_unrelated_runs_share_is_no_flake_of_the_one_taken_back(
    runtime, clock
):
    queue, recording = await a_queue_with(runtime, clock, pull_requests=3)
    alike = Evidence(1, {"unit": Explanation.UNEXPLAINED}, fingerprint="boom")
    for _ in range(3):
        await ends_test(runtime, clock, recording, queue, alike)
    value = await turn.value(runtime, queue.id)
    assert [hold.reason for hold in value.holds] == [HoldReason.REPEATED_FAILURE]
    assert await ends_test(runtime, clock, recording, queue, None) is RunKind.TRY
    assert not (await turn.value(runtime, queue.id)).entries
    runs = await runtime.store.read(outcomes.of_runs, queue.id)
    assert (runs.passed, runs.flaked) == (0, 0)


async def test_housekeeping_tells_chances_every_ten_minutes(runtime, clock):
    queue = await a_queue_of_the_bad_and_the_good(runtime, clock)
    await pull_requests.submit(runtime, queue, 7, SubmitOptions(), SYSTEM)
    worker = Sweeps(runtime, HOUSEKEEPING, at_start=True)
    assert await worker.drain()
    known = await p_fail(runtime, queue, 7)
    assert known != PRIOR
    clock.present += ESTIMATES_PERIOD - timedelta(seconds=1)
    await retention.prune(runtime)
    assert not await worker.drain()
