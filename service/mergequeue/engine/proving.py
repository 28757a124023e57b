"""What becomes of entries that turn out to be proven: they land as they are, or are tested again.

ENGINE.md 10.5: as they are where that disturbs nobody.
"""

from collections.abc import Sequence
from dataclasses import replace

from service.mergequeue.engine import bases, leaving, line
from service.mergequeue.engine.draft import Draft
from service.mergequeue.engine.model import Detail, Entry, Member, Run
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState


def prove(
    draft: Draft, run: Run, proven: Sequence[Member], reason: Reason, *, is_sure: bool = False
) -> None:
    """Proven entries land as they are, unless that would disturb others (ENGINE.md 10.5).

    With `is_sure` whatever is beneath them must have passed or landed; a run that nobody has
    judged yet stands on what is expected ahead of it.
    """
    entries = [draft.entries[member.pr] for member in proven]
    disturbed = _disturbed(draft, run, entries, is_sure=is_sure)
    if disturbed is not None:
        _prove_behind(draft, run, entries, disturbed, late=reason is Reason.LATE_SUCCESS)
        return
    _go_first(draft, entries)
    owners = [draft.entries[entry.pr] for entry in entries]
    for entry in owners:
        mine = replace(
            entry,
            run=run.id,
            verified_by=run.id,
            bisection=None,
            batch=run.number,
            fresh=False,
        )
        draft.move(mine, EntryState.TESTS_PASSED, reason, Detail(run=run.id))


def _prove_behind(
    draft: Draft, run: Run, entries: Sequence[Entry], others: tuple[int, ...], *, late: bool
) -> None:
    """Proven entries are tested again, where that disturbs nobody."""
    word = Reason.AHEAD_CHANGED if late else Reason.BISECTION_PASSED
    text = "its checks passed; others went ahead meanwhile, so it is tested behind them"
    detail = Detail(text=text, run=run.id, prs=others)
    for entry in entries:
        draft.put(replace(entry, bisection=None))
    leaving.come_back(draft, [leaving.Back(entry.pr, word, detail) for entry in entries])
    if run.id in draft.runs and not draft.own(run):
        draft.retire(run, word)


def _disturbed(
    draft: Draft, run: Run, entries: Sequence[Entry], *, is_sure: bool
) -> tuple[int, ...] | None:
    """Who runs or has passed without these entries; None when they may land as they are."""
    made = bases.progress(draft, run)
    proven = {entry.pr for entry in entries}
    beneath = [member for member in (*run.base, *run.entries) if member.pr not in proven]
    numbers = {member.pr for member in beneath}
    behind = []
    for node in bases.graph(draft).standing():
        first = draft.entries[node.members[0].pr]
        if first.state is EntryState.PENDING or first.pr in numbers:
            continue
        members = [draft.entries[member.pr] for member in node.members]
        if any(bases.meets(draft, one, entry) for one in members for entry in entries):
            behind += [one.pr for one in members]
    if behind or made is None or not bases.is_predicted(draft, run, made):
        return tuple(behind)
    left = tuple(one for one in beneath if one.pr not in made.landed)
    if is_sure and not all(bases.has_passed(draft, one) for one in left):
        return ()
    counted_on = tuple(
        one
        for one in bases.ahead(draft, entries)
        if draft.entries[one.pr].state is not EntryState.PENDING
    )
    return None if left == counted_on else ()


def _go_first(draft: Draft, entries: Sequence[Entry]) -> None:
    """Rank them before every pending entry that they meet."""
    rank = entries[0].rank or 0
    for node in bases.graph(draft).standing():
        if node.rank > rank:
            return
        other = draft.entries[node.members[0].pr]
        if other.state is EntryState.PENDING and any(
            bases.meets(draft, other, entry) for entry in entries
        ):
            line.put_before(draft, other, entries)
            return
