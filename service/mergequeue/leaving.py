"""Ways out of a run: back to the start in place, back from being out, aside, or for good.

Each lets the entry's runs go. Who must leave and why is decided elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.mergequeue import line
from service.mergequeue.draft import Draft
from service.mergequeue.model import NOTHING, Detail, Entry
from service.mergequeue.reasons import Reason
from service.mergequeue.states import EntryState

RESTARTS = frozenset(
    {Reason.RESTARTED_BY_USER, Reason.RESTARTED_BY_API, Reason.REQUIRED_STATUS_ADDED}
)
"""Reasons for new tests; kept during a landing like a leaving, and weaker than one."""


@dataclass(frozen=True, slots=True)
class Back:
    """One entry on its way back to PENDING."""

    pr: int
    reason: Reason
    detail: Detail = NOTHING


def restart(draft: Draft, entry: Entry, reason: Reason, detail: Detail = NOTHING) -> Entry:
    """Take the entry back to PENDING in its place; its runs go. Followers are not touched."""
    for run in draft.runs_of(entry):
        draft.retire(run, reason)
    count = entry.restarts.get(reason.value, 0) + 1
    clean = replace(
        entry,
        run=None,
        verified_by=None,
        bisection=None,
        restarts={**entry.restarts, reason.value: count},
    )
    return draft.move(clean, EntryState.PENDING, reason, detail)


def begin_anew(draft: Draft, entry: Entry, reason: Reason, detail: Detail = NOTHING) -> None:
    """Restart the entry; while its landing is in flight the wish is kept until the result."""
    if not is_landing(draft, entry):
        restart(draft, entry, reason, detail)
    elif entry.cancel is None:
        draft.put(replace(entry, cancel=reason, cancel_detail=detail))


def come_back(draft: Draft, returns: Sequence[Back]) -> None:
    """Let entries that were out count again, in their order: where that restarts nobody."""
    anchor = line.last_undisturbed(draft)
    for back in returns:
        entry = draft.entries[back.pr]
        if entry.state is EntryState.PENDING:
            draft.move(replace(entry, held_by=()), EntryState.PENDING, back.reason, back.detail)
        else:
            restart(draft, entry, back.reason, back.detail)
    line.rejoin(draft, anchor, [back.pr for back in returns])


def set_aside(draft: Draft, entry: Entry, reason: Reason, detail: Detail = NOTHING) -> None:
    """Take the entry out of the line until it is ready again; `seq` is kept, the rank is not."""
    for run in draft.runs_of(entry):
        draft.retire(run, reason)
    bare = replace(
        entry,
        run=None,
        verified_by=None,
        bisection=None,
        rank=None,
        held_by=(),
        unready_since=None,
        build_after=None,
    )
    draft.move(bare, EntryState.NOT_READY, reason, detail)


def leave(
    draft: Draft, entry: Entry, state: EntryState, reason: Reason, detail: Detail = NOTHING
) -> None:
    """End the submission. While its landing is in flight the wish is kept until the result."""
    if is_landing(draft, entry):
        if entry.cancel is None or entry.cancel in RESTARTS:
            draft.put(replace(entry, cancel=reason, cancel_detail=detail))
        return
    for run in draft.runs_of(entry):
        draft.retire(run, reason)
    draft.move(entry, state, reason, detail)


def state_after(reason: Reason) -> EntryState:
    """The final state that a kept leaving leads to."""
    return EntryState.MERGED if reason is Reason.MERGED_BY_HAND else EntryState.CANCELLED


def is_landing(draft: Draft, entry: Entry) -> bool:
    """Whether a landing of this entry is in flight."""
    landing = draft.queue.landing
    return landing is not None and landing.run == entry.verified_by
