"""When the entries of small queues merge."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.mergequeue.engine import inputs
from service.mergequeue.engine.config import Mode, QueueConfig
from service.mergequeue.engine.explaining import eta
from service.mergequeue.engine.model import Member, RequiredSet
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.engine.states import EntryState, QueueState
from service.vocabulary import SYSTEM, CheckOutcome
from tests.mergequeue.sound_times import DURATIONS
from tests.mergequeue.stage import ALICE, Stage, a_check


def a_stage(*prs: int, **settings) -> Stage:
    stage = Stage(QueueConfig(**{"concurrency": 2, **settings}))
    for pr in prs:
        stage.tell(stage.submit(pr))
    return stage


def told(stage: Stage, durations=DURATIONS, last=None) -> dict[int, tuple[int, int]]:
    found = eta.etas(stage.queue, durations, stage.now, last)
    return {pr: (round(one.earliest_s), round(one.latest_s)) for pr, one in found.items()}


def passes(stage: Stage, number: int) -> None:
    run = stage.run(number)
    assert run.sha is not None
    checks = (a_check("unit", CheckOutcome.PASSED),)
    stage.tell(inputs.ChecksReported(run.id, run.sha, checks, True))


def test_runs_under_way_have_their_time_less_what_has_passed():
    stage = a_stage(1, 2)
    assert told(stage) == {1: (120, 186), 2: (120, 186)}
    stage.passes(timedelta(seconds=60))
    assert told(stage) == {1: (60, 126), 2: (60, 126)}
    stage.passes(timedelta(seconds=140))
    assert told(stage)[1] == (-80, -14)


def test_who_waits_takes_the_slot_that_is_free_first():
    stage = a_stage(1)
    stage.passes(timedelta(seconds=100))
    for pr in (2, 3, 4):
        stage.tell(stage.submit(pr))
    assert told(stage) == {1: (20, 86), 2: (120, 186), 3: (140, 272), 4: (240, 372)}


def test_who_has_passed_waits_for_those_ahead():
    stage = a_stage(1, 2)
    passes(stage, 2)
    assert stage.queue.entries[2].state is EntryState.TESTS_PASSED
    assert told(stage) == {1: (120, 186), 2: (120, 186)}


def test_those_of_a_batch_share_one_run_and_wait_for_it_to_fill():
    stage = a_stage(1, 2, 3, 4, 5, concurrency=1)
    queue = replace(stage.queue, config=replace(stage.queue.config, batch=True))
    stage.queue = replace(queue, config=replace(queue.config, batching_min_size=2))
    found = told(stage)
    assert found[2] == found[3] == (240, 486)
    assert found[4] == found[5] == (360, 672)


def test_in_parallel_mode_only_those_of_its_base_are_waited_for():
    stage = a_stage(1)
    stage.passes(timedelta(seconds=100))
    stage.tell(stage.submit(2))
    run = stage.run(2)
    alone = {run.id: replace(run, base=())}
    parallel = replace(stage.queue.config, mode=Mode.PARALLEL)
    passed = replace(
        stage.queue.entries[2], state=EntryState.TESTS_PASSED, verified_by=run.id, run=run.id
    )
    entries = dict(stage.queue.entries) | {2: passed}
    runs = dict(stage.queue.runs)
    stage.queue = replace(stage.queue, config=parallel, entries=entries, runs=runs)
    assert isinstance(run.base[0], Member)
    assert told(stage)[2] == (20, 86)
    stage.queue = replace(stage.queue, runs=runs | alone)
    assert told(stage)[2] == (0, 0)


def test_who_waits_in_parallel_mode_may_meet_anybody_or_nobody():
    stage = a_stage(1, 2, 3, concurrency=1)
    queue = stage.queue
    stage.queue = replace(queue, config=replace(queue.config, mode=Mode.PARALLEL))
    assert told(stage)[3] == (360, 558)


def test_nothing_is_told_below_five_runs_and_fifty_are_looked_at():
    stage = a_stage(1)
    assert told(stage, [60.0] * 4) == {}
    assert told(stage, [60.0] * 50 + [9000.0] * 50) == {1: (60, 60)}


def test_nothing_is_told_of_a_queue_that_stands_still():
    stage = a_stage(1)
    stage.tell(inputs.SetState(QueueState.PAUSED, None, SYSTEM))
    assert told(stage) == {}
    stage.tell(inputs.SetState(QueueState.RUNNING, None, SYSTEM))
    stage.tell(inputs.PlaceHold(HoldReason.FREEZE, None, "stop", SYSTEM))
    assert told(stage) == {}


def test_what_a_draining_queue_never_starts_has_no_time():
    stage = a_stage(1, 2, 3)
    stage.tell(inputs.SetState(QueueState.DRAINING, None, SYSTEM))
    assert list(told(stage)) == [1, 2]


def test_asking_for_one_looks_no_further():
    stage = a_stage(1, 2, 3, 4)
    assert list(told(stage, last=3)) == [1, 2, 3]
    assert told(stage, last=3)[3] == told(stage)[3]


@pytest.mark.parametrize("ahead", [(), (1,), (1, 2, 3, 4)], ids=len)
@pytest.mark.parametrize("batch", [False, True])
def test_what_is_submitted_now_is_expected_when_it_is_said_before(ahead, batch):
    stage = a_stage(*ahead, batch=batch, batching_min_size=2)
    before = eta.of_new(stage.queue, DURATIONS, stage.now)
    stage.tell(stage.submit(9, actor=replace(ALICE, login="bob", id="2")))
    after = eta.etas(stage.queue, DURATIONS, stage.now)[9]
    assert before is not None
    assert before.earliest_s == after.earliest_s
    # A batch need not wait for others as long as it may.
    assert (before.latest_s == after.latest_s) is not (batch and len(ahead) == 1)
    assert before.latest_s >= after.latest_s


def test_no_time_is_known_for_what_is_submitted_to_a_queue_that_starts_nothing():
    stage = a_stage(1)
    drains = replace(stage.queue, state=QueueState.DRAINING)
    unproved = replace(stage.queue, required=RequiredSet())
    for queue in (drains, unproved):
        assert eta.of_new(queue, DURATIONS, stage.now) is None
    assert eta.of_new(stage.queue, DURATIONS[:4], stage.now) is None
