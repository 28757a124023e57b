"""The engine's front door and its tables."""

import typing
from dataclasses import replace
from datetime import timedelta

import pytest

from service.errors import InvariantBroken
from service.mergequeue.engine import engine, inputs
from service.mergequeue.engine.applying import apply
from service.mergequeue.engine.config import Hedging, QueueConfig
from service.mergequeue.engine.explaining import explain
from service.mergequeue.engine.explaining.conditions import ConditionCode
from service.mergequeue.engine.model import Entry, Green, MergeQueue, RequiredSet
from service.mergequeue.engine.outputs import BuildTestBranch, RetireRun, Tell
from service.mergequeue.engine.planning import plan, starting
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.reported import Doomed, Rates
from service.mergequeue.engine.state.draft import Draft, Finding
from service.mergequeue.engine.states import EntryState, QueueState, RunKind, RunStatus
from service.vocabulary import (
    SYSTEM,
    Binding,
    Blocker,
    BlockerCode,
    CheckKind,
    CheckOutcome,
    RequiredName,
)
from tests.harness.values import sha_of
from tests.mergequeue import trees
from tests.mergequeue.stage import ALICE, REQUIRED, START, Stage, a_check, a_queue, facts_of

SLOTS = QueueConfig(concurrency=3)


def a_stage(*prs: int) -> Stage:
    stage = Stage(SLOTS)
    for pr in prs:
        stage.tell(stage.submit(pr))
    return stage


def test_every_input_has_one_applier() -> None:
    assert set(apply.APPLIERS) == set(typing.get_args(inputs.Input))


def test_every_pass_is_a_function_of_its_own() -> None:
    assert len(set(plan.PASSES)) == len(plan.PASSES)


def test_the_same_inputs_give_the_same_ids() -> None:
    first, second = a_stage(1, 2), a_stage(1, 2)
    assert first.queue == second.queue


def test_nothing_due_gives_the_very_same_value() -> None:
    queue = a_stage(1, 2).queue
    step = engine.step(queue, inputs.TimePassed(), START)
    assert step.queue is queue
    assert (step.actions, step.events, step.refusal) == ((), (), None)


def test_measured_rates_change_nothing_but_what_is_known() -> None:
    queue = a_stage(1, 2).queue
    step = engine.step(queue, inputs.RatesMeasured(0.05, 0.1, {"unit": 20.0}), START)
    assert step.queue == replace(queue, rates=Rates(0.05, 0.1, {"unit": 20.0}))
    assert (step.actions, step.events) == ((), ())


def test_a_step_that_is_not_checked_gives_the_same() -> None:
    queue = a_stage(1, 2, 3, 4, 5).queue
    cancel = inputs.Cancel(1, Reason.USER_REQUESTED, ALICE)
    assert engine.step(queue, cancel, START, is_checked=False) == engine.step(queue, cancel, START)


def test_a_value_that_was_loaded_goes_on_like_the_one_in_memory() -> None:
    queue = a_stage(1, 2, 3, 4, 5).queue
    loaded = replace(queue, entries=dict(queue.entries))
    cancel = inputs.Cancel(1, Reason.USER_REQUESTED, ALICE)
    assert engine.step(loaded, cancel, START) == engine.step(queue, cancel, START)


def test_a_refused_command_changes_nothing_and_says_when_to_wake() -> None:
    queue = a_stage(1).queue
    step = engine.step(queue, inputs.Restart(9, ALICE), START)
    assert step.queue is queue
    assert step.refusal is not None
    assert step.wake_at == START + timedelta(minutes=5)


def test_another_head_ends_the_old_submission_and_begins_a_new_one_in_one_step() -> None:
    stage = a_stage(1)
    old = stage.queue.entries[1]
    step = engine.step(stage.queue, inputs.Submit(facts_of(1, 2), ALICE), START)
    assert [entry.id for entry in step.finished_entries] == [old.id]
    assert step.finished_entries[0].reason is Reason.HEAD_CHANGED
    assert step.queue.entries[1].id != old.id
    assert step.queue.entries[1].head == trees.head_of(1, 2)


def test_every_state_change_is_told_once() -> None:
    stage = Stage(SLOTS)
    stage.tell(stage.submit(1))
    told = [action.state for action in stage.told if isinstance(action, Tell)]
    # Once more when the test branch is built: then the checks can be shown.
    testing = [EntryState.TESTING, EntryState.TESTING]
    assert told == [EntryState.NOT_READY, EntryState.PENDING, *testing]


def test_a_pull_request_that_waits_to_enter_is_told_when_the_queue_stops_or_goes_on() -> None:
    stage = Stage(SLOTS)
    stage.tell(replace(stage.submit(1), facts=replace(facts_of(1), draft=True)))
    before = len(stage.told)
    stage.tell(inputs.SetState(QueueState.PAUSED, "wait", ALICE))
    stage.tell(inputs.SetState(QueueState.RUNNING, None, ALICE))
    told = [action.pr for action in stage.told[before:] if isinstance(action, Tell)]
    assert told == [1, 1]


def test_a_run_that_was_to_be_built_is_given_back_once() -> None:
    stage = a_stage(1, 2)
    stage.tell(inputs.Cancel(1, Reason.USER_REQUESTED, ALICE))
    built = [action.run for action in stage.told if isinstance(action, BuildTestBranch)]
    back = [action.run for action in stage.told if isinstance(action, RetireRun)]
    assert back == built[:2]


def test_a_queue_that_has_read_nothing_starts_nothing_and_says_so() -> None:
    bare = MergeQueue(id=1, uid=a_queue().uid, branch="main", config=SLOTS)
    queue = engine.step(bare, inputs.Submit(facts_of(1), ALICE), START).queue
    explained = explain.explain(queue, 1, START)
    assert queue.entries[1].state is EntryState.PENDING
    unmet = [one.code for one in explained.conditions if not one.met]
    assert unmet == [ConditionCode.NO_HOLD]


def test_a_final_entry_explains_itself() -> None:
    stage = a_stage(1)
    step = engine.step(
        stage.queue, inputs.Cancel(1, Reason.LABEL_REMOVED, ALICE, "label gone"), START
    )
    explained = explain.of_final(step.finished_entries[0])
    assert (explained.state, explained.reason) == (EntryState.CANCELLED, Reason.LABEL_REMOVED)
    assert explained.next is None


def test_a_pull_request_that_is_not_queued_cannot_be_explained() -> None:
    with pytest.raises(KeyError):
        explain.explain(a_queue(), 1, START)


def test_no_more_than_5000_are_queued() -> None:
    queue = a_stage(1).queue
    one = queue.entries[1]
    crowd = {
        pr: replace(one, pr=pr, id=str(pr), state=EntryState.NOT_READY, run=None, rank=None)
        for pr in range(2, 5001)
    }
    full = replace(queue, entries={**queue.entries, **crowd})
    step = engine.step(full, inputs.Submit(facts_of(6000), ALICE), START)
    assert step.refusal is not None
    assert step.refusal.reason is Reason.LIMIT_REACHED


def test_a_person_places_no_21st_hold_and_the_system_does() -> None:
    queue = a_queue()
    freeze = inputs.PlaceHold(HoldReason.FREEZE, None, "stop", ALICE)
    for _ in range(20):
        queue = engine.step(queue, freeze, START).queue
    step = engine.step(queue, freeze, START)
    assert step.refusal is not None
    assert step.refusal.reason is Reason.LIMIT_REACHED
    assert len(step.queue.holds) == 20
    found = inputs.PlaceHold(HoldReason.PERMISSION_LOST, None, "gone", SYSTEM)
    assert len(engine.step(step.queue, found, START).queue.holds) == 21


def test_a_test_branch_holds_200_heads_at_most() -> None:
    stage = Stage(QueueConfig(concurrency=9, batch=True, batching_min_size=50))
    stage.tell(inputs.SetState(QueueState.PAUSED, None, ALICE))
    for pr in range(1, 251):
        stage.tell(stage.submit(pr))
    stage.tell(inputs.SetState(QueueState.RUNNING, None, ALICE))
    states = [stage.queue.entries[pr].state for pr in (200, 201)]
    assert states == [EntryState.TESTING, EntryState.PENDING]


def test_many_insertions_at_one_place_renumber_the_line() -> None:
    stage = a_stage(1)
    stage.tell(inputs.SetState(QueueState.RUNNING, None, ALICE))
    for pr in range(100, 130):
        stage.tell(stage.submit(pr))
        stage.tell(stage.submit(pr, priority=0))
    order = [entry.pr for entry in sorted(stage.queue.entries.values(), key=_rank) if entry.rank]
    assert order == [*range(100, 130), 1]


def _rank(entry: Entry) -> int:
    return entry.rank or 0


def test_a_thousand_results_are_remembered_the_newest() -> None:
    stage = a_stage()
    known = {}
    for second in range(1, 1001):
        at = START + timedelta(seconds=second)
        known[f"{second}"] = Green(sha_of("tree", second), "", "", sha_of("head", second), at)
    stage.queue = replace(stage.queue, greens=known)
    stage.now = START + timedelta(seconds=1000)
    for pr in (1, 2):
        stage.now += timedelta(seconds=1)
        stage.tell(stage.submit(pr))
        run = next(iter(stage.queue.runs.values()))
        checks = (a_check("unit", CheckOutcome.PASSED),)
        stage.tell(inputs.ChecksReported(run.id, run.sha or trees.sha(), checks, True))
    greens = stage.queue.greens
    assert len(greens) == 1000
    assert min(green.at for green in greens.values()) == START + timedelta(seconds=3)


def test_steps_that_do_not_exist_are_our_mistake() -> None:
    queue = a_stage(1).queue
    draft = Draft(queue, START, SYSTEM)
    entry = queue.entries[1]
    run = queue.runs[entry.run or ""]
    draft.entries[1] = replace(entry, state=EntryState.NOT_READY)
    with pytest.raises(InvariantBroken):
        draft.move(entry, EntryState.TESTING, Reason.TEST_STARTED)
    draft.entries[1] = entry
    with pytest.raises(InvariantBroken):
        draft.enter(entry)
    with pytest.raises(InvariantBroken):
        draft.put(replace(entry, state=EntryState.FAILED))
    with pytest.raises(InvariantBroken):
        draft.put_run(replace(run, status=RunStatus.FAILED))
    draft.finish(run, RunStatus.FAILED, Finding())
    with pytest.raises(InvariantBroken):
        draft.finish(run, RunStatus.CANCELLED, Finding())
    switching = replace(queue, state=QueueState.SWITCHING_MODES)
    with pytest.raises(InvariantBroken):
        Draft(switching, START, SYSTEM).set_state(QueueState.PAUSED, None)


def test_what_was_built_of_other_heads_is_our_mistake() -> None:
    stage = Stage(SLOTS, manual_build=True)
    stage.tell(stage.submit(1))
    run = next(iter(stage.queue.runs))
    built = inputs.TestBranchBuilt(run, trees.sha("c"), (), "headgate/1", True)
    with pytest.raises(InvariantBroken):
        engine.step(stage.queue, built, START)


def test_another_tree_than_the_tested_one_is_never_recorded_as_landed() -> None:
    stage = Stage(SLOTS, manual_land=True)
    stage.tell(stage.submit(1))
    run = next(iter(stage.queue.runs.values()))
    checks = (a_check("unit", CheckOutcome.PASSED),)
    stage.tell(inputs.ChecksReported(run.id, run.sha or trees.sha(), checks, True))
    with pytest.raises(InvariantBroken):
        engine.step(stage.queue, inputs.Landed(run.id, 1, trees.sha("l"), trees.sha("t")), START)


@pytest.mark.parametrize(
    "late",
    [
        inputs.TestBranchBuilt("gone", trees.sha("c"), (), "headgate/1", True),
        inputs.NothingToTest("gone"),
        inputs.TestBranchConflicted("gone", 1, True, None, ()),
        inputs.TestBranchRefused("gone", None, inputs.BuildRefusal.OTHER, ""),
        inputs.TestBranchLost("gone", "mallory"),
        inputs.ChecksReported("gone", trees.sha("c"), (), True),
        inputs.RerunStarted("gone", 2),
        inputs.RerunRefused("gone"),
        inputs.FailureForeseen("gone", 1, (Doomed("unit", "unit", "1", "1"),)),
        inputs.Landed("gone", 1, trees.sha("c"), trees.sha("t")),
        inputs.LandingStopped("gone", 1, inputs.LandingStopCode.RETRY, ""),
        inputs.AdvanceRefused("gone", ""),
        inputs.LandingMismatch("gone", 1, (1,), trees.Target().tip, ""),
        inputs.FactsChanged(facts_of(99)),
        inputs.PullRequestGone(99),
        inputs.EstimateChanged(99, 0.5),
    ],
    ids=lambda late: type(late).__name__,
)
def test_reports_about_what_is_over_change_nothing(late: inputs.Input) -> None:
    queue = a_stage(1, 2).queue
    assert engine.step(queue, late, START).queue is queue


def test_a_clock_that_is_late_counts_in_the_step_that_moves_the_target() -> None:
    stage = Stage(replace(SLOTS, hedging=Hedging.SPARE_SLOTS, hedge_threshold=0.3))
    stage.tell(stage.submit(1, p_fail=0.5))
    stage.tell(stage.submit(2))
    assert stage.run(3).kind is RunKind.HEDGE
    lost = replace(stage.facts[1], blockers=(Blocker(BlockerCode.REVIEW_REQUIRED, None),))
    stage.tell(inputs.FactsChanged(lost))
    stage.now += timedelta(minutes=11)
    stage.tell(stage.foreign(frozenset({("foreign", "1")})))
    assert stage.queue.entries[1].state is EntryState.NOT_READY
    left = [(run.kind, run.base, run.base_tip) for run in stage.queue.runs.values()]
    assert left == [(RunKind.MAIN, (), stage.target.tip)]


def test_a_base_and_a_batch_are_never_more_than_the_provider_merges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(starting, "STEPS_MAX", 3)
    stage = Stage(replace(SLOTS, batch=True, batching_min_size=2))
    for pr in range(1, 6):
        stage.tell(stage.submit(pr, no_batch=pr < 3))
    stage.tell(stage.submit(6))
    assert [run.prs for run in stage.queue.runs.values()] == [(1,), (2,), (3,)]
    stage.tell(inputs.Configure({"concurrency": 9}, ALICE))
    assert stage.queue.entries[4].state is EntryState.PENDING


def test_what_has_landed_is_forgotten_and_restarts_nobody() -> None:
    stage = Stage(replace(SLOTS, concurrency=2))
    stage.tell(stage.submit(1))
    for pr in range(1, 9):
        stage.tell(stage.submit(pr + 1))
        run = stage.run(pr)
        checks = (a_check("unit", CheckOutcome.PASSED),)
        stage.tell(inputs.ChecksReported(run.id, run.sha or trees.sha(), checks, True))
    assert sorted(stage.queue.entries) == [9]
    assert max(stage.runs) == 9
    graph = Draft(stage.queue, START, SYSTEM).entries.graph
    assert graph is not None
    assert len(graph.nodes) == 1


def test_a_learned_reporter_keeps_the_place_of_its_name_in_a_run() -> None:
    stage = a_stage()
    asked = RequiredSet((RequiredName("unit"), RequiredName("gate")), REQUIRED.source)
    stage.tell(inputs.RequiredChanged(asked))
    stage.tell(stage.submit(1))
    unit = RequiredName("unit", "15368", CheckKind.SUITE_RUN, binding=Binding("15368", "main"))
    added = RequiredName("lint")
    stage.tell(inputs.RequiredChanged(replace(asked, names=(added, unit, asked.names[1]))))
    (run,) = stage.queue.runs.values()
    assert run.required == (unit, asked.names[1], added)
