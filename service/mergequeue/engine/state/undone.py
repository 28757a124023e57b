"""Merged work that an entry would take back, and work that has landed already.

Rules: docs/design/undone-work.md 6. The engine only compares what was judged outside.
"""

from service.landed_work import LandedWork, WorkJudged
from service.mergequeue.engine.config import QueueConfig, UndoneWork
from service.mergequeue.engine.model import Detail, Entry, Run
from service.mergequeue.engine.outputs import Tell
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import leaving
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState

PATHS_TOLD_MAX = 20


def undeclared(entry: Entry) -> tuple[LandedWork, ...]:
    """Return the landings that its merge would take back although nothing says so, newest first."""
    if entry.work is None or not entry.work.undone:
        return ()
    return tuple(one for one in entry.work.undone if not _is_declared(entry, one))


def _is_declared(entry: Entry, one: LandedWork) -> bool:
    if one.number is not None and f"#{one.number}" in entry.undoes:
        return True
    if any(sha.startswith(word) for word in entry.undoes for sha in one.commits):
        return True
    return entry.facts.declared.names(one.commits, one.number, one.title)


def waits(draft: Draft, entry: Entry) -> bool:
    """Return whether it waits because it would take back what has landed."""
    if draft.queue.config.undone_work is not UndoneWork.HOLD:
        return False
    # What is yet to land keeps it out otherwise: see `ahead_of`. Numbers alone do not say so: the
    # message of a landing may name any pull request.
    return any(not one.is_ahead or one.number not in draft.entries for one in undeclared(entry))


def is_superseded(draft: Draft, entry: Entry) -> bool:
    """Return whether its work has landed already, so that there is nothing to test or to land.

    Not if it is meant to land all the same: by the label, or because others in the queue wait
    for its merge.
    """
    is_on = draft.queue.config.undone_work is UndoneWork.HOLD
    if not is_on or entry.work is None or not entry.work.has_landed:
        return False
    waiting = (one.facts for one in draft.entries.values())
    is_needed = any(entry.pr in (*facts.below, *facts.depends_on) for facts in waiting)
    return not (entry.facts.declared.covers_all or is_needed)


def is_current(draft: Draft, head: str, work: WorkJudged | None) -> bool:
    """Return whether a judgement is of this head on the present tip."""
    tip = draft.queue.tip
    return work is not None and work.head == head and tip is not None and work.tip == tip.sha


def supersede(draft: Draft, entry: Entry) -> None:
    """End a submission whose work has landed, with the landing."""
    by = None if entry.work is None else entry.work.landed_by
    detail = Detail(text=Reason.SUPERSEDED.record.evidence)
    if by is not None:
        numbers = () if by.number is None else (by.number,)
        detail = Detail(text=by.title, prs=numbers, sha=by.commit)
    leaving.leave(draft, entry, EntryState.CANCELLED, Reason.SUPERSEDED, detail)


def names_of(entry: Entry) -> str:
    """Return what it would take back, as a command names it: numbers, or commits without one."""
    works = undeclared(entry)
    names = (one.commit if one.number is None else f"#{one.number}" for one in works)
    return " ".join(dict.fromkeys(names))


def detail_of(entry: Entry) -> Detail:
    """Return the evidence of what it would take back: landings, paths, the newest commit."""
    works = undeclared(entry)
    numbers = tuple(dict.fromkeys(one.number for one in works if one.number is not None))
    paths = tuple(dict.fromkeys(path for one in works for path in one.paths))
    sha = works[0].commit if works else None
    return Detail(prs=numbers, paths=paths[:PATHS_TOLD_MAX], sha=sha)


def ahead_of(draft: Draft, run: Run, entry: Entry) -> tuple[int, ...]:
    """Return those ahead of it in its run, and still to land, whose work it would take back."""
    numbers = _numbers_ahead(entry)
    members = (draft.entry_of(member) for member in run.members if member.pr in numbers)
    return tuple(one.pr for one in members if one is not None and one.pr != entry.pr)


def is_freed(draft: Draft, entry: Entry) -> bool:
    """Return whether those ahead that keep it out may be taken back by now.

    It declares that it does so, or the setting has changed.
    """
    if entry.reason is not Reason.UNDOES_AHEAD:
        return False
    is_held = draft.queue.config.undone_work is UndoneWork.HOLD
    return not (is_held and _numbers_ahead(entry) & set(entry.held_by))


def _numbers_ahead(entry: Entry) -> set[int | None]:
    return {one.number for one in undeclared(entry) if one.is_ahead}


def may_be_judged(config: QueueConfig, entry: Entry) -> bool:
    """Return whether nobody knows what it takes back, and its test branch may show that."""
    return config.undone_work is UndoneWork.HOLD and entry.work is not None and entry.work.later


def newer(entry: Entry, work: WorkJudged) -> WorkJudged | None:
    """Return what counts after one more judgement; one that failed frees no one that was held."""
    is_held = entry.work is not None and bool(entry.work.undone)
    return entry.work if work.trouble and is_held else work


def tell_if_changed(draft: Draft, before: Entry) -> None:
    """Tell the author if it waits, but for other landings than before."""
    entry = draft.entries[before.pr]
    left = undeclared(entry)
    is_held = Reason.UNDOES_LANDED_WORK in entry.unmet
    if is_held and left and left != undeclared(before):
        draft.request(Tell(entry.pr, entry.id, entry.state, entry.reason))


def freed(draft: Draft, entry: Entry) -> Entry:
    """Return an entry that nothing ahead keeps out any more, without what counts no more.

    If what it would take back has landed, it still would; else nobody knows.
    """
    if entry.reason is not Reason.UNDOES_AHEAD or is_freed(draft, entry):
        return entry
    ended = draft.finished_entries.values()
    merged = {one.pr for one in ended if one.state is EntryState.MERGED}
    return entry if merged & set(entry.held_by) else replace(entry, work=None)
