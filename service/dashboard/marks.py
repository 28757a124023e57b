"""The word, glyph and color of each state; pages never show one without the others."""

from collections.abc import Mapping
from typing import NamedTuple

from service.mergequeue.engine.checked import CheckedName, Ended
from service.mergequeue.engine.culprits import failing, verdict
from service.mergequeue.engine.explaining.conditions import Standing
from service.mergequeue.engine.model import Entry, MergeQueue, Run
from service.mergequeue.engine.states import EntryState, QueueState, RunPhase, RunStatus
from service.mergequeue.reasons.record import HoldScope, WhoMustAct
from service.mergequeue.wording import checked_names
from service.vocabulary import CheckOutcome


class Mark(NamedTuple):
    """A word with its glyph (`templates/_glyphs.html`) and its color (`static/pages.css`)."""

    word: str
    glyph: str
    color: str


ENTRIES: Mapping[EntryState, Mark] = {
    EntryState.NOT_READY: Mark("Waiting to enter", "entering", "wait"),
    EntryState.PENDING: Mark("In the queue", "queued", "wait"),
    EntryState.TESTING: Mark("Testing", "testing", "test"),
    EntryState.TESTS_PASSED: Mark("Tests passed", "passed", "good"),
    EntryState.PENDING_FAILURE: Mark("Finding the cause", "cause", "odd"),
    EntryState.MERGED: Mark("Merged", "merged", "done"),
    EntryState.FAILED: Mark("Failed", "failed", "bad"),
    EntryState.CANCELLED: Mark("Removed", "removed", "wait"),
}
_ON_HOLD = Mark("On hold", "hold", "odd")
_AGAIN = Mark("Testing again", "testing", "test")

RUNNING = Mark("Running", "live", "good")
_STOPPED = Mark("Stopped", "hold", "bad")
_QUEUES: Mapping[QueueState, Mark] = {
    QueueState.RUNNING: RUNNING,
    QueueState.PAUSED: Mark("Paused", "hold", "odd"),
    QueueState.DRAINING: Mark("Draining", "drain", "wait"),
    QueueState.SWITCHING_MODES: Mark("Switching mode", "replay", "wait"),
}

_RUNS: Mapping[RunStatus, Mark] = {
    RunStatus.IN_PROGRESS: Mark("Testing", "testing", "test"),
    RunStatus.SUCCEEDED: Mark("Tests passed", "passed", "good"),
    RunStatus.FAILED: Mark("Failed", "failed", "bad"),
    RunStatus.CANCELLED: Mark("Stopped without a verdict", "removed", "wait"),
}
_FAILING = Mark("A check failed", "failed", "bad")
_BUILDING = Mark("Creating the test branch", "testing", "test")

_CHECKS: Mapping[CheckOutcome | None, tuple[str, str]] = {
    None: ("todo", "wait"),
    CheckOutcome.RUNNING: ("run", "test"),
    CheckOutcome.PASSED: ("ok", "good"),
    CheckOutcome.SKIPPED: ("skip", "wait"),
    CheckOutcome.FAILED: ("no", "bad"),
    CheckOutcome.INTERRUPTED: ("warn", "odd"),
    CheckOutcome.BLOCKED: ("hold", "odd"),
    CheckOutcome.UNKNOWN: ("warn", "odd"),
}
_EXCUSED = Mark("failed, excused", "shield", "shield")

_ENDED: Mapping[Ended, Mark] = {
    Ended.PASSED: Mark("passed", "ok", "good"),
    Ended.REUSED: Mark("passed before", "ok", "good"),
    Ended.EXCUSED: _EXCUSED,
    Ended.OPTIONAL: Mark("optional, did not run", "skip", "odd"),
    Ended.SKIPPED: Mark("skipped", "skip", "odd"),
    Ended.FAILED: Mark("failed", "no", "bad"),
    Ended.OPEN: Mark("no result", "todo", "wait"),
}

CONDITIONS: Mapping[Standing, Mark] = {
    Standing.MET: Mark("met", "ok", "good"),
    Standing.SKIPPED: Mark("skipped", "skip", "odd"),
    Standing.EXCUSED: Mark("excused", "shield", "shield"),
    Standing.UNKNOWN: Mark("not judged", "unknown", "odd"),
    Standing.OPEN: Mark("open", "todo", "wait"),
}

WHO: Mapping[WhoMustAct, str] = {
    WhoMustAct.NOBODY: "Headgate",
    WhoMustAct.AUTHOR: "the author",
    WhoMustAct.MAINTAINER: "a maintainer",
    WhoMustAct.OPERATOR: "the operator of Headgate",
}
"""The names of those who have to act."""


def of_entry(entry: Entry, *, is_failing: bool = False) -> Mark:
    """Return the mark of a submission; `is_failing`: a check of its run failed."""
    if is_failing:
        return _FAILING
    if entry.state is EntryState.PENDING and entry.held_by:
        return _ON_HOLD
    if entry.state is EntryState.TESTING and any(entry.restarts.values()):
        return _AGAIN
    return ENTRIES[entry.state]


def of_queue(queue: MergeQueue) -> Mark:
    """Return the mark of a queue; a hold that stops everything comes before the state."""
    stops = [hold for hold in queue.holds if hold.scope is HoldScope.BOTH]
    if any(hold.reason.record.is_own_stop for hold in stops):
        return _STOPPED
    if queue.state is not QueueState.RUNNING:
        return _QUEUES[queue.state]
    return _ON_HOLD if queue.holds else RUNNING


def of_run(run: Run) -> Mark:
    """Return the mark of a test run."""
    if run.status is RunStatus.IN_PROGRESS and run.phase is RunPhase.BUILDING:
        return _BUILDING
    if failing.failing_of(run) is not None:
        return _FAILING
    return _RUNS[run.status]


def of_status(status: RunStatus) -> Mark:
    """Return the mark of a test run of which only the status is known."""
    return _RUNS[status]


def of_check(outcome: CheckOutcome | None) -> Mark:
    """Return the mark of a report; None: there is none yet."""
    return Mark(checked_names.OUTCOMES[outcome], *_CHECKS[outcome])


def of_checked(one: CheckedName) -> Mark:
    """Return the mark of a required check by what counts for it."""
    return _ENDED[one.ended]


def of_standing(standing: verdict.Standing, run: Run) -> Mark:
    """Return the mark of a required status in a run."""
    if standing.required.name in run.excused:
        return _EXCUSED
    return of_check(CheckOutcome.FAILED if standing.is_revoked else standing.outcome)
