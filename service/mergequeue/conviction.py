"""Deciding a failure: who is blamed, and the runs that must agree before (ENGINE.md 9, 10.3).

A failed entry is judged only when everything below it has passed, so that it is the only
unproven member of the tree that failed.
"""

from dataclasses import replace

from service.mergequeue import bases, holds, leaving, verdict
from service.mergequeue.config import ConfirmFailures
from service.mergequeue.draft import Draft
from service.mergequeue.model import Detail, Entry, Named, Run
from service.mergequeue.reasons import Cause, Reason
from service.mergequeue.states import EntryState, RunStatus
from service.vocabulary import CheckOutcome

RUNS_MAX = 3
"""Failed runs of one tree of which the last decides alone."""


def decide(draft: Draft) -> None:
    """Blame the entries whose failure is proven, in the order of the line."""
    if is_view_stale(draft):
        return
    for entry in _failing(draft):
        runs = _sure_runs(draft, entry)
        if runs and _is_proven(entry, runs):
            _convict(draft, entry, runs)


def wanting(draft: Draft) -> tuple[Entry, ...]:
    """Failed entries that need one more run of their tree before they can be judged."""
    if is_view_stale(draft):
        return ()
    return tuple(
        entry
        for entry in _failing(draft)
        if (runs := _sure_runs(draft, entry)) and not _is_proven(entry, runs)
    )


def is_view_stale(draft: Draft) -> bool:
    """Whether the target is known to have moved, or to be wrong, without us knowing how yet."""
    return draft.queue.kept_move is not None or holds.is_waiting_for_a_look(draft.queue)


def _failing(draft: Draft) -> list[Entry]:
    entries = [draft.entries[pr] for pr in draft.places.failing]
    return sorted(entries, key=lambda entry: entry.rank or 0)


def _sure_runs(draft: Draft, entry: Entry) -> list[Run]:
    """The failed runs of its tree, oldest first; none while it may not be judged."""
    runs = sorted(draft.runs_of(entry), key=lambda run: run.number)
    if not runs or any(run.status is not RunStatus.FAILED for run in runs):
        return []
    first = runs[0]
    if bases.broken(draft, first) is not None or not bases.is_sure(draft, first):
        return []
    return runs


def _is_proven(entry: Entry, runs: list[Run]) -> bool:
    """Whether these failed runs of one tree are enough (ENGINE.md 10.3)."""
    first, *others = runs
    if first.config.confirm_failures != ConfirmFailures.ALWAYS or _fails_alone(entry, first):
        return True
    if not others:
        return False
    marks = [_marks(run) for run in runs]
    shared = any(mark & other for index, mark in enumerate(marks) for other in marks[:index])
    return shared or len(runs) >= RUNS_MAX


def _fails_alone(entry: Entry, run: Run) -> bool:
    return run.evidence is not None and entry.pr in run.evidence.own_head


def _marks(run: Run) -> set[str]:
    """What failed in a run; a timeout counts as a status of its own that all timeouts share."""
    if run.cause is Cause.TIMEOUT:
        return {Cause.TIMEOUT.value}
    return {check.name for check in _failed_checks(run)}


def _failed_checks(run: Run) -> tuple[Named, ...]:
    return tuple(
        one.named
        for one in verdict.standings_of(run)
        if one.outcome is CheckOutcome.FAILED
        or (run.cause is Cause.TIMEOUT and one.outcome is not CheckOutcome.PASSED)
    )


def _convict(draft: Draft, entry: Entry, runs: list[Run]) -> None:
    last = runs[-1]
    timed_out = all(run.cause is Cause.TIMEOUT for run in runs)
    reason = Reason.RUN_TIMED_OUT if timed_out else Reason.REQUIRED_STATUS_FAILED
    for run in runs:
        if run.cause is None:
            draft.put_run(replace(run, cause=Cause.PR_FAULT))
    checks = _failed_checks(last)
    detail = Detail(run=last.id, checks=checks, prs=tuple(member.pr for member in last.base))
    leaving.leave(draft, entry, EntryState.FAILED, reason, detail)
