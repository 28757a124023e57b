"""Faults of one line of pull requests, each tested alone: the verdict, the base, the landing."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from service import check_reports
from service.mergequeue.engine import inputs
from service.mergequeue.engine.applying import reports
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.culprits.verdict import Standing
from service.mergequeue.engine.model import (
    NOTHING,
    Detail,
    Entry,
    Green,
    LandMode,
    RequiredSet,
    Run,
    Tip,
)
from service.mergequeue.engine.planning import landing, reuse, starting, untested
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.reported import CheckHistory
from service.mergequeue.engine.state import bases, holds, leaving, line, readiness, stacks
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.places import Progress
from service.mergequeue.engine.states import QueueState
from service.vocabulary import Check, CheckOutcome, RequiredName, RequiredSource
from tests.exhaustive.scopes import HALF_WAY
from tests.planted.planting import Fault, applied, replaced
from tests.simulation import settings


def _push_ignored(draft: Draft, one: inputs.FactsChanged) -> None:
    entry = draft.entries.get(one.facts.pr)
    if entry is not None and one.facts.head != entry.head:
        return
    reports.facts_changed(draft, one)


def _any_commits_reports(draft: Draft, one: inputs.ChecksReported) -> None:
    run = draft.runs.get(one.run)
    if run is not None and run.sha is not None:
        one = replace(one, sha=run.sha)
    reports.checks_reported(draft, one)


def _unknown_passes(checks: Iterable[Check]) -> tuple[Check, ...]:
    return tuple(
        replace(check, outcome=CheckOutcome.PASSED)
        if check.outcome is CheckOutcome.UNKNOWN
        else check
        for check in _newest(checks)
    )


_newest = check_reports.counting


def _unreadable_is_none(draft: Draft, one: inputs.RequiredChanged) -> None:
    if one.error is not None:
        none = RequiredSet((), RequiredSource.BRANCH_PROTECTION)
        one = inputs.RequiredChanged(none)
    reports.required_changed(draft, one)


def _any_app(
    required: RequiredName, counting: tuple[Check, ...], *known: frozenset[str]
) -> verdict.Standing:
    return _standing(RequiredName(required.name), counting, *known)


_standing = verdict.standing


def _lands_while_paused(draft: Draft, run: str | None = None) -> bool:
    return True


def _starts_while_draining(draft: Draft) -> object:
    queue = draft.queue
    if queue.state is not QueueState.DRAINING:
        return _ground(draft)
    draft.queue = replace(queue, state=QueueState.RUNNING)
    ground = _ground(draft)
    draft.queue = queue
    return ground


_ground = starting._ground


def _starts_without_a_slot(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        holds,
        "stops_starts",
        lambda queue: tuple(
            one for one in _stops(queue) if one.reason is not HoldReason.PROVIDER_LIMIT
        ),
    )


_stops = holds.stops_starts
_WITH_DELAYS = replace(settings.SINGLE_ONLY, is_slow=1.0)


def _without_a_hold(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(untested, "_hold", lambda *_: None)


def _to_the_tail(draft: Draft, run: Run, reason: Reason, detail: Detail = NOTHING) -> None:
    own = draft.own(run)
    _restart(draft, run, reason, detail)
    for entry in own:
        last = draft.places.line[-1][0] if draft.places.line else 0
        draft.put(replace(draft.entries[entry.pr], rank=last + line.GAP))


_restart = leaving.restart


def _dropped_with_its_run(draft: Draft, run: Run, reason: Reason, detail: Detail = NOTHING) -> None:
    own = draft.own(run)
    draft.retire(run, reason)
    for entry in own:
        draft.places.remove(draft.entries[entry.pr])
        del draft.entries[entry.pr]
        draft.touched.discard(entry.pr)
        draft.revision += 1


def _any_green(draft: Draft, run: Run) -> Green | None:
    return next(iter(draft.queue.greens.values()), None)


def _green_for_ever(draft: Draft, one: inputs.ChecksReported) -> None:
    """What once was reported as passed is never taken back."""
    run = draft.runs.get(one.run)
    if run is not None:
        green = {check.name for check in run.checks if check.outcome is CheckOutcome.PASSED}
        checks = tuple(
            replace(check, outcome=CheckOutcome.PASSED) if check.name in green else check
            for check in one.checks
        )
        one = replace(one, checks=checks)
    reports.checks_reported(draft, one)


def _landed_restarts(draft: Draft, run: Run) -> Progress | None:
    """A landing that was predicted counts as a foreign push."""
    return _progress(draft, run) if draft.queue.tip == run.base_tip else None


_progress = bases.progress


def _failed_base_holds(draft: Draft, run: Run) -> bases.Broken | None:
    why = _broken(draft, run)
    return None if why is not None and why.reason is Reason.AHEAD_FAILED else why


_broken = bases.broken


def _kept_while_landing(draft: Draft, entry: Entry) -> bool:
    return False


def _no_settling(
    run: Run, now: datetime, sends_results: bool, skippable: frozenset[str] = frozenset()
) -> verdict.Verdict:
    one = _verdict_of(run, now, sends_results, skippable)
    if one.word is verdict.Word.WAITING and run.checks:
        return verdict.Verdict(verdict.Word.PASSED)
    return one


_verdict_of = verdict.verdict_of


def _skips_pass(
    required: RequiredName, counting: tuple[Check, ...], *known: frozenset[str]
) -> Standing:
    """A skipped check counts as passed, whatever the own head did."""
    one = _standing(required, counting, *known)
    return replace(one, outcome=CheckOutcome.PASSED) if one.outcome is _SKIPPED else one


_standing = verdict.standing
_SKIPPED = CheckOutcome.SKIPPED
_WITH_SKIPS = replace(settings.SINGLE_ONLY, skips_checks=1.0)


def _skips_pass_anywhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(verdict, "standing", _skips_pass)


def _everything_skippable(patch: pytest.MonkeyPatch) -> None:
    names = frozenset({"unit", "lint", "docs"})
    patch.setattr(verdict, "skippable_in", lambda run, entries, ran_lately: names)


def _runs_everywhere(patch: pytest.MonkeyPatch) -> None:
    """A check counts as one that can run though it ran on nothing that landed."""
    names = frozenset({"unit", "lint", "docs"})
    patch.setattr(CheckHistory, "ran_lately", lambda history, now: names)


def _unready_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(readiness, "grace_of", lambda entry: timedelta(days=3))


def _never_unsure(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bases, "is_sure", lambda draft, run: True)
    patch.setattr(bases, "is_undone", lambda draft, bisection, failed: None)


def _stack_by_update(draft: Draft, run: Run, tip: Tip) -> LandMode:
    for entry in draft.own(run):
        draft.entries[entry.pr] = replace(entry, facts=replace(entry.facts, in_stack=False))
    mode = _mode(draft, run, tip)
    for entry in draft.own(run):
        in_stack = draft.before.entries[entry.pr].facts.in_stack
        draft.entries[entry.pr] = replace(entry, facts=replace(entry.facts, in_stack=in_stack))
    return mode


_mode = landing._mode

_STACKS = replace(settings.SINGLE_ONLY, stacks=1.0)
_SCREENED_STACKS = replace(_STACKS, batch=1.0, adaptive=1.0)


FAULTS: Mapping[str, Fault] = {
    "a member of a stack is ready though one below it is not": Fault(
        lambda patch: patch.setattr(stacks, "waits", lambda *_: False), _STACKS
    ),
    "a member of a stack starts before one that waits below it": Fault(
        lambda patch: patch.setattr(stacks, "may_start", lambda *_: True), _SCREENED_STACKS
    ),
    "a member of a stack lands by the atomic update": Fault(
        lambda patch: patch.setattr(landing, "_mode", _stack_by_update), _STACKS
    ),
    "a skipped check counts as passed": Fault(_skips_pass_anywhere, _WITH_SKIPS),
    "a check may be skipped that ran on the own head": Fault(_everything_skippable, _WITH_SKIPS),
    "a check may be skipped that ran nowhere": Fault(_runs_everywhere, _WITH_SKIPS),
    "an entry that is not ready keeps its place for days": Fault(_unready_for_ever),
    "B6 a push to a queued pull request is ignored": applied(inputs.FactsChanged, _push_ignored),
    "B8 reports on another commit count for the run": applied(
        inputs.ChecksReported, _any_commits_reports
    ),
    "B9 an unknown conclusion passes": replaced(check_reports, "counting", _unknown_passes),
    "B10 unreadable required statuses are none": applied(
        inputs.RequiredChanged, _unreadable_is_none
    ),
    "B11 a status added before landing is not awaited": replaced(
        reports, "_grow", lambda draft, run, added: None
    ),
    "B12 another App's check of the same name counts": replaced(verdict, "standing", _any_app),
    "B13 a run stands although one in its base failed": replaced(
        bases, "broken", _failed_base_holds
    ),
    "B16 a paused queue lands": replaced(landing, "is_open", _lands_while_paused),
    "a target with a part of a unit is not held": Fault(_without_a_hold, scope=HALF_WAY),
    "B18 a draining queue starts runs": replaced(starting, "_ground", _starts_while_draining),
    "runs start that the provider's limits delay": Fault(_starts_without_a_slot, _WITH_DELAYS),
    "B19 a failure is judged before its base is sure": Fault(_never_unsure),
    "B21 a rebuilt entry goes to the tail": replaced(leaving, "restart", _to_the_tail),
    "B22 medium priority interrupts": replaced(line, "URGENT", 100),
    "B28 an earlier event wins over what is read now": applied(
        inputs.ChecksReported, _green_for_ever
    ),
    "B33 an entry is dropped with its voided run": replaced(
        leaving, "restart", _dropped_with_its_run
    ),
    "B34 two live runs hold one entry": replaced(leaving, "_let_go", lambda *_: None),
    "B44 a result is reused for another tree": replaced(reuse, "green_of", _any_green),
    "a predicted landing restarts those behind": replaced(bases, "progress", _landed_restarts),
    "a run passes before all its checks have": replaced(verdict, "verdict_of", _no_settling),
    "an entry leaves while its landing is in flight": replaced(
        leaving, "is_landing", _kept_while_landing
    ),
}
