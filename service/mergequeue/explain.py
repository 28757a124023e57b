"""Why a pull request is not merged yet: conditions met and open, and what comes next.

ENGINE.md 16. Values only; the sentences for people are made in `service/wording`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from service.mergequeue import bases, bisecting, breaker, holds, readiness, verdict
from service.mergequeue.draft import Draft
from service.mergequeue.model import Entry, Hold, MergeQueue, Run
from service.mergequeue.reasons import BREAKER_HOLDS, MEANINGS, NOT_READY_ORDER, Reason, WhoMustAct
from service.mergequeue.states import LANDS, EntryState, QueueState, RunKind, RunPhase, RunStatus
from service.vocabulary import SYSTEM, BlockerCode, CheckOutcome


class ConditionCode(StrEnum):
    """What must be true. Those of readiness are the reason codes of their opposite."""

    FACTS_UNKNOWN = "facts_unknown"
    DRAFT = "draft"
    BASE_MISMATCH = "base_mismatch"
    CONFLICT_TARGET = "conflict_target"
    MERGEABILITY_UNKNOWN = "mergeability_unknown"
    REVIEW_REQUIRED = "review_required"
    CHANGES_REQUESTED = "changes_requested"
    CONVERSATIONS_UNRESOLVED = "conversations_unresolved"
    CHECK_PENDING = "check_pending"
    CHECK_FAILING = "check_failing"
    RULE_UNMET = "rule_unmet"
    IMPACTED_TARGETS_MISSING = "impacted_targets_missing"
    FORK_NEEDS_PERSON = "fork_needs_person"
    WORKFLOWS_PERMISSION_MISSING = "workflows_permission_missing"
    QUEUE_RUNNING = "queue_running"
    NO_HOLD = "no_hold"
    NO_CONFLICT_AHEAD = "no_conflict_ahead"
    ITS_TURN = "its_turn"
    BASE_STARTABLE = "base_startable"
    FREE_SLOT = "free_slot"
    BRANCH_BUILT = "branch_built"
    STATUS_PASSED = "status_passed"
    EVIDENCE_RECEIVED = "evidence_received"
    AHEAD_DECIDED = "ahead_decided"
    CONFIRMED = "confirmed"
    QUEUE_LANDS = "queue_lands"
    AHEAD_LANDED = "ahead_landed"
    STILL_READY = "still_ready"
    LANDING_FREE = "landing_free"


class Next(StrEnum):
    """Which kind of news can change the first open condition."""

    FACTS_CHANGE = "facts_change"
    QUEUE_RESUMES = "queue_resumes"
    HOLD_LIFTED = "hold_lifted"
    CONFLICT_CLEARS = "conflict_clears"
    RETRY = "retry"
    RUN_STARTS = "run_starts"
    SLOT_FREES = "slot_frees"
    BRANCH_BUILT = "branch_built"
    CHECK_REPORTS = "check_reports"
    EVIDENCE_ARRIVES = "evidence_arrives"
    AHEAD_DECIDED = "ahead_decided"
    CONFIRMATION_ENDS = "confirmation_ends"
    LANDING_ENDS = "landing_ends"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition.

    `name` is a check, rule, hold id or base branch, `word` the outcome of a status or the reason
    of a hold; `count` of `total`: entries before it, or slots in use; `at` when a clock ends it.
    """

    code: ConditionCode
    met: bool
    who_must_act: WhoMustAct = WhoMustAct.NOBODY
    since: datetime | None = None
    prs: tuple[int, ...] = ()
    url: str | None = None
    name: str = ""
    word: str = ""
    count: int | None = None
    total: int | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NextEvent:
    """What can bring the entry on: the kind of news, when if a clock says so, whose."""

    what: Next
    at: datetime | None = None
    prs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Explained:
    """Where an entry stands and why; `next` is None when nothing is open or all is over."""

    state: EntryState
    reason: Reason
    conditions: tuple[Condition, ...]
    next: NextEvent | None


MISSING = "missing"
"""The word for a required status that nobody reported."""

_NEXT = {
    ConditionCode.QUEUE_RUNNING: Next.QUEUE_RESUMES,
    ConditionCode.QUEUE_LANDS: Next.QUEUE_RESUMES,
    ConditionCode.NO_HOLD: Next.HOLD_LIFTED,
    ConditionCode.NO_CONFLICT_AHEAD: Next.CONFLICT_CLEARS,
    ConditionCode.ITS_TURN: Next.RUN_STARTS,
    ConditionCode.BASE_STARTABLE: Next.RUN_STARTS,
    ConditionCode.FREE_SLOT: Next.SLOT_FREES,
    ConditionCode.BRANCH_BUILT: Next.BRANCH_BUILT,
    ConditionCode.STATUS_PASSED: Next.CHECK_REPORTS,
    ConditionCode.EVIDENCE_RECEIVED: Next.EVIDENCE_ARRIVES,
    ConditionCode.AHEAD_DECIDED: Next.AHEAD_DECIDED,
    ConditionCode.CONFIRMED: Next.CONFIRMATION_ENDS,
    ConditionCode.AHEAD_LANDED: Next.LANDING_ENDS,
    ConditionCode.LANDING_FREE: Next.LANDING_ENDS,
}

_BLOCKERS = {
    Reason.CHECK_PENDING: BlockerCode.CHECK_PENDING,
    Reason.CHECK_FAILING: BlockerCode.CHECK_FAILING,
    Reason.RULE_UNMET: BlockerCode.OTHER,
}


def explain(queue: MergeQueue, pr: int, now: datetime) -> Explained:
    """Explain a queued pull request; the first open condition names what comes next.

    Raises KeyError when it is not in the queue: a final entry explains itself by `of_final`.
    """
    draft = Draft(queue, now, SYSTEM)
    entry = draft.entries[pr]
    conditions = tuple(_CONDITIONS[entry.state](draft, entry))
    return Explained(entry.state, entry.reason, conditions, _next(draft, entry, conditions))


def of_final(entry: Entry) -> Explained:
    """A submission that has ended: its reason and evidence say it all."""
    return Explained(entry.state, entry.reason, (), None)


def _next(draft: Draft, entry: Entry, conditions: tuple[Condition, ...]) -> NextEvent | None:
    for one in conditions:
        if not one.met:
            what = _NEXT.get(one.code, Next.FACTS_CHANGE)
            return NextEvent(what, one.at, one.prs)
    waits = (entry.build_after, draft.queue.land_after)
    later = [at for at in waits if at is not None and at > draft.now]
    return NextEvent(Next.RETRY, min(later)) if later else None


def _not_ready(draft: Draft, entry: Entry) -> Iterator[Condition]:
    for reason in NOT_READY_ORDER:
        if reason in (Reason.IMPACTED_TARGETS_MISSING, Reason.FACTS_UNKNOWN):
            continue
        met = reason not in entry.unmet
        yield _of_readiness(draft, entry, reason, met=met)


def _of_readiness(draft: Draft, entry: Entry, reason: Reason, *, met: bool) -> Condition:
    hours = draft.queue.config.not_ready_timeout_hours
    limit = entry.state_since + timedelta(hours=hours) if hours else None
    return Condition(
        code=ConditionCode(reason.value),
        met=met,
        who_must_act=WhoMustAct.NOBODY if met else MEANINGS[reason].who,
        since=None if met else entry.state_since,
        name="" if met else _name_of(entry, reason),
        at=limit if not met and entry.state is EntryState.NOT_READY else None,
    )


def _name_of(entry: Entry, reason: Reason) -> str:
    if reason is Reason.BASE_MISMATCH:
        return entry.facts.base
    code = _BLOCKERS.get(reason)
    names = [blocker.name for blocker in entry.facts.blockers if blocker.code is code]
    return ", ".join(name for name in names if name and name != readiness.WORKFLOWS)


def _pending(draft: Draft, entry: Entry) -> Iterator[Condition]:
    queue = draft.queue
    running = queue.state is QueueState.RUNNING
    yield _queue_is(queue, ConditionCode.QUEUE_RUNNING, met=running)
    yield from _no_hold(queue, holds.stops_starts(queue))
    held = entry.held_by
    yield Condition(
        ConditionCode.NO_CONFLICT_AHEAD,
        not held,
        _who(Reason.CONFLICT_AHEAD, met=not held),
        prs=held,
    )
    if entry.unmet:
        yield from _still_ready(entry)
    before = _before(draft, entry)
    yield Condition(ConditionCode.ITS_TURN, not before, prs=before, count=len(before))
    stopped = tuple(
        member.pr
        for member in bases.ahead(draft, (entry,))
        if draft.entries[member.pr].state is EntryState.PENDING
    )
    yield Condition(ConditionCode.BASE_STARTABLE, not stopped, prs=stopped)
    yield _free_slot(draft)


def _before(draft: Draft, entry: Entry) -> tuple[int, ...]:
    """Pending entries that start before this one, in order."""
    placed = [
        pr
        for rank, pr in draft.places.line
        if draft.entries[pr].state is EntryState.PENDING
        and not draft.entries[pr].held_by
        and (entry.rank is None or rank < entry.rank)
    ]
    if entry.rank is not None:
        return tuple(placed)
    key = (entry.priority, entry.seq or 0, entry.pr)
    return tuple(placed + [other[2] for other in draft.places.waiting if other < key])


def _free_slot(draft: Draft) -> Condition:
    config = draft.queue.config
    kinds = {RunKind.MAIN}
    if config.bisection_concurrency == 0:
        kinds.add(RunKind.CONFIRMATION)
    running = [
        run
        for run in draft.runs.values()
        if run.status is RunStatus.IN_PROGRESS and run.kind in kinds
    ]
    prs = tuple(sorted(run.entries[0].pr for run in running))
    return Condition(
        ConditionCode.FREE_SLOT,
        len(running) < config.concurrency,
        prs=prs,
        count=len(running),
        total=config.concurrency,
    )


def _testing(draft: Draft, entry: Entry) -> Iterator[Condition]:
    run = draft.runs[entry.run or ""]
    built = run.phase is RunPhase.TESTING
    yield Condition(ConditionCode.BRANCH_BUILT, built, since=run.created_at)
    if not built:
        return
    yield from _statuses(run)
    if run.asked_evidence is not None:
        limit = run.asked_evidence + verdict.EVIDENCE_WAIT
        got = run.evidence is not None
        yield Condition(
            ConditionCode.EVIDENCE_RECEIVED,
            got,
            since=run.asked_evidence,
            at=None if got else limit,
        )
    if entry.unmet:
        yield from _still_ready(entry)


def _statuses(run: Run) -> Iterator[Condition]:
    for one in verdict.standings_of(run):
        met = one.outcome is CheckOutcome.PASSED or one.required.name in run.excused
        blocked = one.outcome is CheckOutcome.BLOCKED
        yield Condition(
            ConditionCode.STATUS_PASSED,
            met,
            WhoMustAct.MAINTAINER if blocked else WhoMustAct.NOBODY,
            since=one.check.started_at if one.check is not None else run.built_at,
            url=one.check.url if one.check is not None else None,
            name=one.required.name,
            word=one.outcome.value if one.outcome is not None else MISSING,
            at=None if met else run.deadline,
        )


def _pending_failure(draft: Draft, entry: Entry) -> Iterator[Condition]:
    run = draft.runs[entry.run or ""]
    open_ones = tuple(
        member.pr
        for member in run.base
        if (other := draft.entry_of(member)) is not None
        and other.state is not EntryState.TESTS_PASSED
    )
    yield Condition(
        ConditionCode.AHEAD_DECIDED, not open_ones, since=run.finished_at, prs=open_ones
    )
    searched = draft.queue.bisections.get(entry.bisection or "")
    again = [draft.runs[one] for one in searched.probes.values()] if searched else []
    if again:
        yield Condition(ConditionCode.CONFIRMED, met=False, since=again[0].created_at)
    elif searched is not None and bisecting.wanted(draft, 1):
        queue = draft.queue
        running = queue.state is QueueState.RUNNING
        yield _queue_is(queue, ConditionCode.QUEUE_RUNNING, met=running)
        yield from _no_hold(queue, holds.stops_starts(queue))
        yield Condition(ConditionCode.CONFIRMED, met=False)


def _tests_passed(draft: Draft, entry: Entry) -> Iterator[Condition]:
    queue = draft.queue
    yield _queue_is(queue, ConditionCode.QUEUE_LANDS, met=queue.state in LANDS)
    yield from _no_hold(queue, holds.stops_landings(queue))
    ahead = tuple(member.pr for member in bases.ahead(draft, (entry,)))
    yield Condition(ConditionCode.AHEAD_LANDED, not ahead, prs=ahead)
    yield from _still_ready(entry)
    run = draft.runs[entry.verified_by or ""]
    yield from (one for one in _statuses(run) if not one.met and run.reused_from is None)
    landing = queue.landing
    other = draft.runs.get(landing.run) if landing is not None else None
    yield Condition(
        ConditionCode.LANDING_FREE,
        landing is None,
        since=landing.since if landing is not None else None,
        prs=other.prs if other is not None else (),
    )


def _still_ready(entry: Entry) -> Iterator[Condition]:
    limit = None
    if entry.unready_since is not None:
        limit = entry.unready_since + readiness.GRACE
    if not entry.unmet:
        yield Condition(ConditionCode.STILL_READY, met=True)
    for reason in entry.unmet:
        yield Condition(
            ConditionCode.STILL_READY,
            met=False,
            who_must_act=MEANINGS[reason].who,
            since=entry.unready_since,
            name=_name_of(entry, reason),
            word=reason.value,
            at=limit,
        )


def _queue_is(queue: MergeQueue, code: ConditionCode, *, met: bool) -> Condition:
    who = WhoMustAct.NOBODY if met else WhoMustAct.MAINTAINER
    return Condition(code, met, who, since=queue.state_since, word=queue.state.value)


def _no_hold(queue: MergeQueue, stops: tuple[Hold, ...]) -> Iterator[Condition]:
    if not stops and (queue.required is None or queue.tip is None):
        # Nothing is wrong; the branch and its rules have not been read yet.
        yield Condition(ConditionCode.NO_HOLD, met=False)
    elif not stops:
        yield Condition(ConditionCode.NO_HOLD, met=True)
    for hold in stops:
        at = hold.until
        if breaker.is_open(queue) and hold.reason in BREAKER_HOLDS:
            at = queue.breaker.probe_at
        yield Condition(
            ConditionCode.NO_HOLD,
            met=False,
            who_must_act=holds.who_lifts(hold.reason),
            since=hold.since,
            name=hold.id,
            word=hold.reason.value,
            at=at,
        )


def _who(reason: Reason, *, met: bool) -> WhoMustAct:
    return WhoMustAct.NOBODY if met else MEANINGS[reason].who


_CONDITIONS: dict[EntryState, Callable[[Draft, Entry], Iterator[Condition]]] = {
    EntryState.NOT_READY: _not_ready,
    EntryState.PENDING: _pending,
    EntryState.TESTING: _testing,
    EntryState.PENDING_FAILURE: _pending_failure,
    EntryState.TESTS_PASSED: _tests_passed,
}
