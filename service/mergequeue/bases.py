"""What a run stands on, and whether that is still true (ENGINE.md 7).

A base is the target's tip and the expected entries ahead. In SINGLE mode any two entries
meet, so the base of an entry is everything expected ahead of it.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from service.mergequeue.draft import Draft
from service.mergequeue.model import Entry, LandedStep, Member, Run
from service.mergequeue.places import is_expected
from service.mergequeue.reasons import Reason
from service.mergequeue.states import EntryState, RunKind, RunStatus
from service.vocabulary import Sha

FOREIGN = 0
"""In the place of a landed pull request: others moved the target, no earlier base holds."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Why a base holds no more: the restart code and who caused it."""

    reason: Reason
    prs: tuple[int, ...] = ()


def ahead(draft: Draft, entry: Entry) -> tuple[Member, ...]:
    """The base that `entry` has by its place now: expected entries ahead, in order.

    An entry without a place stands behind the whole line.
    """
    ranks, members = _chain(draft)
    if entry.rank is None:
        return members
    return members[: bisect_left(ranks, entry.rank)]


def expected(draft: Draft) -> Iterator[Entry]:
    """The entries that others count on, in line order."""
    for member in _chain(draft)[1]:
        yield draft.entries[member.pr]


def member_of(draft: Draft, entry: Entry) -> Member:
    """The entry as runs hold it: one object, so that bases are compared by identity."""
    known = draft.members.get(entry.id)
    if known is None:
        known = draft.members[entry.id] = _member(draft, entry)
    return known


def broken(draft: Draft, run: Run) -> Broken | None:
    """Why the run's base does not hold; None while it does.

    ENGINE.md 7: since its tip was taken the target received only landings of its own base, the
    rest of it equals what is ahead now, and the tip's tree is the predicted one.
    """
    count = landed_count(draft, run)
    now_ahead = ahead(draft, draft.tested_by(run))
    if count is not None and run.base[count:] == now_ahead and _is_predicted(draft, run, count):
        return None
    return _why(draft, run, count, now_ahead)


def is_sure(draft: Draft, run: Run) -> bool:
    """Whether everything unlanded of a base that holds has passed its own tests."""
    count = landed_count(draft, run) or 0
    return all(
        (entry := draft.entry_of(member)) is not None and entry.state is EntryState.TESTS_PASSED
        for member in run.base[count:]
    )


def landed_count(draft: Draft, run: Run) -> int | None:
    """How many of its base and its entries have landed since its tip; None: others moved it.

    A failed run and its confirmation are evidence: those who land behind an entry that is out
    do not spoil it (ENGINE.md 10.6).
    """
    steps = _since(draft, run.base_tip.sha)
    if steps is None:
        return None
    members = (*run.base, *run.entries)
    count = 0
    for step in steps:
        if count < len(members) and step.pr == members[count].pr:
            count += 1
        elif (
            step.pr is not None
            and step.before != step.sha
            and not (_is_evidence(run) and step.pr != FOREIGN)
        ):
            return None
    return count


def _chain(draft: Draft) -> tuple[list[int], tuple[Member, ...]]:
    """Ranks and members of all expected entries in line order."""
    if draft.chain is None:
        ranks: list[int] = []
        members: list[Member] = []
        for rank, pr in draft.places.line:
            entry = draft.entries[pr]
            if is_expected(entry):
                ranks.append(rank)
                members.append(member_of(draft, entry))
        draft.chain = (ranks, tuple(members))
    return draft.chain


def _member(draft: Draft, entry: Entry) -> Member:
    run = draft.runs.get(entry.run or "")
    own = run.entries if run is not None else ()
    new = Member(entry.pr, entry.id, entry.head)
    return next((member for member in own if member == new), new)


def _since(draft: Draft, sha: Sha) -> tuple[LandedStep, ...] | None:
    """Moves of the target after it last came to `sha`; None when `sha` is no commit we know.

    It can come there twice: a person may accept that it was set back.
    """
    landed = draft.queue.landed
    for index in range(len(landed), 0, -1):
        step = landed[index - 1]
        if step.sha == sha and step.before != sha:
            return landed[index:]
    for index, step in enumerate(landed):
        if step.before == sha:
            return landed[index:]
    tip = draft.queue.tip
    return () if tip is not None and tip.sha == sha else None


def _is_evidence(run: Run) -> bool:
    is_confirming = run.kind is RunKind.CONFIRMATION and run.status is RunStatus.IN_PROGRESS
    return run.status is RunStatus.FAILED or is_confirming


def _is_predicted(draft: Draft, run: Run, count: int) -> bool:
    if _is_evidence(run) or not run.steps:
        return True
    tree = run.steps[count - 1].tree if count else run.base_tip.tree
    tip = draft.queue.tip
    return tip is not None and tip.tree == tree


def _why(draft: Draft, run: Run, count: int | None, now_ahead: tuple[Member, ...]) -> Broken:
    """The restart code of a broken base: the first that applies (ENGINE.md 7)."""
    present = {member.entry for member in now_ahead}
    missing = [member for member in run.base[count or 0 :] if member.entry not in present]
    gone = {member: draft.finished_entries.get(member.entry) for member in missing}

    def ended(state: EntryState) -> tuple[int, ...]:
        return tuple(m.pr for m, final in gone.items() if final and final.state is state)

    by_hand = tuple(
        member.pr
        for member, final in gone.items()
        if final is not None and final.reason is Reason.MERGED_BY_HAND
    )
    if by_hand:
        return Broken(Reason.AHEAD_MERGED_BY_HAND, by_hand)
    if count is None or not _is_predicted(draft, run, count):
        return Broken(Reason.TARGET_MOVED)
    for state, reason in (
        (EntryState.FAILED, Reason.AHEAD_FAILED),
        (EntryState.CANCELLED, Reason.AHEAD_CANCELLED),
    ):
        if prs := ended(state):
            return Broken(reason, prs)
    out = tuple(
        member.pr
        for member in missing
        if (entry := draft.entry_of(member)) is not None and not is_expected(entry)
    )
    if out:
        return Broken(Reason.AHEAD_OUT, out)
    return _newcomers(draft, run, now_ahead)


def _newcomers(draft: Draft, run: Run, now_ahead: tuple[Member, ...]) -> Broken:
    built_on = {member.entry for member in run.base}
    extra = tuple(member.pr for member in now_ahead if member.entry not in built_on)
    urgent = tuple(pr for pr in extra if draft.entries[pr].priority == 0)
    if urgent:
        return Broken(Reason.INTERRUPTED_BY_URGENT, urgent)
    if extra:
        return Broken(Reason.AHEAD_RETURNED, extra)
    return Broken(Reason.AHEAD_CHANGED)
