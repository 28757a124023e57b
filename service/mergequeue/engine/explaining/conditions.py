"""The conditions that must be true before an entry gets further: one condition by itself.

Codes, values, and the conditions that an entry, its run or the queue's own state decides
alone. Conditions that depend on the other entries are in `explain.py`.

See docs/design/engine.md 9.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from service.mergequeue.engine.config import Mode, UndoneWork
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Entry, Hold, MergeQueue, Run
from service.mergequeue.engine.reasons import ASIDE, BREAKER_HOLDS, NEEDS, Reason
from service.mergequeue.engine.reported import Doomed
from service.mergequeue.engine.state import holds, leaving, readiness, undone, waiting
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import QueueState, RunKind
from service.mergequeue.reasons.record import Listed, WhoMustAct
from service.vocabulary import BlockerCode, CheckOutcome, Foreign, Mergeability


class ConditionCode(StrEnum):
    """The conditions beside readiness, whose conditions are named by their reasons."""

    QUEUE_RUNNING = "queue_running"
    NO_HOLD = "no_hold"
    NO_CONFLICT_AHEAD = "no_conflict_ahead"
    ITS_TURN = "its_turn"
    FAIR_SHARE = "fair_share"
    FEW_RUNS = "few_runs"
    FEW_ON_ALL = "few_on_all"
    LINE_PASSES = "line_passes"
    BATCH_COMPLETE = "batch_complete"
    BASE_STARTABLE = "base_startable"
    FREE_SLOT = "free_slot"
    ALONE_FIRST = "alone_first"
    BRANCH_BUILT = "branch_built"
    STATUS_PASSED = "status_passed"
    EVIDENCE_RECEIVED = "evidence_received"
    AHEAD_DECIDED = "ahead_decided"
    SUCCESSORS_DECIDED = "successors_decided"
    CAUSE_AHEAD = "cause_ahead"
    SUSPECTS_DECIDED = "suspects_decided"
    FOLLOWERS_AWAITED = "followers_awaited"
    BISECTION_DONE = "bisection_done"
    CONFIRMED = "confirmed"
    QUEUE_LANDS = "queue_lands"
    AHEAD_LANDED = "ahead_landed"
    STILL_READY = "still_ready"
    LANDING_FREE = "landing_free"
    OTHERS_MERGE = "others_merge"


class Standing(StrEnum):
    """The ways in which a condition stands.

    Of those that are met only MET is simply true. A required check that was SKIPPED or EXCUSED
    counts all the same. UNKNOWN: nobody could judge it, and nothing waits for it.
    """

    MET = "met"
    SKIPPED = "skipped"
    EXCUSED = "excused"
    UNKNOWN = "unknown"
    OPEN = "open"


_COUNTED: Mapping[str, Standing] = {
    CheckOutcome.SKIPPED: Standing.SKIPPED,
    CheckOutcome.FAILED: Standing.EXCUSED,
}
"""The standing of a required check that is met and has not passed, by its outcome."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition.

    `name` is a check, rule, hold id or base branch, `word` the outcome of a status or the reason
    of a hold, OWN for the entry's own landing; `at` when a clock ends it, or the next try under a
    hold begins, in which `prs` are tried now. `count` of `total`:
    slots in use, runs under way, members of a batch, levels of successors; entries before it have
    no total. Of a stack `name` lists the members to be merged first, `prs` those that are not in
    the queue. Of a rule `name` is its name and `word` what it waits for. Of a bisection `prs`
    are all that it searches, the first `count` proven, the first `total` known to fail, and
    `runs` of its test runs are under way. Of a risk `count` is the chance of failing in
    percent, `total` the limit, and `word` the reason (`risks.Why`). Of the line `count` is its
    chance to pass in percent, `total` the least. Of a share `word` is in how many minutes the
    submitter's next entry starts.
    `foreign`: another reporter's report of the check, which does not count. `doom`: the check has
    not ended, and cannot pass any more.
    """

    code: ConditionCode | Reason
    met: bool
    who_must_act: WhoMustAct = WhoMustAct.NOBODY
    since: datetime | None = None
    prs: tuple[int, ...] = ()
    url: str | None = None
    name: str = ""
    word: str = ""
    count: int | None = None
    total: int | None = None
    runs: int | None = None
    at: datetime | None = None
    foreign: Foreign | None = None
    doom: Doomed | None = None

    @property
    def standing(self) -> Standing:
        """The way in which it stands, also of one that is met without being true."""
        if not self.met:
            return Standing.OPEN
        if self.code is Reason.UNDOES_LANDED_WORK and self.name:
            return Standing.UNKNOWN
        is_check = self.code is ConditionCode.STATUS_PASSED
        return _COUNTED.get(self.word, Standing.MET) if is_check else Standing.MET


class Next(StrEnum):
    """The kinds of news that can change the first open condition."""

    FACTS_CHANGE = "facts_change"
    QUEUE_RESUMES = "queue_resumes"
    MODE_CHANGES = "mode_changes"
    HOLD_LIFTED = "hold_lifted"
    CONFLICT_CLEARS = "conflict_clears"
    RETRY = "retry"
    RUN_STARTS = "run_starts"
    BATCH_FILLS = "batch_fills"
    SLOT_FREES = "slot_frees"
    BRANCH_BUILT = "branch_built"
    CHECK_REPORTS = "check_reports"
    FAILURE_COUNTS = "failure_counts"
    EVIDENCE_ARRIVES = "evidence_arrives"
    AHEAD_DECIDED = "ahead_decided"
    SUCCESSOR_ENDS = "successor_ends"
    PROBE_ENDS = "probe_ends"
    CONFIRMATION_ENDS = "confirmation_ends"
    LANDING_ENDS = "landing_ends"
    OTHERS_MERGE = "others_merge"


@dataclass(frozen=True, slots=True)
class NextEvent:
    """The event that can bring the entry on: the kind of news, when if a clock says so, whose."""

    what: Next
    at: datetime | None = None
    prs: tuple[int, ...] = ()


MISSING = "missing"
"""The word for a required status without a report."""

OWN = "own"
"""The word for a landing of the very entry that is explained."""

REPEATED = "repeated"
"""The word for a confirmation by the failed checks alone; `count` is its percentage of a test."""

UNANSWERED = "unanswered"
"""The word for a landing whose instance stopped answering; others take over at `at`."""

THROTTLED = "throttled"
"""The word for a test branch or an own landing that waits for the provider's limit until `at`."""

_NEXT: Mapping[ConditionCode | Reason, Next] = {
    ConditionCode.QUEUE_RUNNING: Next.QUEUE_RESUMES,
    ConditionCode.QUEUE_LANDS: Next.QUEUE_RESUMES,
    ConditionCode.NO_HOLD: Next.HOLD_LIFTED,
    ConditionCode.NO_CONFLICT_AHEAD: Next.CONFLICT_CLEARS,
    ConditionCode.ITS_TURN: Next.RUN_STARTS,
    ConditionCode.FAIR_SHARE: Next.RUN_STARTS,
    ConditionCode.FEW_RUNS: Next.SLOT_FREES,
    ConditionCode.FEW_ON_ALL: Next.AHEAD_DECIDED,
    ConditionCode.LINE_PASSES: Next.AHEAD_DECIDED,
    ConditionCode.BATCH_COMPLETE: Next.BATCH_FILLS,
    ConditionCode.BASE_STARTABLE: Next.RUN_STARTS,
    ConditionCode.FREE_SLOT: Next.SLOT_FREES,
    ConditionCode.BRANCH_BUILT: Next.BRANCH_BUILT,
    ConditionCode.STATUS_PASSED: Next.CHECK_REPORTS,
    ConditionCode.EVIDENCE_RECEIVED: Next.EVIDENCE_ARRIVES,
    ConditionCode.AHEAD_DECIDED: Next.AHEAD_DECIDED,
    ConditionCode.SUCCESSORS_DECIDED: Next.SUCCESSOR_ENDS,
    ConditionCode.CAUSE_AHEAD: Next.AHEAD_DECIDED,
    ConditionCode.SUSPECTS_DECIDED: Next.AHEAD_DECIDED,
    ConditionCode.FOLLOWERS_AWAITED: Next.SUCCESSOR_ENDS,
    ConditionCode.BISECTION_DONE: Next.PROBE_ENDS,
    ConditionCode.CONFIRMED: Next.CONFIRMATION_ENDS,
    ConditionCode.AHEAD_LANDED: Next.LANDING_ENDS,
    ConditionCode.LANDING_FREE: Next.LANDING_ENDS,
    ConditionCode.OTHERS_MERGE: Next.OTHERS_MERGE,
}
"""The kind of news awaited while a condition is open; of the others it is that facts change."""


def of_not_ready(draft: Draft, entry: Entry) -> Iterator[Condition]:
    """Return every condition of readiness; impacted targets only if the queue needs them.

    One that may be met and is not known to be is left out: another one says what is awaited.
    """
    unknown = _unknown_of(draft.queue, entry)
    hours = draft.queue.config.not_ready_timeout_hours
    is_limited = hours and not waiting.is_patient(entry)
    limit = entry.state_since + timedelta(hours=hours) if is_limited else None
    for reason, need in NEEDS.items():
        met = reason not in entry.unmet
        if reason in _WAITS and not met:
            yield from _waits(entry, reason, limit)
            continue
        is_unknown = reason in unknown or need.listed is Listed.OPEN
        if met and (is_unknown or _is_idle(draft.queue, entry, reason)):
            continue
        waits_until = entry.build_after if reason in leaving.CI_WAITS else None
        name = "" if met else _name_of(entry, reason)
        absent: tuple[int, ...] = ()
        acts = who(reason, met=met)
        if reason is Reason.STACKED and name:
            listed = (int(word) for word in name.split() if word.isdecimal())
            absent = tuple(pr for pr in listed if pr not in draft.entries)
            acts = acts if absent else WhoMustAct.NOBODY
        yield Condition(
            code=reason,
            met=met,
            who_must_act=acts,
            since=None if met else entry.state_since,
            prs=absent,
            name=name,
            at=None if met else waits_until or _tried_again(entry, reason, limit),
        )


def not_judged(queue: MergeQueue, entry: Entry) -> Iterator[Condition]:
    """Yield that nobody knows what it takes back, if that could not be judged, with the cause."""
    is_on = queue.config.undone_work is not UndoneWork.OFF
    if is_on and entry.work is not None and entry.work.trouble:
        yield Condition(Reason.UNDOES_LANDED_WORK, met=True, name=entry.work.trouble)


_WAITS = frozenset({Reason.WAITS_FOR_RULE, Reason.NOT_BEFORE, Reason.DEPENDS_ON})


def _waits(entry: Entry, reason: Reason, limit: datetime | None) -> Iterator[Condition]:
    """Yield a wait for a rule, each rule by itself, for a time, or for pull requests."""
    plain = Condition(reason, met=False, since=entry.state_since)
    if reason is Reason.DEPENDS_ON:
        name = " ".join(map(str, entry.facts.depends_on))
        yield replace(plain, name=name, prs=entry.facts.depends_on)
    elif reason is Reason.NOT_BEFORE:
        seen = entry.facts.seen
        yield replace(plain, at=None if seen is None else seen.not_before)
    for one in entry.waits if reason is Reason.WAITS_FOR_RULE else ():
        acts = reason.record.who if one.until is None else WhoMustAct.NOBODY
        yield replace(plain, who_must_act=acts, name=one.rule, word=one.text, at=one.until or limit)


def _unknown_of(queue: MergeQueue, entry: Entry) -> Set[Reason]:
    """Return the reasons of which the absence says nothing: the facts about them are not known."""
    if Reason.FACTS_UNKNOWN in entry.unmet:
        return NEEDS.keys()
    found: set[Reason] = set()
    if entry.facts.mergeability not in (Mergeability.MERGEABLE, Mergeability.NOT_MERGEABLE):
        found.add(Reason.CONFLICT_TARGET)
    if any(blocker.code is BlockerCode.CHECK_MISSING for blocker in entry.facts.blockers):
        found.add(Reason.CHECK_PENDING)
    if queue.required is None or queue.required.source is None:
        found |= {reason for reason, need in NEEDS.items() if need.follows_rules}
    return found


def _tried_again(entry: Entry, reason: Reason, limit: datetime | None) -> datetime | None:
    """Return when a clock ends the condition: after the wait for a refusal, or the longest wait."""
    refusal = entry.refusal
    return refusal.until if refusal is not None and refusal.reason is reason else limit


def still_ready(entry: Entry) -> Iterator[Condition]:
    """Yield what a placed entry has lost of its readiness; one met condition when nothing."""
    if not entry.unmet:
        yield Condition(ConditionCode.STILL_READY, met=True)
    yield from lost_readiness(entry)


def lost_readiness(entry: Entry, prs: tuple[int, ...] = ()) -> Iterator[Condition]:
    """Each predicate that a placed entry meets no more; `prs` names it to others."""
    limit = None
    if entry.unready_since is not None:
        limit = entry.unready_since + readiness.grace_of(entry)
    for reason in entry.unmet:
        yield Condition(
            ConditionCode.STILL_READY,
            met=False,
            who_must_act=_who_ends(entry, reason),
            since=entry.unready_since,
            prs=prs,
            name=_name_of(entry, reason),
            word=reason.value,
            at=limit,
        )


def _who_ends(entry: Entry, reason: Reason) -> WhoMustAct:
    """Return who must act; nobody where a time ends the wait for each rule."""
    is_timed = all(one.until is not None for one in entry.waits)
    return WhoMustAct.NOBODY if reason is Reason.WAITS_FOR_RULE and is_timed else reason.record.who


def statuses(run: Run) -> Iterator[Condition]:
    """Every required status of a run with what its report says; failed ones come first."""
    standings = verdict.standings_of(run)
    for one in sorted(standings, key=lambda each: each.outcome is not CheckOutcome.FAILED):
        passed = one.outcome in (CheckOutcome.PASSED, CheckOutcome.SKIPPED)
        met = passed or one.required.name in run.excused
        blocked = one.outcome is CheckOutcome.BLOCKED
        yield Condition(
            ConditionCode.STATUS_PASSED,
            met,
            WhoMustAct.MAINTAINER if blocked else WhoMustAct.NOBODY,
            since=one.check.started_at if one.check is not None else run.built_at,
            url=one.named.url or None,
            name=one.required.name,
            word=one.outcome.value if one.outcome is not None else MISSING,
            foreign=one.named.foreign,
            doom=one.doom,
            at=None if met else _decided_at(run),
        )


def _decided_at(run: Run) -> datetime | None:
    """Return when time alone decides about a run; a warning decides nothing."""
    is_warning = run.deadline is not None and run.deadline == verdict.warns_at(run)
    return verdict.gives_up_at(run) if is_warning else run.deadline


def evidence(run: Run, now: datetime) -> Iterator[Condition]:
    """Yield what the flaky half knows of a failure, while it is waited for or once it is in."""
    if run.asked_evidence is None:
        return
    limit = run.asked_evidence + verdict.EVIDENCE_WAIT
    got = run.evidence is not None and run.evidence.gaps.keys() <= run.evidence.explanations.keys()
    if got or now < limit:
        yield Condition(
            ConditionCode.EVIDENCE_RECEIVED,
            got,
            since=run.asked_evidence,
            at=None if got else limit,
        )


def next_after(open_one: Condition) -> Next:
    """Return which kind of news can change an open condition."""
    if open_one.code is ConditionCode.NO_HOLD and not open_one.name:
        # No hold: the branch is still to be read, which Headgate does by itself.
        return Next.RETRY
    if open_one.word == QueueState.SWITCHING_MODES:
        return Next.MODE_CHANGES
    if open_one.code is ConditionCode.STATUS_PASSED and open_one.word == CheckOutcome.FAILED:
        return Next.FAILURE_COUNTS
    return _NEXT.get(open_one.code, Next.FACTS_CHANGE)


def may_start(draft: Draft) -> Iterator[Condition]:
    """Return the conditions under which the queue starts test runs."""
    queue = draft.queue
    running = queue.state is QueueState.RUNNING
    yield _queue_is(queue, ConditionCode.QUEUE_RUNNING, met=running)
    yield from _no_hold(draft, holds.stops_starts(queue))


def may_land(draft: Draft, run: str | None, *, met: bool) -> Iterator[Condition]:
    """Return the conditions under which entries may land by this run; `met` by the state."""
    yield _queue_is(draft.queue, ConditionCode.QUEUE_LANDS, met=met)
    yield from _no_hold(draft, holds.stops_landings(draft.queue, run))


def who(reason: Reason, *, met: bool) -> WhoMustAct:
    """Return who must act while the reason exists."""
    return WhoMustAct.NOBODY if met else reason.record.who


def _is_idle(queue: MergeQueue, entry: Entry, reason: Reason) -> bool:
    """Return whether the condition has no effect now.

    SINGLE mode ignores impacted targets. The base of a stack's member changes by itself once
    those below it have merged.
    """
    if reason is Reason.BASE_MISMATCH:
        return entry.facts.base != queue.branch
    return reason is Reason.IMPACTED_TARGETS_MISSING and queue.config.mode is Mode.SINGLE


def _name_of(entry: Entry, reason: Reason) -> str:
    if reason is Reason.BASE_MISMATCH:
        return entry.facts.base
    if reason is Reason.WAITS_FOR_RULE:
        return ", ".join(one.rule for one in entry.waits)
    if reason is Reason.UNDOES_LANDED_WORK:
        return undone.names_of(entry)
    if reason in ASIDE:
        return ", ".join(check.name for check in entry.detail.checks)
    if entry.refusal is not None and entry.refusal.reason is reason:
        return entry.refusal.name
    names = readiness.blocker_names(entry, reason)
    return ", ".join(name for name in names if name != readiness.WORKFLOWS)


def _queue_is(queue: MergeQueue, code: ConditionCode, *, met: bool) -> Condition:
    goes_on = met or queue.state is QueueState.SWITCHING_MODES
    acts = WhoMustAct.NOBODY if goes_on else WhoMustAct.MAINTAINER
    return Condition(code, met, acts, since=queue.state_since, word=queue.state.value)


def _no_hold(draft: Draft, stops: tuple[Hold, ...]) -> Iterator[Condition]:
    queue = draft.queue
    known = queue.required is not None and queue.tip is not None and queue.kept_move is None
    if not stops and not known:
        # Nothing is wrong; the branch and its rules, or its newest move, are yet to be taken in.
        yield Condition(ConditionCode.NO_HOLD, met=False)
    elif not stops and not queue.holds:
        yield Condition(ConditionCode.NO_HOLD, met=True)
    yield from _held(draft, stops)


def landing_holds(draft: Draft) -> Iterator[Condition]:
    """Holds that let tests begin and nothing land: what an entry meets later on."""
    starts = holds.stops_starts(draft.queue)
    later = tuple(hold for hold in holds.stops_landings(draft.queue) if hold not in starts)
    yield from _held(draft, later)


def _held(draft: Draft, stops: tuple[Hold, ...]) -> Iterator[Condition]:
    for hold in stops:
        at = hold.until
        tried: tuple[int, ...] = ()
        if hold.reason in BREAKER_HOLDS:
            # A try that may begin waits for a slot or a pull request, and not for a time.
            try_at = draft.queue.breaker.try_at
            at = try_at if try_at is not None and try_at > draft.now else None
            tried = tuple(pr for run in draft.runs.of_kind(RunKind.TRY) for pr in run.prs)
        yield Condition(
            ConditionCode.NO_HOLD,
            met=False,
            who_must_act=holds.who_lifts(hold.reason),
            since=hold.since,
            prs=tried,
            name=hold.id,
            word=hold.reason.value,
            at=at,
        )
