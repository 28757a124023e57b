"""Preview a command: the engine on a copy of the queue."""

from dataclasses import dataclass
from datetime import datetime

from service.mergequeue.engine import engine
from service.mergequeue.engine.inputs import Cancel, Submit
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import EntryMoved, Refused, Step
from service.mergequeue.engine.state import shares
from service.mergequeue.engine.state.places import indexed
from service.mergequeue.engine.states import EntryState, RunStatus

_HAVE_TESTS = frozenset({EntryState.TESTING, EntryState.TESTS_PASSED, EntryState.PENDING_FAILURE})


@dataclass(frozen=True, slots=True)
class Preview:
    """The effect that a command about one pull request would have.

    `interrupted` are the ids of runs in progress that would be stopped, `restarted` the others
    whose tests would begin again, `moved_up` those that would move towards the front, `moved_back`
    away from it; all in the present order. All are empty while its landing is in flight, because
    it continues.
    """

    pr: int
    interrupted: tuple[str, ...]
    restarted: tuple[int, ...]
    moved_up: tuple[int, ...]
    moved_back: tuple[int, ...] = ()


def of_command(queue: MergeQueue, command: Cancel | Submit, now: datetime) -> Preview | Refused:
    """Return what the command would do, or why it would be refused. Changes nothing.

    Raises InvariantBroken where the command itself would.
    """
    step = engine.step(queue, command, now)
    if step.refusal is not None:
        return step.refusal
    pr = command.pr if isinstance(command, Cancel) else command.facts.pr
    before, after = _order(queue), _order(step.queue)
    both = [each for each in before if each in after]
    restarted = _restarted(step) - {pr}
    return Preview(
        pr=pr,
        interrupted=_interrupted(queue, step),
        restarted=tuple(each for each in before if each in restarted),
        moved_up=tuple(each for each in both if after[each] < before[each]),
        moved_back=tuple(each for each in both if after[each] > before[each]),
    )


def _order(queue: MergeQueue) -> dict[int, int]:
    """Pull requests in the line and waiting behind it, with their places."""
    entries = indexed(queue.entries)
    line = [pr for _, pr in entries.places.line]
    prs = line + shares.in_order(queue, entries, entries.places)
    return {pr: place for place, pr in enumerate(prs)}


def _restarted(step: Step) -> set[int]:
    moves = [recorded.event for recorded in step.events if isinstance(recorded.event, EntryMoved)]
    return {
        move.pr for move in moves if move.origin in _HAVE_TESTS and move.state is EntryState.PENDING
    }


def _interrupted(queue: MergeQueue, step: Step) -> tuple[str, ...]:
    running = [run for run in queue.runs.values() if run.status is RunStatus.IN_PROGRESS]
    stopped = {run.id for run in step.finished_runs if run.status is RunStatus.CANCELLED}
    running.sort(key=lambda run: run.number)
    return tuple(run.id for run in running if run.id in stopped)
