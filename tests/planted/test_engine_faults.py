"""Every planted fault of the engine is caught within its seeds (RELIABILITY.md 11)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

import pytest

from service.errors import InvariantBroken
from service.mergequeue import (
    apply,
    bases,
    inputs,
    landing,
    leaving,
    line,
    reports,
    reuse,
    starting,
    verdict,
    world,
)
from service.mergequeue.draft import Draft
from service.mergequeue.model import NOTHING, Detail, Entry, Green, RequiredSet, Run
from service.mergequeue.reasons import Reason
from service.mergequeue.states import EntryState, QueueState
from service.vocabulary import Check, CheckOutcome, RequiredName, RequiredSource
from tests.simulation.checker import Violation
from tests.simulation.world import World

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


SEEDS = range(120)
"""Histories of which one must show the fault; all of them are sound without it."""


def _replaced(one: object, name: str, new: object) -> Plant:
    return lambda patch: patch.setattr(one, name, new)


def _applied(kind: type, applier: Callable) -> Plant:
    return lambda patch: patch.setitem(apply.APPLIERS, kind, applier)


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


_newest = verdict.newest


def _unreadable_is_none(draft: Draft, one: inputs.RequiredChanged) -> None:
    if one.error is not None:
        none = RequiredSet((), RequiredSource.BRANCH_PROTECTION)
        one = inputs.RequiredChanged(none)
    world.required_changed(draft, one)


def _any_app(
    required: RequiredName, counting: tuple[Check, ...], old: frozenset[str] = frozenset()
) -> verdict.Standing:
    return _standing(RequiredName(required.name), counting, old)


_standing = verdict.standing


def _lands_while_paused(draft: Draft) -> bool:
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


def _to_the_tail(draft: Draft, entry: Entry, reason: Reason, detail: Detail = NOTHING) -> Entry:
    back = _restart(draft, entry, reason, detail)
    last = draft.places.line[-1][0] if draft.places.line else 0
    draft.put(replace(back, rank=last + line.GAP))
    return draft.entries[back.pr]


_restart = leaving.restart


def _dropped_with_its_run(
    draft: Draft, entry: Entry, reason: Reason, detail: Detail = NOTHING
) -> Entry:
    for run in draft.runs_of(entry):
        draft.retire(run, reason)
    draft.places.remove(draft.entries[entry.pr])
    del draft.entries[entry.pr]
    draft.touched.discard(entry.pr)
    draft.revision += 1
    return entry


def _testing_too(draft: Draft) -> object:
    for _, pr in list(draft.places.line):
        entry = draft.entries[pr]
        if entry.state in (EntryState.PENDING, EntryState.TESTING) and not entry.held_by:
            yield entry


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


def _landed_restarts(draft: Draft, run: Run) -> int | None:
    """A landing that was predicted counts as a foreign push."""
    return 0 if draft.queue.tip == run.base_tip else None


def _failed_base_holds(draft: Draft, run: Run) -> bases.Broken | None:
    why = _broken(draft, run)
    return None if why is not None and why.reason is Reason.AHEAD_FAILED else why


_broken = bases.broken


def _kept_while_landing(draft: Draft, entry: Entry) -> bool:
    return False


def _no_settling(run: Run, now: datetime, sends_results: bool) -> verdict.Verdict:
    one = _verdict_of(run, now, sends_results)
    if one.word is verdict.Word.WAITING and run.checks:
        return verdict.Verdict(verdict.Word.PASSED)
    return one


_verdict_of = verdict.verdict_of

FAULTS: Mapping[str, Plant] = {
    "B6 a push to a queued pull request is ignored": _applied(inputs.FactsChanged, _push_ignored),
    "B8 reports on another commit count for the run": _applied(
        inputs.ChecksReported, _any_commits_reports
    ),
    "B9 an unknown conclusion passes": _replaced(verdict, "newest", _unknown_passes),
    "B10 unreadable required statuses are none": _applied(
        inputs.RequiredChanged, _unreadable_is_none
    ),
    "B11 a status added before landing is not awaited": _replaced(
        world, "_grow", lambda draft, run, added: None
    ),
    "B12 another App's check of the same name counts": _replaced(verdict, "standing", _any_app),
    "B13 a run stands although one in its base failed": _replaced(
        bases, "broken", _failed_base_holds
    ),
    "B16 a paused queue lands": _replaced(landing, "is_open", _lands_while_paused),
    "B18 a draining queue starts runs": _replaced(starting, "_ground", _starts_while_draining),
    "B19 a failure is judged before its base is sure": _replaced(
        bases, "is_sure", lambda draft, run: True
    ),
    "B21 a rebuilt entry goes to the tail": _replaced(leaving, "restart", _to_the_tail),
    "B22 medium priority interrupts": _replaced(line, "URGENT", 100),
    "B28 an earlier event wins over what is read now": _applied(
        inputs.ChecksReported, _green_for_ever
    ),
    "B33 an entry is dropped with its voided run": _replaced(
        leaving, "restart", _dropped_with_its_run
    ),
    "B34 two live runs hold one entry": _replaced(starting, "_placed", _testing_too),
    "B44 a result is reused for another tree": _replaced(reuse, "green_of", _any_green),
    "a predicted landing restarts those behind": _replaced(bases, "landed_count", _landed_restarts),
    "a run passes before all its checks have": _replaced(verdict, "verdict_of", _no_settling),
    "an entry leaves while its landing is in flight": _replaced(
        leaving, "is_landing", _kept_while_landing
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    for seed in SEEDS:
        try:
            World(seed).play()
        except (Violation, InvariantBroken):
            return
    pytest.fail(f"not caught in {len(SEEDS)} histories: {name}")
