"""Release runs whose base no longer holds (docs/design/testing.md 2)."""

from bisect import bisect_left

from service.mergequeue.engine.model import Detail, Run
from service.mergequeue.engine.planning import confirming_runs
from service.mergequeue.engine.reasons import Cause, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases, holds, leaving
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import RunKind, RunStatus

_NOT_ITS_OWN = frozenset({Reason.AHEAD_FAILED, Reason.AHEAD_CANCELLED, Reason.AHEAD_OUT})
"""A failure on a base that lost one of these was the base's, not the entry's."""


def drop(draft: Draft) -> None:
    """Take the entries of broken bases back to PENDING, in the order of the line.

    Waits while the target is known to have moved without us knowing how.
    """
    if (draft.changed_from is None and not draft.doubted) or holds.is_view_stale(draft.queue):
        return
    doubted = _doubted(draft)
    draft.changed_from = None
    draft.doubted.clear()
    backs: list[leaving.Back] = []
    restarting: list[Run] = []
    for run in doubted:
        why = bases.broken(draft, run)
        if why is None:
            continue
        if run.status is RunStatus.FAILED and why.reason in _NOT_ITS_OWN:
            draft.put_run(replace(run, cause=Cause.AHEAD_FAULT))
        restarting.append(run)
        detail = Detail(prs=why.prs)
        backs += [leaving.Back(entry.pr, why.reason, detail) for entry in draft.own(run)]
    if backs:
        confirming_runs.keep(draft, restarting)
        leaving.send_back(draft, backs)


def _doubted(draft: Draft) -> list[Run]:
    """The doubted runs of entries in the line that no search examines, in its order.

    Not the one that is landing now: its outcome is known before anything else is.
    """
    line, first = draft.places.line, draft.changed_from
    changed = line[bisect_left(line, (first,)) :] if first is not None else []
    doubted = draft.doubted.union([draft.entries[pr].run or "" for _, pr in changed])
    numbers = [pr for run_id in doubted for pr in draft.places.in_run.get(run_id, ())]
    found: dict[str, None] = {}
    for entry in sorted(map(draft.entries.__getitem__, numbers), key=lambda one: one.rank or 0):
        is_free = entry.bisection is None and not leaving.is_landing(draft, entry)
        if entry.run is not None and entry.rank is not None and is_free:
            found[entry.run] = None
    return [run for run in map(draft.runs.__getitem__, found) if run.kind is not RunKind.SCREEN]
