"""Letting runs go whose base holds no more (docs/design/testing.md 2)."""

from collections.abc import Iterable

from service.mergequeue.engine.model import Detail, Run
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
    if not (draft.line_changed or draft.doubted) or holds.is_view_stale(draft.queue):
        return
    doubted = _standing(draft, None if draft.line_changed else draft.doubted)
    draft.line_changed = False
    draft.doubted.clear()
    backs: list[leaving.Back] = []
    for run in doubted:
        why = bases.broken(draft, run)
        if why is None:
            continue
        if run.status is RunStatus.FAILED and why.reason in _NOT_ITS_OWN:
            draft.put_run(replace(run, cause=Cause.AHEAD_FAULT))
        detail = Detail(prs=why.prs)
        backs += [leaving.Back(entry.pr, why.reason, detail) for entry in draft.own(run)]
    if backs:
        leaving.send_back(draft, backs)


def _standing(draft: Draft, only: Iterable[str] | None) -> list[Run]:
    """The runs of entries in the line that no search examines, in its order; `only` some of them.

    Not the one that is landing now: its outcome is known before anything else is.
    """
    found: dict[str, None] = {}
    line: Iterable[tuple[int, int]] = draft.places.line
    if only is not None:
        numbers = [pr for run_id in only for pr in draft.places.in_run.get(run_id, ())]
        ranks = [(draft.entries[pr].rank, pr) for pr in numbers]
        line = sorted([(rank, pr) for rank, pr in ranks if rank is not None])
    for _, pr in line:
        entry = draft.entries[pr]
        is_free = entry.bisection is None and not leaving.is_landing(draft, entry)
        if entry.run is not None and is_free:
            found[entry.run] = None
    return [run for run in map(draft.runs.__getitem__, found) if run.kind is not RunKind.SCREEN]
