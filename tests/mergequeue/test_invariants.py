"""What must hold after a step is checked after the step, and a breach has a name."""

from dataclasses import replace

import pytest

from service.errors import InvariantBroken
from service.mergequeue.engine import invariants
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import (
    NOTHING,
    Detail,
    Entry,
    Landing,
    LandMode,
    MergeQueue,
    Run,
)
from service.mergequeue.engine.outputs import EntryMoved, RunStarted
from service.mergequeue.engine.planning import plan
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.state.draft import Draft, Finding
from service.mergequeue.engine.state.run_index import IndexedRuns
from service.mergequeue.engine.states import EntryState, QueueState, RunKind, RunStatus
from service.vocabulary import SYSTEM, CheckOutcome, Sha
from tests.mergequeue import trees
from tests.mergequeue.script import Script
from tests.mergequeue.stage import START, Stage, a_check

EVIDENCE = Detail(text="evidence")


def a_draft() -> tuple[Draft, Entry, Run]:
    """A draft of a queue with 1 and 2 in tests."""
    stage = Stage(QueueConfig(concurrency=2))
    for pr in (1, 2):
        stage.tell(stage.submit(pr))
    draft = Draft(stage.queue, START, SYSTEM)
    entry = stage.queue.entries[2]
    return draft, entry, stage.queue.runs[entry.run or ""]


def refused(draft: Draft, number: str, text: str | None = None) -> None:
    with pytest.raises(InvariantBroken, match=text) as caught:
        invariants.check(draft)
    assert caught.value.number == number


def test_nobody_leaves_without_evidence_or_is_blamed_without_a_failed_run() -> None:
    draft, entry, _ = a_draft()
    draft.move(entry, EntryState.CANCELLED, Reason.PR_CLOSED)
    refused(draft, "E7")
    draft, entry, run = a_draft()
    draft.retire(run, Reason.REQUIRED_STATUS_FAILED)
    draft.move(entry, EntryState.FAILED, Reason.REQUIRED_STATUS_FAILED, EVIDENCE)
    refused(draft, "E6")


def blamed_by(draft: Draft, entry: Entry, run: Run, outcome: CheckOutcome) -> None:
    """Let an entry fail by a failed run whose check shows this now."""
    shown = a_check(run.required[0].name, outcome)
    failed = draft.finish(replace(run, checks=(shown,)), RunStatus.FAILED, Finding())
    draft.retire(failed, Reason.REQUIRED_STATUS_FAILED)
    draft.move(entry, EntryState.FAILED, Reason.REQUIRED_STATUS_FAILED, EVIDENCE)


def test_nobody_is_blamed_on_top_of_an_unproven_one() -> None:
    draft, entry, run = a_draft()
    blamed_by(draft, entry, run, CheckOutcome.FAILED)
    refused(draft, "E6", "on top of")


@pytest.mark.parametrize("outcome", [CheckOutcome.RUNNING, CheckOutcome.PASSED])
def test_nobody_is_blamed_by_a_failure_that_no_check_shows_any_more(outcome: CheckOutcome) -> None:
    draft, entry, run = a_draft()
    blamed_by(draft, entry, run, outcome)
    refused(draft, "E6", "no check shows")


def test_a_start_needs_a_running_queue_a_slot_and_a_base_under_way() -> None:
    draft, _, run = a_draft()
    twin = replace(run, id="twin", number=9, kind=run.kind)
    draft.start(twin)
    refused(draft, "E1")
    before = replace(a_draft()[0].queue, runs={})
    draft = Draft(before, START, SYSTEM)
    draft.before = before
    draft.runs = IndexedRuns(a_draft()[0].runs)
    draft.changed_runs = set(draft.runs)
    draft.queue = replace(before, state=QueueState.PAUSED)
    refused(draft, "E4")
    draft.queue = replace(before, config=QueueConfig(concurrency=1))
    refused(draft, "E4")
    one = draft.entries[1]
    draft.queue = before
    draft.entries[1] = replace(one, state=EntryState.PENDING)
    refused(draft, "E4")


def test_a_run_may_have_begun_before_the_one_below_it_was_taken_back_but_not_after() -> None:
    draft, _, behind = a_draft()
    below = draft.entries[1]
    draft.entries[1] = replace(below, state=EntryState.PENDING)
    draft.before = replace(draft.before, runs={})
    draft.changed_runs = {behind.id}
    reason = Reason.SCREEN_FAILED
    taken_back = EntryMoved(1, below.id, below.state, EntryState.PENDING, reason, None, NOTHING)
    begun = RunStarted(behind.id, behind.number, behind.kind, behind.prs, behind.base_prs, Sha(""))
    draft.record(taken_back)
    draft.record(begun)
    refused(draft, "E4")
    draft.record(taken_back)
    invariants.check(draft)


def test_a_run_tests_no_more_than_a_batch_and_nobody_who_has_to_be_alone() -> None:
    stage = Stage(QueueConfig(batch=True, batching_min_size=2))
    for pr in (1, 2):
        stage.tell(stage.submit(pr))
    draft = Draft(stage.queue, START, SYSTEM)
    draft.before = replace(draft.before, runs={})
    draft.changed_runs = set(draft.runs)
    invariants.check(draft)
    draft.queue = replace(draft.queue, config=QueueConfig(batch=False))
    refused(draft, "E4")
    draft.queue = stage.queue
    draft.entries[2] = replace(draft.entries[2], no_batch=True)
    refused(draft, "E4")


def test_a_member_of_a_stack_that_has_to_be_alone_is_in_no_run_with_the_others() -> None:
    script = Script("queue SINGLE merge_method=SQUASH")
    script.play("stack 1 2")
    draft = Draft(script.stage.queue, START, SYSTEM)
    draft.before = replace(draft.before, runs={})
    draft.changed_runs = set(draft.runs)
    invariants.check(draft)
    draft.entries[2] = replace(draft.entries[2], no_batch=True)
    refused(draft, "E4")


def test_a_landing_needs_an_open_queue_a_passed_run_and_its_base_on_the_target() -> None:
    draft, _, run = a_draft()
    tip = draft.queue.tip
    assert tip is not None
    flight = Landing(1, run.id, (2,), LandMode.CALL, tip, START)
    draft.queue = replace(draft.queue, landing=replace(flight, run="gone"))
    refused(draft, "E4")
    draft.queue = replace(draft.queue, landing=flight, state=QueueState.PAUSED)
    refused(draft, "E4")
    draft.queue = replace(draft.queue, state=QueueState.RUNNING)
    refused(draft, "I2")
    succeeded = replace(run, status=RunStatus.SUCCEEDED)
    draft.runs[run.id] = succeeded
    refused(draft, "I2")
    passed = tuple(a_check(one.name, CheckOutcome.PASSED) for one in run.required)
    draft.runs[run.id] = replace(succeeded, checks=passed)
    refused(draft, "I7")


def test_planning_that_never_rests_is_our_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    def restless(draft: Draft) -> None:
        draft.revision += 1

    monkeypatch.setattr(plan, "PASSES", (plan.Pass(restless, "", ""),))
    with pytest.raises(InvariantBroken):
        plan.settle(a_draft()[0])


def broken(queue: MergeQueue, number: str) -> None:
    with pytest.raises(InvariantBroken) as caught:
        invariants.check_whole(queue, START)
    assert caught.value.number == number


def with_entry(queue: MergeQueue, entry: Entry) -> MergeQueue:
    return replace(queue, entries={**queue.entries, entry.pr: entry})


def test_a_value_that_breaks_an_invariant_is_named() -> None:
    queue = a_draft()[0].queue
    one, two = queue.entries[1], queue.entries[2]
    run = queue.runs[two.run or ""]
    broken(with_entry(queue, replace(one, run=None)), "E2")
    broken(with_entry(queue, replace(one, state=EntryState.PENDING)), "E2")
    broken(with_entry(queue, replace(one, verified_by=one.run)), "E2")
    broken(with_entry(queue, replace(one, rank=None)), "E1")
    broken(with_entry(queue, replace(one, held_by=(7,))), "E2")
    broken(with_entry(queue, replace(one, rank=two.rank)), "E1")
    broken(with_entry(queue, replace(two, id="another")), "E1")
    broken(with_entry(queue, replace(two, head=trees.head_of(2, 9))), "E5")
    broken(with_entry(queue, replace(two, run=one.run)), "E1")
    broken(with_entry(queue, replace(one, kept=True)), "E2")
    broken(with_entry(queue, replace(one, bisection="over")), "E2")
    hedge = replace(run, kind=RunKind.HEDGE)
    broken(replace(queue, runs={**queue.runs, run.id: hedge}), "E2")
    probe = replace(run, id="probe", kind=RunKind.PROBE, bisection="over")
    broken(replace(queue, runs={**queue.runs, probe.id: probe}), "E1")
    changed = replace(run, steps=run.steps[:1])
    broken(replace(queue, runs={**queue.runs, run.id: changed}), "E5")
    changed = replace(run, base=())
    broken(replace(queue, runs={**queue.runs, run.id: replace(changed, steps=())}), "E3")
    unknown = replace(run, base_tip=replace(run.base_tip, sha=trees.sha("unknown")))
    broken(replace(queue, runs={**queue.runs, run.id: unknown}), "E3")


def test_a_batch_is_whole_and_its_members_are_neighbors() -> None:
    script = Script("queue SINGLE batch=2 concurrency=2")
    script.play("submit 1 2 3 4")
    queue = script.stage.queue
    two, three = queue.entries[2], queue.entries[3]
    left = {pr: entry for pr, entry in queue.entries.items() if pr != 1}
    broken(replace(queue, entries=left), "E1")
    apart = with_entry(queue, replace(two, rank=three.rank))
    broken(with_entry(apart, replace(three, rank=two.rank)), "E1")
