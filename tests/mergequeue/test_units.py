"""Runs of several entries, made by hand: what lands in one go, and what lands one by one."""

from dataclasses import replace
from datetime import timedelta

from service.mergequeue.engine import engine, inputs, invariants, targets
from service.mergequeue.engine.config import Mode, QueueConfig
from service.mergequeue.engine.inputs import BuildRefusal
from service.mergequeue.engine.model import LandMode, MergeQueue, Run, RunStep
from service.mergequeue.engine.outputs import Land
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState, QueueState, RunStatus
from service.vocabulary import SYSTEM, CheckOutcome, MergeMethod
from tests.mergequeue import trees
from tests.mergequeue.stage import START, Stage, a_check


def two_in_one(method: MergeMethod) -> tuple[MergeQueue, Run]:
    """1 and 2, tested together by one run that has passed."""
    stage = Stage(QueueConfig(concurrency=2, merge_method=method))
    stage.tell(inputs.SetState(QueueState.RUNNING, None, SYSTEM))
    for pr in (1, 2):
        stage.tell(stage.submit(pr))
    run = stage.run(2)
    both = replace(
        run,
        entries=(*run.base, *run.entries),
        base=(),
        status=RunStatus.SUCCEEDED,
        checks=(a_check("unit", CheckOutcome.PASSED),),
    )
    entries = {
        pr: replace(entry, state=EntryState.TESTS_PASSED, run=run.id, verified_by=run.id)
        for pr, entry in stage.queue.entries.items()
    }
    return replace(stage.queue, entries=entries, runs={run.id: both}), both


def landed(run: Run, position: int) -> inputs.Landed:
    step = run.steps[position - 1]
    return inputs.Landed(run.id, position, step.commit, step.tree)


def the_landing(step_actions: tuple[object, ...]) -> Land:
    return next(action for action in step_actions if isinstance(action, Land))


def test_merge_commits_land_as_one() -> None:
    queue, run = two_in_one(MergeMethod.MERGE_COMMIT)
    step = engine.step(queue, inputs.TimePassed(), START)
    action = the_landing(step.actions)
    assert action.mode is LandMode.CAS
    assert [one.pr for one in action.steps] == [1, 2]
    step = engine.step(step.queue, landed(run, 1), START)
    assert sorted(step.queue.entries) == [2]
    assert step.queue.landing is not None
    invariants.check_whole(step.queue, START)
    repeated = engine.step(step.queue, landed(run, 1), START)
    assert repeated.queue is step.queue
    step = engine.step(step.queue, landed(run, 2), START)
    assert (step.queue.entries, step.queue.runs, step.queue.landing) == ({}, {}, None)


def test_positions_that_are_reported_together_land_like_one_after_the_other() -> None:
    queue, run = two_in_one(MergeMethod.MERGE_COMMIT)
    landing = engine.step(queue, inputs.TimePassed(), START).queue
    both = [landed(run, 1), landed(run, 2)]
    together = engine.step_reports(landing, both, START)
    first = engine.step(landing, both[0], START)
    second = engine.step(first.queue, both[1], START)
    assert together.queue == second.queue
    assert together.events == first.events + second.events
    assert together.finished_entries == first.finished_entries + second.finished_entries


def test_one_that_leaves_as_another_lands_restarts_those_that_were_tested_on_it() -> None:
    config = QueueConfig(mode=Mode.PARALLEL, concurrency=3)
    stage = Stage(config, manual_build=True, manual_land=True)
    for pr, name in ((1, "a"), (2, "b"), (3, "b")):
        stage.tell(stage.submit(pr, targets=targets.of([name])))
    stage.build(stage.run_id(1))
    stage.build(stage.run_id(3))
    refused = inputs.TestBranchRefused(stage.run_id(2), None, BuildRefusal.OTHER, "try later")
    stage.tell(refused)
    first, behind = stage.run(1), stage.run(3)
    passed = (a_check("unit", CheckOutcome.PASSED),)
    stage.tell(inputs.ChecksReported(first.id, first.sha or trees.sha(), passed, True))
    (answer,) = stage.landed(stage.lands[first.id])
    assert isinstance(answer, inputs.Landed)
    assert stage.queue.entries[3].run == behind.id
    step = engine.step_reports(stage.queue, [inputs.PullRequestGone(2), answer], START)
    assert sorted(step.queue.entries) == [3]
    assert step.queue.entries[3].run != behind.id


def test_what_depended_on_others_only_through_one_that_landed_is_tested_without_them() -> None:
    stage = Stage(QueueConfig(mode=Mode.PARALLEL, concurrency=3), manual_land=True)
    for pr, name in ((1, "a"), (2, "b"), (3, "b")):
        stage.tell(stage.submit(pr, targets=targets.of([name])))
    second = stage.run(2)
    passed = (a_check("unit", CheckOutcome.PASSED),)
    stage.tell(inputs.ChecksReported(second.id, second.sha or trees.sha(), passed, True))
    both = targets.of(["a", "b"])
    stage.tell(inputs.SetImpactedTargets(2, stage.head(2), both, SYSTEM))
    before = stage.queue.runs[stage.queue.entries[3].run or ""]
    assert before.base_prs == (1, 2)
    stage.land(second.id)
    after = stage.queue.runs[stage.queue.entries[3].run or ""]
    assert (after.base_prs, after.id == before.id) == ((), False)


def test_calls_land_one_position_after_the_other() -> None:
    queue, run = two_in_one(MergeMethod.SQUASH)
    step = engine.step(queue, inputs.TimePassed(), START)
    assert [one.position for one in the_landing(step.actions).steps] == [1]
    step = engine.step(step.queue, landed(run, 1), START)
    action = the_landing(step.actions)
    assert [(one.position, one.pr) for one in action.steps] == [(2, 2)]
    assert action.steps[0].parent_tree == run.steps[0].tree
    step = engine.step(step.queue, landed(run, 2), START)
    assert [entry.pr for entry in step.finished_entries] == [2]
    assert step.queue.runs == {}


def test_a_contained_head_seen_while_building_lands_nothing() -> None:
    stage = Stage(QueueConfig(), manual_build=True)
    stage.tell(stage.submit(1))
    run_id, action = stage.builds.popitem()
    head = action.steps[0]
    tip = action.base_tip
    step = RunStep(head.pr, head.head, tip.sha, tip.tree, contained=True)
    built = inputs.TestBranchBuilt(run_id, tip.sha, (step,), "headgate/1", True)
    done = engine.step(stage.queue, built, START)
    assert [entry.reason for entry in done.finished_entries] == [Reason.ALREADY_CONTAINED]


def test_a_late_success_wins_over_its_confirmation_that_times_out_at_that_instant() -> None:
    stage = Stage(QueueConfig(confirm_failures="ALWAYS", check_start_timeout_minutes=1000))  # type: ignore[arg-type]
    stage.tell(stage.submit(1))
    main = stage.run(1)
    failed = (a_check("unit", CheckOutcome.FAILED),)
    stage.tell(inputs.ChecksReported(main.id, main.sha or trees.sha(), failed, True))
    stage.passes(timedelta(seconds=10))
    deadline = stage.run(2).deadline
    assert deadline is not None
    stage.now = deadline
    passed = (a_check("unit", CheckOutcome.PASSED, 2),)
    stage.tell(inputs.ChecksReported(main.id, main.sha or trees.sha(), passed, True))
    assert stage.queue.entries == {}


def test_moves_of_the_target_are_kept_as_long_as_a_live_run_looks_back_to_them() -> None:
    stage = Stage(QueueConfig(concurrency=40))
    for pr in range(1, 32):
        stage.tell(stage.submit(pr))
    for number in range(1, 31):
        run = stage.run(number)
        passed = (a_check("unit", CheckOutcome.PASSED),)
        stage.tell(inputs.ChecksReported(run.id, run.sha or trees.sha(), passed, True))
    assert len(stage.queue.landed) == 31
    stage.tell(inputs.Cancel(31, Reason.USER_REQUESTED, SYSTEM))
    assert len(stage.queue.landed) == 20
