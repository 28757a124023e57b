"""Ways out of a run: back to the start in place, back from being out, aside, or for good.

A run tests its whole batch: when one entry leaves, the others are PENDING again. Which entry must
leave, and why, is decided elsewhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from service.mergequeue.engine.model import NOTHING, Bisection, Detail, Entry, Run
from service.mergequeue.engine.outputs import BisectionClosed
from service.mergequeue.engine.reasons import ASIDE, BREAKER_HOLDS, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases, line
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.places import is_expected
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus

RESTARTS = frozenset(
    {Reason.RESTARTED_BY_USER, Reason.RESTARTED_BY_API, Reason.REQUIRED_STATUS_ADDED}
)
"""Reasons for new tests; kept during a landing like a leaving, and weaker than one."""

CI_WAITS = frozenset(one for one in ASIDE if one.record.aside and one.record.aside.is_for_ci)
"""Reasons for which an entry waits beside the line until its retry time."""

CI_WAIT_FIRST = timedelta(minutes=5)
"""The first such wait; each further one is twice as long."""

CI_WAIT_MAX = timedelta(hours=1)
"""The longest such wait."""

_TO_THOSE_BEHIND = {
    EntryState.FAILED: Reason.AHEAD_FAILED,
    EntryState.CANCELLED: Reason.AHEAD_CANCELLED,
    EntryState.MERGED: Reason.AHEAD_MERGED_BY_HAND,
    EntryState.NOT_READY: Reason.AHEAD_OUT,
}


@dataclass(frozen=True, slots=True)
class Back:
    """One entry on its way back to PENDING."""

    pr: int
    reason: Reason
    detail: Detail = NOTHING


def restart(draft: Draft, run: Run, reason: Reason, detail: Detail = NOTHING) -> None:
    """Take all entries of a run back to PENDING and retire the run. Followers are not touched.

    Those that others count on keep their place, the rest comes back from being out.
    """
    send_back(draft, [Back(entry.pr, reason, detail) for entry in draft.own(run)])


def send_back(draft: Draft, backs: Sequence[Back]) -> None:
    """Send these entries back to PENDING, each in the way that fits its state."""
    out = [back for back in backs if not is_expected(draft.entries[back.pr])]
    expected = [back for back in backs if is_expected(draft.entries[back.pr])]
    if out:
        come_back(draft, out)
    by_run: dict[str | None, list[Back]] = {}
    for back in expected:
        by_run.setdefault(draft.entries[back.pr].run, []).append(back)
    for group in by_run.values():
        _let_go(draft, [draft.entries[back.pr] for back in group], [one.reason for one in group])
        for back in group:
            _pending(draft, back)


def begin_anew(draft: Draft, run: Run, reason: Reason, detail: Detail = NOTHING) -> None:
    """Restart the run; while its landing is in flight the request is kept until the result."""
    own = draft.own(run)
    if not any(is_landing(draft, entry) for entry in own):
        restart(draft, run, reason, detail)
        return
    for entry in own:
        if entry.cancel is None:
            draft.put(replace(entry, cancel=reason, cancel_detail=detail))


def come_back(draft: Draft, returns: Sequence[Back]) -> None:
    """Return entries that were out to the line, in order, where that restarts no run."""
    entries = [draft.entries[back.pr] for back in returns]
    anchor = line.last_undisturbed(draft, entries)
    _let_go(draft, entries, [back.reason for back in returns])
    for back in returns:
        _pending(draft, back)
    line.rejoin(draft, anchor, [back.pr for back in returns])


def keep_places(draft: Draft, returns: Sequence[Back]) -> None:
    """Return entries that were out to their own places, whatever restarts behind them."""
    entries = [draft.entries[back.pr] for back in returns]
    _let_go(draft, entries, [back.reason for back in returns])
    for back in returns:
        _pending(draft, back)


def abandon(draft: Draft, bisection: Bisection, reason: Reason, detail: Detail = NOTHING) -> None:
    """Give up a bisection: no entry is judged, and undecided ones return."""
    undecided = close(draft, bisection, None, reason)
    come_back(draft, [Back(entry.pr, reason, detail) for entry in undecided])


def close(
    draft: Draft, bisection: Bisection, culprit: int | None, why: Reason
) -> tuple[Entry, ...]:
    """End a search and let its runs go; the entries it has not decided, still out, in order."""
    draft.drop_bisection(bisection)
    if len(bisection.entries) > 1:
        draft.record(BisectionClosed(bisection.id, bisection.run, culprit, why))
    undecided = []
    for member in bisection.entries:
        entry = draft.entry_of(member)
        if entry is not None and entry.bisection == bisection.id:
            undecided.append(entry)
            draft.put(replace(entry, bisection=None))
    for run in list(draft.runs.values()):
        is_probe = run.bisection == bisection.id and not draft.own(run)
        if is_probe or (run.id == bisection.run and run.status is RunStatus.FAILED):
            draft.retire(run, why)
    return tuple(draft.entries[entry.pr] for entry in undecided)


def hold_out(
    draft: Draft, entry: Entry, detail: Detail, reason: Reason = Reason.CONFLICT_AHEAD
) -> None:
    """Take an entry out for as long as those in `detail.prs` are there: it conflicts with them."""
    _let_go(draft, [entry], [reason])
    held = _bare(entry, _one_more(entry, reason), held_by=detail.prs)
    draft.move(held, EntryState.PENDING, reason, detail)


def set_aside(draft: Draft, entry: Entry, reason: Reason, detail: Detail = NOTHING) -> None:
    """Take the entry out of the line until it is ready again; `seq` is kept, the rank is not."""
    entry = _part(draft, entry, EntryState.NOT_READY, reason)
    _let_go(draft, [entry], [reason])
    bare = _bare(entry, entry.restarts)
    bare = replace(bare, rank=None, unready_since=None, build_after=None)
    draft.move(bare, EntryState.NOT_READY, reason, detail)


def wait_for_ci(
    draft: Draft, entry: Entry, reason: Reason, detail: Detail = NOTHING, held: int = 0
) -> None:
    """Set the entry aside because CI gave no result; it tries again by itself, later each time.

    It leaves when its waits add up to `notReadyTimeoutHours`. Under a breaker hold CI itself may be
    broken, so no entry leaves and the time does not count. `held` is how often it waited under this
    hold already.
    """
    hours = draft.queue.config.not_ready_timeout_hours
    is_outage = any(hold.reason in BREAKER_HOLDS for hold in draft.queue.holds)
    if hours and not is_outage and _waited_for_ci(entry) >= timedelta(hours=hours):
        leave(draft, entry, EntryState.CANCELLED, reason, detail)
        return
    times = entry.restarts.get(reason.value, 0)
    counted = times if is_outage else times + 1
    restarts = {**entry.restarts, reason.value: counted}
    aside = replace(entry, barred=(reason,), retries=0, restarts=restarts)
    set_aside(draft, aside, reason, detail)
    until = draft.now + _wait_after(times + held)
    draft.put(replace(draft.entries[entry.pr], build_after=until))


def _wait_after(times: int) -> timedelta:
    doubled: timedelta = CI_WAIT_FIRST * 2 ** min(times, 10)
    return min(doubled, CI_WAIT_MAX)


def _waited_for_ci(entry: Entry) -> timedelta:
    """Return the sum of the waits of this submission."""
    waited = timedelta()
    for reason in CI_WAITS:
        for times in range(entry.restarts.get(reason.value, 0)):
            waited += _wait_after(times)
    return waited


def try_again(draft: Draft, entries: Iterable[Entry]) -> None:
    """Let entries that were set aside, for their tests or by a refusal, be tried again."""
    for entry in list(entries):
        barred = tuple(reason for reason in entry.barred if reason not in ASIDE)
        if barred != entry.barred:
            draft.put(replace(draft.entries[entry.pr], barred=barred, build_after=None))
        if entry.refusal is not None:
            draft.put(replace(draft.entries[entry.pr], refusal=None))


def try_unproved_again(draft: Draft) -> None:
    """Let entries that were set aside because checks were skipped be tested again."""
    waiting = (entry for entry in draft.entries.values() if Reason.NO_EVIDENCE in entry.barred)
    try_again(draft, waiting)


def leave(
    draft: Draft, entry: Entry, state: EntryState, reason: Reason, detail: Detail = NOTHING
) -> None:
    """End the submission; while its landing is in flight the request is kept until the result."""
    if is_landing(draft, entry):
        if entry.cancel is None or entry.cancel in RESTARTS:
            draft.put(replace(entry, cancel=reason, cancel_detail=detail))
        return
    entry = _part(draft, entry, state, reason)
    _let_go(draft, [entry], [reason])
    draft.move(entry, state, reason, detail)


def leave_alone(
    draft: Draft, entry: Entry, state: EntryState, reason: Reason, detail: Detail
) -> None:
    """End the submission; what becomes of the rest of its batch is the caller's to decide."""
    _let_go(draft, [entry], [reason])
    draft.move(entry, state, reason, detail)


def state_after(reason: Reason) -> EntryState:
    """The final state that a kept leaving leads to."""
    return EntryState.MERGED if reason in bases.SEEN_MERGED else EntryState.CANCELLED


def is_landing(draft: Draft, entry: Entry) -> bool:
    """Return whether a landing of this entry, or of its unit, is in flight."""
    landing = draft.queue.landing
    return landing is not None and landing.run == entry.verified_by


def _part(draft: Draft, entry: Entry, state: EntryState, reason: Reason) -> Entry:
    """Send those back that share a search or a run with an entry that leaves; it, with changes."""
    changes = entry
    searched = draft.queue.bisections.get(entry.bisection or "")
    if searched is not None:
        others = [one for one in close(draft, searched, None, reason) if one.pr != entry.pr]
        detail = Detail(prs=(entry.pr,))
        come_back(draft, [Back(one.pr, Reason.BATCH_MEMBER_LEFT, detail) for one in others])
        return replace(changes, bisection=None, rank=draft.entries[entry.pr].rank)
    run = draft.runs.get(entry.run or "")
    if run is not None and not _is_in_already(draft, run, entry):
        _send_others(draft, run, entry, _TO_THOSE_BEHIND[state])
    return replace(changes, rank=draft.entries[entry.pr].rank)


def _send_others(draft: Draft, run: Run, entry: Entry, behind: Reason) -> None:
    """The others of a batch lost a member; those that a later run cleared lost their proof.

    Of a unit that has begun to land those before the one that leaves go on
    (docs/design/landing.md 5).
    """
    detail = Detail(prs=(entry.pr,))
    backs = []
    is_behind = False
    made = bases.progress(draft, run)
    has_begun = made is not None and any(member.pr in made.landed for member in run.entries)
    for one in draft.own(run):
        if one.pr == entry.pr:
            is_behind = True
        elif is_behind or not has_begun:
            mates = one.batch == entry.batch or not is_behind
            backs.append(Back(one.pr, Reason.BATCH_MEMBER_LEFT if mates else behind, detail))
    send_back(draft, backs)


def _is_in_already(draft: Draft, run: Run, entry: Entry) -> bool:
    """Return whether the others of its run are as they were: it has landed, or brought nothing."""
    made = bases.progress(draft, run)
    if made is not None and entry.pr in made.landed:
        return True
    return any(step.pr == entry.pr and step.contained for step in run.steps)


def _pending(draft: Draft, back: Back) -> None:
    entry = draft.entries[back.pr]
    is_new = entry.state is not EntryState.PENDING
    restarts = _one_more(entry, back.reason) if is_new else entry.restarts
    draft.move(_bare(entry, restarts), EntryState.PENDING, back.reason, back.detail)


def _one_more(entry: Entry, reason: Reason) -> dict[str, int]:
    return {**entry.restarts, reason.value: entry.restarts.get(reason.value, 0) + 1}


def _bare(entry: Entry, restarts: Mapping[str, int], held_by: tuple[int, ...] = ()) -> Entry:
    return replace(
        entry,
        run=None,
        verified_by=None,
        bisection=None,
        batch=None,
        kept=False,
        wide=None,
        held_by=held_by,
        restarts=restarts,
    )


def _let_go(draft: Draft, leaving: Sequence[Entry], reasons: Iterable[Reason]) -> None:
    """Let the runs go that lose their last entries with these.

    A witness goes on without its entries, and the failed run of its suspect stays.
    """
    numbers = {entry.pr for entry in leaving}
    for entry, reason in zip(leaving, reasons, strict=True):
        run = draft.runs.get(entry.run or "")
        if run is None or run.kind is RunKind.WITNESS or draft.is_kept(run):
            continue
        if numbers.issuperset(one.pr for one in draft.own(run)):
            draft.retire(run, reason)
