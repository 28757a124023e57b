"""Switch a queue's mode once no run depends on the old one, and report a drained queue."""

from collections.abc import Iterable

from service.mergequeue.engine import config
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.model import Detail, MergeQueue, Run
from service.mergequeue.engine.outputs import ModeChanged, QueueConfigured, QueueDrained
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import leaving
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import SPARE, EntryState, QueueState, RunStatus

_GOES_ON = frozenset({EntryState.TESTING, EntryState.TESTS_PASSED})


def ask(draft: Draft, mode: Mode) -> None:
    """Switch the mode as soon as possible; requesting the present mode cancels the switch."""
    queue = draft.queue
    wanted = None if mode is queue.config.mode else mode
    if wanted is queue.target_mode:
        return
    draft.put_queue(replace(queue, target_mode=wanted))
    draft.record(QueueConfigured(("mode",)))
    if wanted is None and draft.queue.state is QueueState.SWITCHING_MODES:
        draft.set_state(QueueState.RUNNING, None)


def switch(draft: Draft) -> None:
    """Wait for the runs that depend on the old mode, starting none, or begin the new one."""
    mode = draft.queue.target_mode
    if mode is None:
        return
    for run in list(draft.runs.values()):
        if run.kind in SPARE:
            draft.retire(run, Reason.MODE_SWITCHED)
    if any(_is_awaited(draft, run) for run in draft.runs.values()):
        if draft.queue.state is QueueState.RUNNING:
            draft.set_state(QueueState.SWITCHING_MODES, f"to {mode.value}")
        return
    _give_up_failures(draft)
    new = config.changed(draft.queue.config, {"mode": mode})
    draft.put_queue(replace(draft.queue, config=new, target_mode=None))
    draft.record(ModeChanged(mode))
    if draft.queue.state is QueueState.SWITCHING_MODES:
        draft.set_state(QueueState.RUNNING, None)
    _require_targets(draft)


def _is_awaited(draft: Draft, run: Run) -> bool:
    """Return whether a run is under way, or has passed and can land without another run."""
    if run.status is not RunStatus.SUCCEEDED:
        return run.status is RunStatus.IN_PROGRESS
    below = [entry for entry in map(draft.entry_of, run.base) if entry is not None]
    return all(entry.state in _GOES_ON for entry in below)


def _give_up_failures(draft: Draft) -> None:
    """Judge no entry across a mode change: the same failure shows again in the new mode."""
    for bisection in list(draft.queue.bisections.values()):
        leaving.abandon(draft, bisection, Reason.MODE_SWITCHED)
    for run in list(draft.runs.values()):
        leaving.restart(draft, run, Reason.MODE_SWITCHED)


def _require_targets(draft: Draft) -> None:
    """In PARALLEL mode an entry is ready only if its impacted targets are known."""
    for pr in sorted(draft.entries):
        entry = draft.entries[pr]
        draft.touched.add(pr)
        missing = draft.is_parallel and entry.targets is None
        if missing and entry.state is EntryState.PENDING:
            reason = Reason.IMPACTED_TARGETS_MISSING
            unmet = (*entry.unmet, reason)
            leaving.set_aside(draft, replace(entry, unmet=unmet), reason, Detail())


_OVER = frozenset({RunStatus.FAILED, RunStatus.CANCELLED})


def note_drained(draft: Draft) -> None:
    """Leave the event in the step in which the last run ended, or the draining began."""
    now = _is_drained(draft.queue.state, draft.runs.values())
    if now and not _was_drained(draft.before) and not _is_said(draft):
        draft.record(QueueDrained())


def _was_drained(queue: MergeQueue) -> bool:
    return _is_drained(queue.state, queue.runs.values())


def _is_drained(state: QueueState, runs: Iterable[Run]) -> bool:
    """A failed run that could only be decided by a start does not count: nothing may start."""
    if state is not QueueState.DRAINING:
        return False
    return all(run.status in _OVER for run in runs)


def _is_said(draft: Draft) -> bool:
    return any(isinstance(recorded.event, QueueDrained) for recorded in draft.events)
