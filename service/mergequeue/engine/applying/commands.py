"""Apply the commands of people and programs, one function each (docs/design/engine.md 7, 8).

Each changes only what its command names, or refuses and changes nothing; planning follows.
"""

from service.mergequeue.engine import targets
from service.mergequeue.engine.applying import budgets, priorities
from service.mergequeue.engine.inputs import (
    Cancel,
    Delete,
    PlaceHold,
    ReleaseHold,
    Restart,
    SetImpactedTargets,
    SetState,
    Submit,
)
from service.mergequeue.engine.model import Detail, Entry
from service.mergequeue.engine.outputs import (
    EntrySubmitted,
    EntryUpdated,
    QueueDeleted,
    QueueStateChanged,
    Refused,
    Tell,
)
from service.mergequeue.engine.reasons import CANCELLING, LIFTED_BY_PERSON, HoldReason, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import holds, leaving, readiness, target, undone
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState, QueueState, RunPhase
from service.vocabulary import Actor, ActorKind, Channel, PullRequestState

ENTRIES_MAX = 5000
"""Entries not final in one queue (docs/design/engine.md 6)."""

HOLDS_MAX = 20
"""The maximum number of holds on one queue."""

PRIORITY_MAX = 255


def not_open(state: PullRequestState) -> Reason:
    """Return why a pull request that is not open is refused."""
    is_merged = state is PullRequestState.MERGED
    return Reason.PULL_REQUEST_MERGED if is_merged else Reason.PULL_REQUEST_CLOSED


def submit(draft: Draft, one: Submit) -> Refused | None:
    """Enter a pull request behind those below it in its stack.

    The same head again only rewrites its options. See docs/design/engine.md 5.
    """
    known = draft.entries.get(one.facts.pr)
    if one.entry is not None and (known is None or known.id != one.entry):
        return _not_queued(draft, one.facts.pr)
    for lower in one.below:
        refusal = _submit(draft, lower)
        if refusal is not None:
            return replace(refusal, prs=(lower.facts.pr,))
    refusal = _submit(draft, one)
    if refusal is None:
        for each in (*one.below, one):
            _end_if_landed(draft, each.facts.pr)
    return refusal


def _submit(draft: Draft, one: Submit) -> Refused | None:
    facts = one.facts
    if one.priority is not None and not 0 <= one.priority <= PRIORITY_MAX:
        text = f"priority is 0 to {PRIORITY_MAX}, not {one.priority}"
        return Refused(Reason.INVALID_VALUE, text, field="priority")
    if facts.state is not PullRequestState.OPEN:
        return Refused(not_open(facts.state), f"pull request {facts.pr} is {facts.state.value}")
    known = draft.entries.get(facts.pr)
    if one.rule and (refused := _refusal_of_rule(draft, one)) is not None:
        return refused
    if known is not None and known.head == facts.head:
        _update(draft, known, one)
        return None
    refusal = _refusal(draft, one, known)
    if refusal is not None:
        return refusal
    if known is not None:
        detail = Detail(text="submitted again with a new head", sha=facts.head)
        leaving.leave(draft, known, EntryState.CANCELLED, Reason.HEAD_CHANGED, detail)
    _enter(draft, one)
    return None


def cancel(draft: Draft, one: Cancel) -> Refused | None:
    """Take a pull request out; kept until the result while its landing is in flight."""
    entry = draft.entries.get(one.pr)
    if entry is None:
        return _not_queued(draft, one.pr)
    if one.code not in CANCELLING:
        text = f"{one.code.value} is not a reason to cancel"
        return Refused(Reason.INVALID_VALUE, text, field="code")
    entry = replace(entry, canceller=one.actor)
    draft.put(entry)
    leaving.leave(draft, entry, EntryState.CANCELLED, one.code, Detail(text=one.text))
    return None


def restart(draft: Draft, one: Restart) -> Refused | None:
    """Restart an entry's tests in place; tests that have not begun are not begun again.

    While its test branch is built, only an earlier result is ruled out.
    """
    entry = draft.entries.get(one.pr)
    if entry is None:
        return _not_queued(draft, one.pr)
    refusal = budgets.refusal_of_restart(draft, one, entry)
    if refusal is not None:
        return refusal
    by_api = one.actor.channel is Channel.API
    reason = Reason.RESTARTED_BY_API if by_api else Reason.RESTARTED_BY_USER
    run = draft.runs.get(entry.run or "")
    if run is None:
        leaving.try_again(draft, (entry,))
        return None
    for own in draft.own(run):
        draft.put(replace(own, fresh=True))
    if run.phase is RunPhase.BUILDING and entry.bisection is None:
        draft.put_run(replace(run, fresh=True))
        return None
    for searched in list(draft.queue.bisections.values()):
        if any(member.entry == entry.id for member in searched.entries):
            leaving.abandon(draft, searched, reason)
    if run.id in draft.runs and draft.own(run):
        leaving.begin_anew(draft, run, reason)
    return None


def set_impacted_targets(draft: Draft, one: SetImpactedTargets) -> Refused | None:
    """The newest upload for the queued head counts; while it is tested it can only grow."""
    entry = draft.entries.get(one.pr)
    if entry is None or entry.head != one.head or entry.targets == one.targets:
        return None
    wide = None
    if entry.run is not None:
        wide = targets.union((entry.touches, one.targets))
    draft.put(replace(entry, targets=one.targets, wide=wide))
    updated = draft.entries[one.pr]
    draft.record(
        EntryUpdated(updated.pr, updated.id, updated.priority, updated.no_batch, one.targets)
    )
    return None


def set_state(draft: Draft, one: SetState) -> Refused | None:
    """Run, pause or drain the queue; the present state again changes at most its reason."""
    if one.state is QueueState.SWITCHING_MODES:
        text = "a queue switches modes by its configuration"
        return Refused(Reason.INVALID_VALUE, text, field="state")
    queue = draft.queue
    stands_still = queue.state in (QueueState.PAUSED, QueueState.DRAINING)
    is_reworded = one.reason is not None and one.reason != queue.state_reason
    state = queue.state if one.state is None else one.state
    if one.state is not None and queue.state is QueueState.SWITCHING_MODES:
        text = "the queue changes its mode when the runs in progress are over"
        return Refused(Reason.MODE_SWITCH_IN_PROGRESS, text)
    if state is not queue.state:
        draft.set_state(state, one.reason)
        for pr in sorted(draft.places.not_ready):
            entry = draft.entries[pr]
            draft.request(Tell(entry.pr, entry.id, entry.state, entry.reason))
    elif stands_still and is_reworded:
        draft.put_queue(replace(queue, state_reason=one.reason))
        draft.record(QueueStateChanged(queue.state, queue.state, one.reason))
    return None


def place_hold(draft: Draft, one: PlaceHold) -> Refused | None:
    """Hold the queue; what the system finds wrong is held once per reason."""
    endless = one.reason in holds.LOOKED_AT_BY_A_PERSON
    if one.until is not None and (endless or one.until <= draft.now):
        text = "this hold cannot have an end, or the end is in the past"
        return Refused(Reason.INVALID_VALUE, text, field="until")
    request = holds.HoldRequest(one.reason, one.text, one.scope, one.until, one.evidence)
    if one.actor.kind is ActorKind.SYSTEM:
        # What is told late of a landing that has ended since holds nothing: nothing would lift it.
        if one.reason is not HoldReason.LANDING_UNRESOLVED or draft.queue.landing is not None:
            holds.place_once(draft, request)
        return None
    if len(draft.queue.holds) >= HOLDS_MAX:
        return Refused(Reason.LIMIT_REACHED, f"the queue has {HOLDS_MAX} holds already")
    holds.place(draft, request)
    return None


def release_hold(draft: Draft, one: ReleaseHold) -> Refused | None:
    """Lift a hold; people may lift only holds that are not bound to a fact."""
    hold = next((hold for hold in draft.queue.holds if hold.id == one.id), None)
    if hold is None:
        return Refused(Reason.HOLD_NOT_FOUND, f"this queue has no hold {one.id}")
    if one.actor.kind is not ActorKind.SYSTEM and hold.reason not in LIFTED_BY_PERSON:
        text = f"{hold.reason.value} ends when its cause is gone"
        return Refused(Reason.HOLD_NOT_LIFTABLE, text)
    holds.release(draft, hold, one.text)
    if hold.reason in holds.LOOKED_AT_BY_A_PERSON:
        target.looked_at(draft)
    return None


def delete(draft: Draft, _one: Delete) -> Refused | None:
    """Delete an empty queue."""
    if draft.entries:
        text = f"{len(draft.entries)} pull requests are still queued"
        return Refused(Reason.QUEUE_NOT_EMPTY, text, prs=tuple(sorted(draft.entries)))
    if not draft.queue.deleted:
        draft.put_queue(replace(draft.queue, deleted=True))
        draft.record(QueueDeleted())
    return None


def _refusal(draft: Draft, one: Submit, known: Entry | None) -> Refused | None:
    pr = one.facts.pr
    if known is not None and leaving.is_landing(draft, known):
        text = f"pull request {pr} is landing with another head; submit it again after that"
        return Refused(Reason.ALREADY_LANDED, text)
    required = draft.queue.required
    if required is not None and required.source is None:
        text = f"no status is required for {draft.queue.branch}, so nothing could be proved"
        return Refused(Reason.NO_REQUIRED_STATUSES, text)
    if known is None and len(draft.entries) >= ENTRIES_MAX:
        return Refused(Reason.LIMIT_REACHED, f"{ENTRIES_MAX} pull requests are queued")
    return budgets.refusal_of(draft, one)


def _refusal_of_rule(draft: Draft, one: Submit) -> Refused | None:
    """Refuse what a rule lets in no more, what is in the queue already, and what is not ready."""
    pr, rules = one.facts.pr, draft.queue.config.rules
    lets_in = any(rule.enter and rule.name == one.rule for rule in rules)
    if not lets_in or one.facts.ruled.enter_rule != one.rule:
        return Refused(Reason.INVALID_VALUE, f"{one.rule} lets pull request {pr} in no more")
    if pr in draft.entries:
        return Refused(Reason.INVALID_VALUE, f"pull request {pr} is in the queue already")
    unmet = readiness.unmet_now(draft, _entry(draft, one))
    # One that takes back merged work enters and waits, where its author is told.
    open_ones = [reason for reason in unmet if reason is not Reason.UNDOES_LANDED_WORK]
    return Refused(open_ones[0], f"pull request {pr} is not ready") if open_ones else None


def _end_if_landed(draft: Draft, pr: int) -> None:
    """End a submission at once whose work has landed before."""
    entry = draft.entries[pr]
    is_current = undone.is_current(draft, entry.head, entry.work)
    if is_current and undone.is_superseded(draft, entry):
        undone.supersede(draft, entry)


def _enter(draft: Draft, one: Submit) -> None:
    entry = _entry(draft, one)
    draft.put_queue(replace(draft.queue, next_entry=draft.queue.next_entry + 1))
    draft.record(EntrySubmitted(entry.pr, entry.id, entry.head, entry.reason, entry.priority))
    draft.enter(entry)


def _entry(draft: Draft, one: Submit) -> Entry:
    facts, queue = one.facts, draft.queue
    return Entry(
        id=draft.name(f"entry {queue.next_entry}"),
        pr=facts.pr,
        facts=facts,
        head=facts.head,
        submitted_by=one.actor,
        submitted_at=draft.now,
        priority=priorities.by_rules(facts) if one.priority is None else one.priority,
        is_priority_given=one.priority is not None,
        no_batch=bool(one.no_batch),
        state=EntryState.NOT_READY,
        state_since=draft.now,
        reason=_submitted_by(one.actor),
        p_fail=one.p_fail or 0.0,
        targets=one.targets,
        work=one.work if undone.is_current(draft, facts.head, one.work) else None,
        undoes=one.undoes,
    )


def _update(draft: Draft, entry: Entry, one: Submit) -> None:
    leaving.try_again(draft, (entry,))
    entry = draft.entries[entry.pr]
    no_batch = entry.no_batch if one.no_batch is None else one.no_batch
    updated = replace(entry, no_batch=no_batch, facts=one.facts)
    if one.priority is not None:
        updated = replace(updated, priority=one.priority, is_priority_given=True)
    elif not entry.is_priority_given:
        updated = replace(updated, priority=priorities.by_rules(one.facts))
    if one.targets is not None and entry.targets is None:
        updated = replace(updated, targets=one.targets)
    # One that those ahead keep out was judged on top of them.
    if not entry.held_by and one.work and undone.is_current(draft, entry.head, one.work):
        updated = replace(updated, work=undone.newer(entry, one.work))
    updated = replace(updated, undoes=tuple(dict.fromkeys((*entry.undoes, *one.undoes))))
    if entry.cancel in CANCELLING and entry.canceller is not None:
        updated = replace(updated, cancel=None, canceller=None)
    if updated == entry:
        return
    draft.put(updated)
    undone.tell_if_changed(draft, entry)
    priorities.note(draft, entry)


def _submitted_by(actor: Actor) -> Reason:
    if actor.channel is Channel.RULE:
        return Reason.RULE_REQUESTED
    by_api = actor.channel is Channel.API
    return Reason.API_REQUESTED if by_api else Reason.USER_REQUESTED


def _not_queued(draft: Draft, pr: int) -> Refused:
    return Refused(Reason.NOT_IN_QUEUE, f"pull request {pr} is not queued for {draft.queue.branch}")
