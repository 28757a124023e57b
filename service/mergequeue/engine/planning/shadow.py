"""A queue in shadow: when it would have landed an entry, and when that entry leaves.

Another queue merges. Nothing lands here (docs/design/shadow.md 1).
"""

from datetime import datetime, timedelta

from service.mergequeue.engine.model import Detail, Entry, ShadowTime
from service.mergequeue.engine.planning import landing
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import leaving
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState

KEPT = timedelta(hours=24)
"""The time that an entry which would have landed waits for the other queue to merge it."""


def review(draft: Draft) -> None:
    """Note what would have landed, and let those leave that have their verdict."""
    _note_time(draft)
    if not draft.queue.config.shadow:
        return
    _note(draft)
    for _, pr in list(draft.places.line):
        entry = draft.entries.get(pr)
        if entry is not None and entry.cancel is None and _is_over(draft, entry):
            detail = Detail(text="it would have landed", run=entry.verified_by)
            leaving.leave(draft, entry, EntryState.CANCELLED, Reason.DECIDED_IN_SHADOW, detail)


def leaves_at(entry: Entry) -> datetime | None:
    """Return when an entry that nobody merges leaves a queue in shadow."""
    return None if entry.would_land_at is None else entry.would_land_at + KEPT


def _note_time(draft: Draft) -> None:
    """Note since when the queue has been in shadow, or that it is no more.

    Which checks ran on what would have landed counts in shadow alone: a pull request may have
    changed its workflow (docs/design/skipped-checks.md 1).
    """
    is_shadow, known = draft.queue.config.shadow, draft.queue.shadow_time
    is_known = known is not None and known.until is None
    if is_shadow and not is_known:
        draft.put_queue(replace(draft.queue, shadow_time=ShadowTime(draft.now)))
        for entry in list(draft.entries.values()):
            if entry.would_land_at is not None:  # the verdict of an earlier time
                draft.put(replace(entry, would_land_at=None))
    elif known is not None and is_known and not is_shadow:
        history = draft.queue.check_history.without_since(known.since)
        ended = replace(known, until=draft.now)
        draft.put_queue(replace(draft.queue, shadow_time=ended, check_history=history))
        draft.judging |= draft.runs.keys()


def _note(draft: Draft) -> None:
    """Note the units that would have landed, first to last: each makes room for the next.

    Which checks ran in them counts for skips, as after a landing.
    """
    verified = (draft.entries[pr] for pr in draft.places.verified)
    for entry in sorted(verified, key=lambda one: one.rank or 0):
        run = draft.runs[entry.verified_by or ""]
        if entry.would_land_at is None and landing.would_land(draft, run):
            landing.note_checks(draft, run)
            for own in draft.own(run):
                draft.put(replace(draft.entries[own.pr], would_land_at=draft.now))


def _is_over(draft: Draft, entry: Entry) -> bool:
    """Return whether it has waited long enough, or is to be tested again after its verdict."""
    ends = leaves_at(entry)
    return ends is not None and (ends <= draft.now or entry.state is EntryState.PENDING)
