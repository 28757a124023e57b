"""Judge whether an entry may be tested and landed, and what it lacks (docs/design/engine.md 5)."""

from collections.abc import Set
from datetime import datetime, timedelta

from service.mergequeue.engine.model import NOTHING, Detail, Entry
from service.mergequeue.engine.outputs import Tell
from service.mergequeue.engine.reasons import NEEDS, NOT_READY_ORDER, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.state import bases, leaving, shares, stacks, undone, waiting
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.places import is_expected
from service.mergequeue.engine.states import EntryState, RunPhase
from service.mergequeue.reasons.record import Grace
from service.vocabulary import Blocker, BlockerCode, Mergeability, PullRequestState

GRACE = timedelta(minutes=10)
"""The time for which a placed entry may be unready and keep its place (docs/design/engine.md 6)."""

GRACE_PASSED = timedelta(minutes=2)
"""The same after its tests passed: then everything behind it waits for its landing."""

MERGE_SEEN = timedelta(seconds=60)
"""The time from the sight of a merge by hand to that of the target's move: one sweep of tips."""

WORKFLOWS = "workflows"

_BLOCKERS = {need.blocker: reason for reason, need in NEEDS.items() if need.blocker is not None}


def ready(draft: Draft) -> None:
    """Update readiness after changed facts, timeouts and freed entries."""
    for pr in sorted(draft.places.not_ready):
        entry = draft.entries[pr]
        if entry.build_after is not None and entry.build_after <= draft.now:
            leaving.try_again(draft, (entry,))
    _note_time(draft)
    touched = sorted(draft.touched)
    draft.touched.clear()
    for pr in touched:
        _refresh(draft, draft.entries[pr])
    for pr in sorted(draft.places.leaving):
        _leave_if_due(draft, draft.entries[pr])
    for pr in sorted(draft.places.not_ready):
        _end_refusal(draft, draft.entries[pr])
        _wake(draft, draft.entries[pr])
    for pr in sorted(draft.places.unready):
        entry = draft.entries[pr]
        if _is_over(draft, entry) and not leaving.is_landing(draft, entry):
            leaving.set_aside(draft, entry, entry.unmet[0])
    _clear_conflicts(draft)


def _note_time(draft: Draft) -> None:
    """Look again at entries for which a time has come or a rule's period begins or ends."""
    if draft.is_clock_due:
        draft.is_clock_due = False
        timed = (draft.entries[pr] for pr in draft.places.timed)
        draft.touched |= {one.pr for one in timed if waiting.is_changed(one, draft.now)}


def unmet_of(facts: Facts, branch: str) -> tuple[Reason, ...]:
    """Conditions that these facts leave open, in the order in which they are shown."""
    open_ones = {reason_of(blocker) for blocker in facts.blockers}
    if facts.draft:
        open_ones.add(Reason.DRAFT)
    if facts.base != branch and Reason.STACKED not in open_ones:
        # The provider changes the base of a stack's member once those below it have merged.
        open_ones.add(Reason.BASE_MISMATCH)
    if facts.mergeability is Mergeability.NOT_MERGEABLE:
        open_ones.add(Reason.CONFLICT_TARGET)
    elif facts.mergeability is not Mergeability.MERGEABLE:
        open_ones.add(Reason.MERGEABILITY_UNKNOWN)
    if facts.is_fork and facts.authorized_head != facts.head:
        open_ones.add(Reason.FORK_NEEDS_PERSON)
    return _in_order(open_ones)


def leaving_of(before: Facts, after: Facts, entry: Entry, branch: str) -> Reason | None:
    """Why fresh facts end this submission; None when they do not."""
    if after.state is PullRequestState.MERGED and after.base != branch:
        return Reason.MERGED_INTO_OTHER_BRANCH
    if after.landed_by_us:
        return Reason.LANDED_UNRECORDED
    if after.state is PullRequestState.MERGED:
        return Reason.MERGED_BY_HAND
    if after.state is PullRequestState.CLOSED:
        return Reason.PR_CLOSED
    if after.head != entry.head:
        return Reason.HEAD_CHANGED
    if before.base == branch and after.base not in (branch, entry.rested_on):
        # A read from before the change of a chain's base may arrive after it.
        return Reason.BASE_CHANGED
    if after.draft and not before.draft:
        return Reason.CONVERTED_TO_DRAFT
    was_authorized = before.authorized_head == entry.head
    if after.is_fork and was_authorized and after.authorized_head != entry.head:
        return Reason.AUTHORIZATION_LOST
    return None


def evidence_of_leaving(reason: Reason, facts: Facts) -> Detail:
    """Return the evidence of a submission that these facts end."""
    match reason:
        case Reason.HEAD_CHANGED:
            return Detail(text=reason.record.evidence, sha=facts.head)
        case Reason.BASE_CHANGED:
            return Detail(text=facts.base)
        case Reason.MERGED_BY_HAND | Reason.LANDED_UNRECORDED:
            return Detail(sha=facts.merged_sha)
        case Reason.MERGED_INTO_OTHER_BRANCH:
            return Detail(text=facts.base, sha=facts.merged_sha)
        case _:
            return Detail(text=reason.record.evidence)


def unmet_now(draft: Draft, entry: Entry) -> tuple[Reason, ...]:
    """Return the open conditions of this entry in its present state.

    Not knowing never takes readiness away, and a run that was built cleanly knows better than
    a conflict the provider reports.
    """
    ignored = set()
    if draft.queue.config.lands_commits and not entry.facts.in_stack:
        # The tested commits themselves become the branch, with the checks that they have.
        ignored.add(Reason.CHECK_MISSING)
    if entry.state is not EntryState.NOT_READY:
        ignored.add(Reason.MERGEABILITY_UNKNOWN)
        run = draft.runs.get(entry.run or "")
        if run is not None and run.phase is RunPhase.TESTING:
            ignored.add(Reason.CONFLICT_TARGET)
    if draft.queue.config.shadow:
        # The provider's own queue works on it, beside this one.
        ignored.add(Reason.PROVIDER_QUEUED)
    if not stacks.waits(draft, entry):
        ignored.add(Reason.STACKED)
    open_ones = {*unmet_of(entry.facts, draft.queue.branch), *entry.barred} - ignored
    if entry.refusal is not None:
        open_ones.add(entry.refusal.reason)
    if draft.is_parallel and entry.targets is None:
        open_ones.add(Reason.IMPACTED_TARGETS_MISSING)
    if undone.waits(draft, entry):
        open_ones.add(Reason.UNDOES_LANDED_WORK)
    return _in_order(open_ones | _timed(draft, entry))


def _timed(draft: Draft, entry: Entry) -> set[Reason]:
    """Return the open conditions that a time may end."""
    found = set()
    if any(one.holds(draft.now) for one in entry.facts.ruled.waits):
        found.add(Reason.WAITS_FOR_RULE)
    if waiting.is_early(entry.facts, draft.now):
        found.add(Reason.NOT_BEFORE)
    return found


def _in_order(open_ones: Set[Reason | None]) -> tuple[Reason, ...]:
    return tuple(one for one in NOT_READY_ORDER if one in open_ones) if open_ones else ()


def _refresh(draft: Draft, entry: Entry) -> None:
    unmet, waits = unmet_now(draft, entry), waiting.waits_of(entry.facts, draft.now)
    since = None
    if unmet and entry.rank is not None:
        since = entry.unready_since or draft.now
    if (unmet, waits, since) != (entry.unmet, entry.waits, entry.unready_since):
        was_patient = waiting.is_patient(entry)
        entry = replace(entry, unmet=unmet, waits=waits, unready_since=since)
        if was_patient and entry.state is EntryState.NOT_READY and not waiting.is_patient(entry):
            # The time in which it must become ready begins after such a wait.
            entry = replace(entry, state_since=draft.now)
        draft.put(entry)
        draft.request(Tell(entry.pr, entry.id, entry.state, entry.reason))
    if unmet and entry.rank is None and entry.state is EntryState.PENDING:
        leaving.set_aside(draft, entry, unmet[0])


def _end_refusal(draft: Draft, entry: Entry) -> None:
    """Let an entry be tried again once the provider's refusal may be over."""
    refusal = entry.refusal
    if refusal is None:
        return
    if refusal.until <= draft.now or refusal.blockers != entry.facts.blockers:
        again = replace(entry, refusal=None)
        draft.put(replace(again, unmet=unmet_now(draft, again)))


def _wake(draft: Draft, entry: Entry) -> None:
    hours = draft.queue.config.not_ready_timeout_hours
    if not entry.unmet and entry.cancel is None:
        if entry.seq is None:
            entry = replace(entry, seq=draft.queue.next_seq)
            draft.put_queue(replace(draft.queue, next_seq=draft.queue.next_seq + 1))
        entry = shares.give_turn(draft, entry)
        draft.move(entry, EntryState.PENDING, Reason.NOW_READY)
    elif (ends := gives_up_at(entry, hours)) is not None and ends <= draft.now:
        words = ", ".join(reason.value for reason in entry.unmet)
        detail = Detail(text=f"not ready for {hours:g} hours: {words}")
        leaving.leave(draft, entry, EntryState.CANCELLED, Reason.NOT_READY_TIMEOUT, detail)


def gives_up_at(entry: Entry, hours: float) -> datetime | None:
    """Return when an unready entry leaves the line after its grace, or the queue after `hours`."""
    if entry.unready_since is not None:
        return entry.unready_since + grace_of(entry)
    is_counted = entry.state is EntryState.NOT_READY and entry.build_after is None
    is_counted = is_counted and not waiting.is_patient(entry)
    return entry.state_since + timedelta(hours=hours) if hours and is_counted else None


def _is_over(draft: Draft, entry: Entry) -> bool:
    if entry.state is EntryState.PENDING and Grace.IN_A_RUN in _graces(entry):
        return True
    ends = gives_up_at(entry, 0)
    return ends is not None and ends <= draft.now


def grace_of(entry: Entry) -> timedelta:
    """Return how long this placed entry may be unready."""
    if Grace.NONE in _graces(entry):
        return timedelta(0)
    return GRACE_PASSED if entry.state is EntryState.TESTS_PASSED else GRACE


def _graces(entry: Entry) -> set[Grace]:
    return {NEEDS[reason].grace for reason in entry.unmet}


def _leave_if_due(draft: Draft, entry: Entry) -> None:
    """Act on a leaving that waited for a landing, or for the target's move to be seen."""
    reason = entry.cancel
    if reason is None or leaving.is_landing(draft, entry):
        return
    if reason in leaving.RESTARTS:
        again = replace(entry, cancel=None, cancel_detail=NOTHING)
        draft.put(again)
        run = draft.runs.get(again.run or "")
        if run is not None:
            leaving.restart(draft, run, reason, entry.cancel_detail)
        return
    if reason in bases.SEEN_MERGED and not _is_merge_seen(draft, entry):
        return
    leaving.leave(draft, entry, leaving.state_after(reason), reason, entry.cancel_detail)


def _is_merge_seen(draft: Draft, entry: Entry) -> bool:
    if entry.build_after is not None and entry.build_after <= draft.now:
        return True
    merged = entry.facts.merged_sha
    tip = draft.queue.tip
    known = {step.sha for step in draft.queue.landed} | ({tip.sha} if tip else set())
    return entry.run is None or merged in known


def _clear_conflicts(draft: Draft) -> None:
    """Free entries whose conflicting entry has landed or left the line."""
    if not draft.places.held:
        return
    left = {entry.pr for entry in draft.finished_entries.values()}
    held = [draft.entries[pr] for pr in draft.places.held]
    freed = [
        undone.freed(draft, entry)
        for entry in held
        if any(_is_gone(draft, other, left) for other in entry.held_by)
        or undone.is_freed(draft, entry)
    ]
    if not freed:
        return
    for entry in freed:
        draft.put(entry)
    freed.sort(key=lambda entry: entry.rank or 0)
    back = [
        leaving.Back(entry.pr, Reason.CONFLICT_CLEARED, Detail(prs=entry.held_by))
        for entry in freed
    ]
    leaving.come_back(draft, back)


def _is_gone(draft: Draft, pr: int, left: set[int]) -> bool:
    other = draft.entries.get(pr)
    return pr in left or other is None or other.rank is None


def may_land(entry: Entry) -> bool:
    """Return whether no fact about the pull request itself prevents its landing."""
    return is_expected(entry) and not entry.unmet and entry.cancel is None


def reason_of(blocker: Blocker) -> Reason | None:
    """Return the condition that a blocker leaves open; None for one that ends the submission."""
    if blocker.code is BlockerCode.OTHER and blocker.name == WORKFLOWS:
        return Reason.WORKFLOWS_PERMISSION_MISSING
    return _BLOCKERS.get(blocker.code)


def is_startable(draft: Draft, entry: Entry) -> bool:
    """Return whether nothing about the entry itself keeps it from being tested now."""
    is_early = entry.build_after is not None and entry.build_after > draft.now
    return not (entry.unmet or entry.cancel is not None or is_early)


def blocker_names(entry: Entry, reason: Reason) -> tuple[str, ...]:
    """Return the checks, rules and the like that the provider names for a condition."""
    need = NEEDS[reason]
    if not need.is_named:
        return ()
    blockers = entry.facts.blockers
    return tuple(each.name for each in blockers if each.code is need.blocker and each.name)
