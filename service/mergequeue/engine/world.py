"""What concerns the whole queue: required statuses, rules, the repository (ENGINE.md 4, 12, 16)."""

from dataclasses import replace

from service.mergequeue.engine import holds, leaving, settling, verdict
from service.mergequeue.engine.draft import Draft
from service.mergequeue.engine.inputs import (
    RepositoryChanged,
    RequiredChanged,
    RulesChanged,
    TimePassed,
    WorkflowsChanged,
)
from service.mergequeue.engine.model import Detail, Named, Run
from service.mergequeue.engine.outputs import RequiredStatusesChanged
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.states import RunKind, RunStatus
from service.vocabulary import CheckOutcome, RequiredName

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
    """What must pass, as read now. Unreadable is not "none": then nothing starts or lands."""
    if one.error is not None:
        wish = holds.Wish(HoldReason.REQUIRED_STATUSES_UNREADABLE, one.error)
        holds.place_once(draft, wish)
        return
    holds.release_all(draft, _UNREADABLE, "the required statuses were read")
    if one.required.source is None:
        text = f"no status is required for {draft.queue.branch}"
        holds.place_once(draft, holds.Wish(HoldReason.REQUIRED_STATUSES_MISSING, text))
    else:
        holds.release_all(draft, _MISSING, "required statuses were found")
    known = draft.queue.required
    if one.required != known:
        draft.put_queue(replace(draft.queue, required=one.required))
    if known is None or (one.required.names, one.required.source) != (known.names, known.source):
        leaving.try_again(draft, draft.entries.values())
        names = tuple(required.name for required in one.required.names)
        draft.say(RequiredStatusesChanged(names))
    for run in list(draft.runs.values()):
        added = tuple(name for name in one.required.names if name not in run.required)
        if added:
            _grow(draft, run, added)


def rules_changed(draft: Draft, _one: RulesChanged) -> None:
    """What rules refused may be tried again."""
    holds.release_all(draft, REFUSED_BY_RULES, "rules at the provider changed")
    leaving.try_again(draft, draft.entries.values())
    for entry in list(draft.entries.values()):
        if entry.barred or entry.refusal is not None:
            draft.put(replace(entry, barred=(), refusal=None))


def workflows_changed(draft: Draft, _one: WorkflowsChanged) -> None:
    """Entries whose checks were skipped are tested again: their checks may run now."""
    waiting = [entry for entry in draft.entries.values() if Reason.NO_EVIDENCE in entry.barred]
    leaving.try_again(draft, waiting)


def repository_changed(draft: Draft, one: RepositoryChanged) -> None:
    """Whether we can work on the repository at all, and whether it sends test results."""
    sends = one.sends_results
    if sends is not None and sends != draft.queue.sends_results:
        draft.put_queue(replace(draft.queue, sends_results=sends))
    if one.available:
        holds.release_all(draft, _REPOSITORY, "the repository is available")
    if one.hold is not None or one.available is False:
        reason = one.hold or HoldReason.REPOSITORY_UNAVAILABLE
        holds.place_once(draft, holds.Wish(reason, one.text or reason.value))


def time_passed(_draft: Draft, _one: TimePassed) -> None:
    """Nothing but the clock, which every planning looks at."""


def _grow(draft: Draft, run: Run, added: tuple[RequiredName, ...]) -> None:
    """Await the added statuses too; a result that was taken over cannot have them."""
    is_borrowed = run.reused_from is not None or run.kind is RunKind.DIRECT
    if is_borrowed:
        detail = Detail(run=run.id, checks=tuple(Named(name.name, "") for name in added))
        leaving.begin_anew(draft, run, Reason.REQUIRED_STATUS_ADDED, detail)
        return
    grown = replace(run, required=(*run.required, *added), start_clock=draft.now)
    grown = verdict.with_clocks(run, grown, draft.now)
    draft.put_run(grown)
    is_passed = run.status is RunStatus.SUCCEEDED and not run.contained
    own = draft.own(run)
    if not is_passed or not own or leaving.is_landing(draft, own[0]):
        return
    outcomes = {one.outcome for one in verdict.standings_of(grown) if one.required in added}
    if not outcomes <= {CheckOutcome.PASSED, CheckOutcome.SKIPPED, CheckOutcome.FAILED}:
        settling.test_again(draft, grown, Reason.REQUIRED_STATUS_ADDED)
