"""Letting runs go whose base holds no more (ENGINE.md 7)."""

from dataclasses import replace

from service.mergequeue import bases, conviction, leaving
from service.mergequeue.draft import Draft
from service.mergequeue.model import Detail
from service.mergequeue.reasons import Cause, Reason
from service.mergequeue.states import EntryState

_NOT_ITS_OWN = frozenset({Reason.AHEAD_FAILED, Reason.AHEAD_CANCELLED, Reason.AHEAD_OUT})
"""A failure on a base that lost one of these was the base's, not the entry's."""


def drop(draft: Draft) -> None:
    """Take the entries of broken bases back to PENDING, in the order of the line.

    Waits while the target is known to have moved without us knowing how.
    """
    if not draft.line_changed or conviction.is_view_stale(draft):
        return
    draft.line_changed = False
    broken: list[leaving.Back] = []
    for _, pr in draft.places.line:
        run = draft.runs.get(draft.entries[pr].run or "")
        why = bases.broken(draft, run) if run is not None else None
        if why is not None:
            broken.append(leaving.Back(pr, why.reason, Detail(prs=why.prs)))
    returning = [back for back in broken if _is_failed(draft, back)]
    for back in returning:
        run = draft.runs[draft.entries[back.pr].run or ""]
        if back.reason in _NOT_ITS_OWN:
            draft.put_run(replace(run, cause=Cause.AHEAD_FAULT))
    if returning:
        leaving.come_back(draft, returning)
    for back in broken:
        if back not in returning:
            leaving.restart(draft, draft.entries[back.pr], back.reason, back.detail)


def _is_failed(draft: Draft, back: leaving.Back) -> bool:
    return draft.entries[back.pr].state is EntryState.PENDING_FAILURE
