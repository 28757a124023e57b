"""What must hold on every edge, judged by what CI said and by what stands on the branch."""

from dataclasses import dataclass

from service.mergequeue.engine import outputs
from service.mergequeue.engine.inputs import ChecksReported, Input, Landed, TimePassed
from service.mergequeue.engine.model import LandMode, Member, MergeQueue, Run
from service.mergequeue.engine.outputs import Land, Step
from service.mergequeue.engine.reasons import Cause, HoldReason, Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.states import (
    FINAL,
    SPARE,
    EntryState,
    QueueState,
    RunKind,
    RunStatus,
)
from service.vocabulary import CheckOutcome, Sha
from tests.harness import fair_turns, foreseen, stacked, whole_units
from tests.mergequeue import trees
from tests.mergequeue.trees import Tree

BLAMED_BY_TESTS = frozenset(
    {Reason.REQUIRED_STATUS_FAILED, Reason.RUN_TIMED_OUT, Reason.INTERACTION}
)


class Violation(AssertionError):
    """A property does not hold."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The branch's content before an input, and which pull requests truly fail together."""

    tree: Tree
    breaks: tuple[frozenset[int], ...] | None


def judge(before: MergeQueue, one: Input, step: Step, truth: Truth) -> None:
    """Look at one input and all that followed from it. Raises Violation."""
    for recorded in step.events:
        event = recorded.event
        if isinstance(event, outputs.EntryMoved):
            _moved(before, event, step, truth)
            _was_not_cleared(event, one, step)
            if foreseen.costs_a_place(event, step):
                raise Violation(f"I19: {event.pr} lost its place by what was taken back")
        elif isinstance(event, outputs.RunFinished):
            _finished(event, step)
        elif isinstance(event, outputs.RunStarted):
            _started(event, step)
    for action in step.actions:
        if isinstance(action, Land):
            _lands(action, step.queue)
    _restarted(one, step)
    _is_held(step)
    fair_turns.judge(before, step)


def _moved(before: MergeQueue, event: outputs.EntryMoved, step: Step, truth: Truth) -> None:
    if event.origin in FINAL:
        raise Violation(f"I14: {event.pr} left {event.origin.value}")
    if event.state is EntryState.MERGED and event.reason is Reason.LANDED:
        if trees.change_of(event.pr, _head(before, event)) not in truth.tree:
            raise Violation(f"S2: {event.pr} is merged and not on the branch")
    elif event.state is EntryState.FAILED and event.reason in BLAMED_BY_TESTS:
        _blamed(event, step, truth)


def _blamed(event: outputs.EntryMoved, step: Step, truth: Truth) -> None:
    """S3, I18: a failed run, in which nobody but the blamed was unproven."""
    run = next((run for run in step.finished_runs if run.id == event.detail.run), None)
    if run is None or run.status is not RunStatus.FAILED:
        raise Violation(f"I18: {event.pr} is blamed without a failed run")
    if run.kind in SPARE:
        raise Violation(f"S8: {event.pr} is blamed by a run that counts for nothing")
    if foreseen.blames_alone(event, run, step):
        raise Violation(f"I18: {event.pr} is blamed by one run that shows no failure")
    below = [member for member in (*run.base, *run.entries) if member.pr != event.pr]
    unproven = [member.pr for member in below if not _is_proven(member, step, truth)]
    greens = {green.tree for green in step.queue.greens.values()}
    is_green_below = len(run.steps) > 1 and run.steps[-2].tree in greens
    if unproven and not is_green_below:
        raise Violation(f"I18: {event.pr} is blamed on top of {unproven}")
    if truth.breaks is not None and not fails(run.prs + run.base_prs, truth):
        raise Violation(f"S3: {event.pr} is innocent")


def fails(prs: tuple[int, ...], truth: Truth) -> bool:
    """Whether these pull requests, on the branch as it is, truly fail."""
    there = {*prs, *(_number(what) for what, _ in truth.tree)}
    return any(together <= there for together in truth.breaks or ())


def _is_proven(member: Member, step: Step, truth: Truth) -> bool:
    if trees.change_of(member.pr, member.head) in truth.tree:
        return True
    entry = step.queue.entries.get(member.pr)
    if entry is not None and entry.id == member.entry:
        return entry.state is EntryState.TESTS_PASSED
    return False


def _was_not_cleared(event: outputs.EntryMoved, one: Input, step: Step) -> None:
    """S3: with optimistic merging a follower that passed clears it, before it is judged."""
    if event.state is not EntryState.FAILED or event.reason not in BLAMED_BY_TESTS:
        return
    is_judged = isinstance(one, ChecksReported | TimePassed)
    if not is_judged or not step.queue.config.can_optimistically_merge:
        return
    for run in (*step.queue.runs.values(), *step.finished_runs):
        stands_on_it = any(member.entry == event.entry for member in run.base)
        if stands_on_it and run.kind is RunKind.MAIN and run.steps and _is_green(run):
            raise Violation(f"S3: {event.pr} is blamed although run {run.number} passed")


def _finished(event: outputs.RunFinished, step: Step) -> None:
    """I2, I44: passed by its own reports or by those of an equal tree, failed by its own."""
    run = step.queue.runs.get(event.run)
    if run is None:
        run = next(run for run in step.finished_runs if run.id == event.run)
    if event.status is RunStatus.FAILED and event.cause is not Cause.TIMEOUT:
        if not run.doomed and not any(
            check.outcome is CheckOutcome.FAILED or check.id in run.revoked for check in run.checks
        ):
            raise Violation(f"I18: run {run.number} failed and nothing of it did")
    elif event.status is RunStatus.SUCCEEDED:
        _passed(event, step, run)


def _passed(event: outputs.RunFinished, step: Step, run: Run) -> None:
    if run.contained or event.cause is Cause.QUARANTINED_ONLY:
        return
    if run.reused_from is not None:
        if run.steps[-1].tree not in {green.tree for green in step.queue.greens.values()}:
            raise Violation(f"I44: run {run.number} took another tree's result")
    elif not _is_green(run):
        raise Violation(f"I2: run {run.number} passed without its reports")


def _is_green(run: Run) -> bool:
    passed = {
        check.name
        for check in run.checks
        if check.outcome is CheckOutcome.PASSED and check.id not in (*run.rerun_ids, *run.revoked)
    }
    return all(required.name in passed for required in run.required)


def _started(event: outputs.RunStarted, step: Step) -> None:
    run = step.queue.runs.get(event.run)
    if run is not None and (early := stacked.tested_early(run, step.queue)) is not None:
        raise Violation(f"S10: {early} is tested before what is below it")
    if step.queue.state is not QueueState.RUNNING and event.kind is not RunKind.TIP:
        raise Violation(f"I22: run {event.number} started while {step.queue.state.value}")
    if any(hold.reason is HoldReason.PROVIDER_LIMIT for hold in step.queue.holds):
        raise Violation(f"I22: run {event.number} started without a slot at the provider")


def _lands_in_stack(facts: Facts, action: Land, queue: MergeQueue) -> None:
    if stacked.lands_early(facts, action, queue):
        raise Violation(f"S10: {facts.pr} of a stack lands too early")
    if (facts.in_stack or facts.below) and action.mode is LandMode.CAS:
        raise Violation(f"S10: {facts.pr} of a stack lands by the atomic update")


def _lands(action: Land, queue: MergeQueue) -> None:
    """What is asked to land has passed as that tree, and nothing forbids it."""
    if queue.state is QueueState.PAUSED:
        raise Violation("I21: a paused queue lands")
    if whole_units.is_stopped(queue, action.run):
        raise Violation("I28: a held queue lands")
    if queue.landing is None or queue.landing.run != action.run:
        raise Violation("I23: two landings at once")
    run = queue.runs[action.run]
    if run.status is not RunStatus.SUCCEEDED:
        raise Violation(f"S1: run {run.number} lands and has not passed")
    if run.reused_from is None and run.cause is not Cause.QUARANTINED_ONLY and not _is_green(run):
        raise Violation(f"S1: run {run.number} lands and is not green")
    for one in action.steps:
        _lands_in_stack(queue.entries[one.pr].facts, action, queue)
    tested = {(one.pr, one.head, one.tree) for one in run.steps}
    for step in action.steps:
        if (step.pr, step.head, step.tree) not in tested:
            raise Violation(f"S1: {step.pr} is to land as a tree that its run does not have")
        if queue.entries[step.pr].head != step.head:
            raise Violation(f"I5: an old head of {step.pr} is to land")


def _is_held(step: Step) -> None:
    """I49: a unit that stops half-way holds the queue at once."""
    halts = (outputs.TipMoved, outputs.LandingHalted)
    if not step.queue.landed or not any(isinstance(r.event, halts) for r in step.events):
        return
    runs = (*step.queue.runs.values(), *step.finished_runs)
    last = step.queue.landed[-1]
    if any(run.id == last.run and run.members[-1].entry == last.entry for run in runs):
        return
    proven = {run.steps[-1].tree for run in runs if run.steps and run.status is _SUCCEEDED}
    proven |= {green.tree for green in step.queue.greens.values()}
    if whole_units.is_unheld(step.queue, last.run or "", proven):
        raise Violation("I49: the target has a part of a unit, and nothing holds the queue")


_SUCCEEDED = RunStatus.SUCCEEDED


def _restarted(one: Input, step: Step) -> None:
    """S7: a predicted landing restarts nobody."""
    if not isinstance(one, Landed):
        return
    moves = [r.event for r in step.events if isinstance(r.event, outputs.TipMoved)]
    if any(not move.landed for move in moves):
        return
    for recorded in step.events:
        event = recorded.event
        if (
            isinstance(event, outputs.EntryMoved)
            and event.state is EntryState.PENDING
            and event.reason is Reason.TARGET_MOVED
        ):
            raise Violation(f"S7: a landing restarted {event.pr}")


def _head(before: MergeQueue, event: outputs.EntryMoved) -> Sha:
    return before.entries[event.pr].head


def _number(what: str) -> int:
    return int(what.removeprefix("pr ")) if what.startswith("pr ") else 0
