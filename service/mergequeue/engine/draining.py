"""Saying once that a draining queue is empty of work (ENGINE.md 3.3)."""

from collections.abc import Iterable

from service.mergequeue.engine.draft import Draft
from service.mergequeue.engine.model import MergeQueue, Run
from service.mergequeue.engine.outputs import QueueDrained
from service.mergequeue.engine.states import QueueState, RunStatus

_OVER = frozenset({RunStatus.FAILED, RunStatus.CANCELLED})


def note(draft: Draft) -> None:
    """Leave the event in the step in which the last run ended, or the draining began."""
    now = _is_drained(draft.queue.state, draft.runs.values())
    if now and not _was_drained(draft.before) and not _is_said(draft):
        draft.say(QueueDrained())


def _was_drained(queue: MergeQueue) -> bool:
    return _is_drained(queue.state, queue.runs.values())


def _is_drained(state: QueueState, runs: Iterable[Run]) -> bool:
    """A failed run that could only be decided by a start does not count: nothing may start."""
    if state is not QueueState.DRAINING:
        return False
    return all(run.status in _OVER for run in runs)


def _is_said(draft: Draft) -> bool:
    return any(isinstance(recorded.event, QueueDrained) for recorded in draft.events)
