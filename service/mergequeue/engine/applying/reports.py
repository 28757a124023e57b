"""Apply what the world did to runs and pull requests, one function each.

Each changes only what its report names; a report about what is over changes nothing.

See docs/design/testing.md 4; docs/design/engine.md 7, 8.
"""

from service.mergequeue.engine.applying import priorities
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.inputs import (
    ChecksReported,
    EstimateChanged,
    EvidenceReported,
    FactsChanged,
    FailureForeseen,
    LandedWorkJudged,
    PassRevoked,
    PullRequestGone,
    RatesMeasured,
    RepositoryChanged,
    RequiredChanged,
    RerunRefused,
    RulesChanged,
    WorkflowsChanged,
)
from service.mergequeue.engine.model import Detail, Entry, Named, RequiredSet, Run
from service.mergequeue.engine.outputs import RequiredStatusesChanged
from service.mergequeue.engine.planning import repeating, reuse, settling
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.reported import Rates
from service.mergequeue.engine.state import bases, holds, leaving, readiness, undone
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState, RunKind, RunPhase, RunStatus
from service.vocabulary import BY_SETTING, Check, CheckOutcome, RequiredName

_WHOLE = frozenset({RunKind.DIRECT, RunKind.TIP})
"""Kinds of runs whose required checks are awaited to their end."""


def facts_changed(draft: Draft, one: FactsChanged) -> None:
    """A fresh read of a pull request: it may end the submission, or change its readiness."""
    facts = one.facts
    if facts.depends_on:
        # A read may show one as open for a moment after it has landed.
        landed = {step.pr for step in draft.queue.landed}
        for number in facts.depends_on:
            facts = facts.without_dependency(number) if number in landed else facts
    entry = draft.entries.get(facts.pr)
    if entry is None or entry.facts == facts:
        return
    reason = readiness.leaving_of(entry.facts, facts, entry, draft.queue.branch)
    skips_differ = entry.facts.own_skipped != facts.own_skipped
    if facts.base == draft.queue.branch != entry.facts.base:
        entry = replace(entry, rested_on=entry.facts.base)
    before, entry = entry, replace(entry, facts=facts)
    if reason is None:
        draft.put(entry)
        undone.tell_if_changed(draft, before)
        if skips_differ:
            # What may be skipped on its test branch is another thing now.
            draft.judging |= draft.runs.keys() & {entry.run}
            leaving.try_again(draft, (entry,))
        _take_own_checks(draft, entry)
        priorities.follow_rules(draft, draft.entries[entry.pr])
        return
    detail = readiness.evidence_of_leaving(reason, facts)
    if reason in bases.SEEN_MERGED and entry.cancel is None:
        # The target's move comes as a report of its own: with it, predicted trees can be kept.
        by = draft.now + readiness.MERGE_SEEN
        entry = replace(
            entry,
            cancel=reason,
            cancel_detail=detail,
            build_after=by,
            landed_sha=facts.merged_sha,
        )
        draft.put(entry)
        return
    draft.put(entry)
    leaving.leave(draft, entry, leaving.state_after(reason), reason, detail)


def _take_own_checks(draft: Draft, entry: Entry) -> None:
    """Judge a direct merge by the checks that its head has now; unread ones change nothing."""
    run, facts = draft.runs.get(entry.run or ""), entry.facts
    if run is None or run.kind is not RunKind.DIRECT or facts.contains_tip is None:
        return
    if run.checks != facts.own_checks:
        draft.put_run(replace(run, checks=facts.own_checks))
        draft.judging.add(run.id)


def landed_work_judged(draft: Draft, one: LandedWorkJudged) -> None:
    """Take what a queued head would undo on the present tip; a judgement of another is ignored."""
    entry = draft.entries.get(one.pr)
    if entry is None or not undone.is_current(draft, entry.head, one.work):
        return
    if entry.work != one.work:
        draft.put(replace(entry, work=undone.newer(entry, one.work)))
        undone.tell_if_changed(draft, entry)
    if undone.is_superseded(draft, draft.entries[one.pr]):
        undone.supersede(draft, draft.entries[one.pr])


def pull_request_gone(draft: Draft, one: PullRequestGone) -> None:
    """The pull request does not exist any more."""
    entry = draft.entries.get(one.pr)
    if entry is not None:
        detail = Detail(text="the provider does not know this pull request any more")
        leaving.leave(draft, entry, EntryState.CANCELLED, Reason.PR_GONE, detail)


def estimate_changed(draft: Draft, one: EstimateChanged) -> None:
    """A new chance of failing."""
    entry = draft.entries.get(one.pr)
    if entry is not None and entry.p_fail != one.p_fail:
        draft.put(replace(entry, p_fail=one.p_fail))


def rates_measured(draft: Draft, one: RatesMeasured) -> None:
    """The queue's rates as its history shows them now."""
    rates = Rates(one.flake, one.conflict, one.minutes, one.foreseen)
    if draft.queue.rates != rates:
        draft.put_queue(replace(draft.queue, rates=rates))


def checks_reported(draft: Draft, one: ChecksReported) -> None:
    """The whole present set of reports on a run's commit; only on exactly that commit."""
    run = _tested(draft, one.run)
    if run is None or one.sha != run.sha or repeating.is_under_way(draft, run):
        return
    if one.checks == run.checks and one.complete == run.checks_complete:
        return
    after = replace(
        run,
        checks=one.checks,
        checks_complete=one.complete,
        last_report_at=draft.now,
        rerun_ids=_still_old(run, one.checks),
    )
    draft.put_run(verdict.with_clocks(run, after, draft.now))


def rerun_refused(draft: Draft, one: RerunRefused) -> None:
    """The provider cannot run those checks again: the same on a new test branch."""
    run = _tested(draft, one.run)
    if run is None or run.status is not RunStatus.IN_PROGRESS or run.rerun_at is None:
        return
    if run.repeats is not None:
        repeating.refused(draft)
    text = "the provider could not run its checks again"
    detail = Detail(text=f"{text}: {one.why}" if one.why else text, run=run.id)
    settling.retry_on_new_branch(draft, run, detail)


def evidence_reported(draft: Draft, one: EvidenceReported) -> None:
    """Store what the flaky half knows of the present attempt; late it changes what is undecided."""
    run = _tested(draft, one.run)
    if run is None or one.evidence.attempt != run.attempt or run.evidence == one.evidence:
        return
    draft.put_run(replace(run, evidence=one.evidence))


def pass_revoked(draft: Draft, one: PassRevoked) -> None:
    """Let passed checks of a run count as failed; their results are not reused."""
    run = _tested(draft, one.run)
    if run is None or set(one.checks) <= set(run.revoked):
        return
    after = replace(run, revoked=tuple(sorted({*run.revoked, *one.checks})))
    draft.put_run(verdict.with_clocks(run, after, draft.now))
    reuse.forget(draft, run)


def failure_foreseen(draft: Draft, one: FailureForeseen) -> None:
    """Store which required checks of the present attempt cannot pass any more.

    Only tests of entries on a test branch may fail early: a direct merge is judged by the reports
    on its head, and a tip by the whole of its tests.
    """
    run = _tested(draft, one.run)
    if run is None or run.kind in _WHOLE or one.attempt != run.attempt or one.doomed == run.doomed:
        return
    draft.put_run(verdict.with_clocks(run, replace(run, doomed=one.doomed), draft.now))


def _tested(draft: Draft, run_id: str) -> Run | None:
    """Return the live run, if its test branch is built."""
    run = draft.runs.get(run_id)
    return run if run is not None and run.phase is RunPhase.TESTING else None


def _still_old(run: Run, checks: tuple[Check, ...]) -> tuple[str, ...]:
    """Reports of earlier attempts that count no more; one that changed belongs to this attempt."""
    if not run.rerun_ids:
        return ()
    before = {check.id: check for check in run.checks}
    changed = {check.id for check in checks if before.get(check.id, check) != check}
    return tuple(known for known in run.rerun_ids if known not in changed)


REFUSED_BY_RULES = frozenset(
    {
        HoldReason.RULE_DENIED,
        HoldReason.STRICT_CHECKS,
        HoldReason.METHOD_DENIED,
        HoldReason.TEST_BRANCH_DENIED,
        HoldReason.PROVIDER_QUEUE,
    }
)
"""Holds by rules of the provider: a change of rules may end them."""

_REPOSITORY = frozenset(
    {
        HoldReason.PERMISSION_LOST,
        HoldReason.PROVIDER_UNAVAILABLE,
        HoldReason.REPOSITORY_UNAVAILABLE,
    }
)
_UNREADABLE = frozenset({HoldReason.REQUIRED_STATUSES_UNREADABLE})
_MISSING = frozenset({HoldReason.REQUIRED_STATUSES_MISSING})


def required_changed(draft: Draft, one: RequiredChanged) -> None:
    """Store what must pass, as read now. Unreadable is not "none": then nothing starts or lands."""
    if one.error is not None:
        request = holds.HoldRequest(HoldReason.REQUIRED_STATUSES_UNREADABLE, one.error)
        holds.place_once(draft, request)
        return
    holds.release_all(draft, _UNREADABLE, "the required statuses were read")
    if one.required.source is None:
        text = f"no status is required for {draft.queue.branch}"
        holds.place_once(draft, holds.HoldRequest(HoldReason.REQUIRED_STATUSES_MISSING, text))
    else:
        holds.release_all(draft, _MISSING, "required statuses were found")
    known = draft.queue.required
    if one.required != known:
        draft.put_queue(replace(draft.queue, required=one.required))
    if known is None or _by_rules(known) != _by_rules(one.required):
        leaving.try_again(draft, draft.entries.values())
        names = tuple(required.name for required in one.required.names)
        draft.record(RequiredStatusesChanged(names))
    for run in list(draft.runs.values()):
        required = _required_of(run, one.required)
        if required != run.required:
            _grow(draft, run, required)


def _by_rules(required: RequiredSet) -> tuple[object, ...]:
    """Return what rules and settings require; who reports it may have been learned since."""
    return (required.source, *(one if _is_given(one) else one.name for one in required.names))


def _is_given(one: RequiredName) -> bool:
    return one.binding is None or one.binding.on == BY_SETTING


def _required_of(run: Run, now: RequiredSet) -> tuple[RequiredName, ...]:
    """Return what a run has to pass: all that it had, and what is required now.

    Of a name that no rule of the branch binds to an App only whose reports count now: that may
    have been learned since. A name that only heads are asked for is required of no run.
    """
    here = {one.name: one for one in now.names}
    on_heads = {one.name for one in now.on_heads}
    kept = [one for one in run.required if one.name not in on_heads]
    bound = [
        here[one.name]
        if one.name in here and one not in now.names and _is_rebound(one, here[one.name])
        else one
        for one in kept
    ]
    return tuple(dict.fromkeys((*bound, *now.names)))


def _is_rebound(before: RequiredName, after: RequiredName) -> bool:
    return before.binding is not None or before.source_id in (None, after.source_id)


def rules_changed(draft: Draft, _one: RulesChanged) -> None:
    """Allow another try of what rules refused."""
    holds.release_all(draft, REFUSED_BY_RULES, "rules at the provider changed")
    leaving.try_again(draft, draft.entries.values())
    for entry in list(draft.entries.values()):
        if entry.barred or entry.refusal is not None:
            draft.put(replace(entry, barred=(), refusal=None))


def workflows_changed(draft: Draft, one: WorkflowsChanged) -> None:
    """Entries whose checks were skipped are tested again: their checks may run now.

    Skips of checks that the files exclude from test branches do not count any more.
    """
    if one.never is not None:
        history = draft.queue.check_history.with_files(one.never, draft.now)
        draft.put_queue(replace(draft.queue, check_history=history))
        draft.judging |= draft.runs.keys()
    leaving.try_unproved_again(draft)


def repository_changed(draft: Draft, one: RepositoryChanged) -> None:
    """Return whether we can work on the repository at all, and whether it sends test results."""
    sends = one.sends_results
    if sends is not None and sends != draft.queue.sends_results:
        draft.put_queue(replace(draft.queue, sends_results=sends))
    if one.reruns is not None and one.reruns != (draft.queue.reruns_from is not None):
        draft.put_queue(replace(draft.queue, reruns_from=draft.now if one.reruns else None))
    if one.available:
        holds.release_all(draft, _REPOSITORY, "the repository is available")
    if one.hold is not None or one.available is False:
        reason = one.hold or HoldReason.REPOSITORY_UNAVAILABLE
        holds.place_once(draft, holds.HoldRequest(reason, one.text or reason.value))


def _grow(draft: Draft, run: Run, required: tuple[RequiredName, ...]) -> None:
    """Await the added statuses too; a result that was taken over cannot have them."""
    added = tuple(one for one in required if one not in run.required)
    if not added:
        draft.put_run(verdict.with_clocks(run, replace(run, required=required), draft.now))
        return
    is_borrowed = run.reused_from is not None or run.kind is RunKind.DIRECT
    if is_borrowed:
        detail = Detail(run=run.id, checks=tuple(Named(name.name, "") for name in added))
        leaving.begin_anew(draft, run, Reason.REQUIRED_STATUS_ADDED, detail)
        return
    grown = replace(run, required=required, start_clock=draft.now)
    grown = verdict.with_clocks(run, grown, draft.now)
    draft.put_run(grown)
    is_passed = run.status is RunStatus.SUCCEEDED and not run.contained
    own = draft.own(run)
    if not is_passed or not own or leaving.is_landing(draft, own[0]):
        return
    outcomes = {one.outcome for one in verdict.standings_of(grown) if one.required in added}
    if not outcomes <= {CheckOutcome.PASSED, CheckOutcome.SKIPPED, CheckOutcome.FAILED}:
        settling.test_again(draft, grown, Reason.REQUIRED_STATUS_ADDED)
