"""What a failure must never do that no check shows: it is only foreseen, or runs again.

See docs/design/early-failures.md 3 and docs/design/testing.md 8.2. For the histories of the
simulation and the states of the exhaustive search; it asks the engine nothing.
"""

from service.mergequeue.engine import outputs
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.outputs import Step
from service.mergequeue.engine.reasons import Cause, Reason
from service.mergequeue.engine.states import RunStatus
from service.vocabulary import CheckOutcome


def blames_alone(event: outputs.EntryMoved, run: Run, step: Step) -> bool:
    """Return whether an entry is blamed by this run, in which no check shows a failure.

    Another failed run with it ends in the same step, or is among the records of the verdict.
    """
    if not run.is_foreseen and _has_reported(run):
        return False
    believed = event.detail.suspicion
    if believed is not None and believed.alone + believed.together > 1:
        return False
    return not any(
        one.status is RunStatus.FAILED
        and one.id != run.id
        and (bool(one.doomed) or _has_reported(one))
        and any(member.entry == event.entry for member in one.entries)
        for one in step.finished_runs
    )


def costs_a_place(event: outputs.EntryMoved, step: Step) -> bool:
    """Return whether an entry is placed anew because its early verdict is taken back."""
    if event.reason is not Reason.FAILURE_TAKEN_BACK:
        return False
    placed = [each.event for each in step.events if isinstance(each.event, outputs.EntryPlaced)]
    return any(one.pr == event.pr for one in placed)


def _has_reported(run: Run) -> bool:
    is_failed = any(
        check.outcome is CheckOutcome.FAILED and check.id not in run.rerun_ids
        for check in run.checks
    )
    return is_failed or bool(run.revoked) or run.cause is Cause.TIMEOUT
