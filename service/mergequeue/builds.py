"""What became of test branches: built, in conflict, refused, lost (ENGINE.md 12).

Each changes only its run and entry; a report about a run that is over changes nothing.
"""

from dataclasses import replace
from datetime import timedelta

from service.errors import InvariantBroken
from service.mergequeue import holds, leaving, reuse, settling
from service.mergequeue.draft import Draft
from service.mergequeue.inputs import (
    BuildRefusal,
    NothingToTest,
    TestBranchBuilt,
    TestBranchConflicted,
    TestBranchLost,
    TestBranchRefused,
)
from service.mergequeue.model import Detail, Entry, Run
from service.mergequeue.outputs import RunBuilt
from service.mergequeue.reasons import HoldReason, Reason
from service.mergequeue.states import EntryState, RunPhase, RunStatus

LOSSES_MAX = 2
"""Test branches that others may take from one entry."""

TRIES_MAX = 5
"""Refused builds after which an entry leaves."""

FIRST_WAIT = timedelta(minutes=1)
"""Before the second try; doubled each time."""

_HOLDS = {
    BuildRefusal.RULE_DENIED: HoldReason.TEST_BRANCH_DENIED,
    BuildRefusal.PROVIDER_QUEUE: HoldReason.PROVIDER_QUEUE,
    BuildRefusal.DRAFT_NOT_SUPPORTED: HoldReason.CONFIG_INVALID,
    BuildRefusal.TOO_LARGE: HoldReason.CONFIG_INVALID,
}
"""Refusals that concern every run of the queue."""


def built(draft: Draft, one: TestBranchBuilt) -> None:
    """The branch stands, or its tree is known: tests begin, or are not needed."""
    run = _building(draft, one.run)
    if run is None:
        return
    expected = [(member.pr, member.head) for member in (*run.base, *run.entries)]
    if [(step.pr, step.head) for step in one.steps] != expected:
        raise InvariantBroken("I5", f"run {run.id} was built of other heads than it was given")
    ready = replace(
        run,
        phase=RunPhase.TESTING,
        steps=one.steps,
        sha=one.sha,
        branch=one.branch,
        published=one.published,
        built_at=draft.now,
        start_clock=draft.now,
    )
    draft.put_run(ready)
    # What it predicts for its base may differ from what has landed of it meanwhile.
    draft.doubt_bases()
    draft.say(RunBuilt(run.id, one.sha))
    entry = replace(draft.tested_by(run), build_tries=0, build_after=None)
    draft.put(entry)
    green = reuse.green_of(draft, ready)
    if all(step.contained for step in one.steps[len(run.base) :]):
        settling.passed(draft, replace(ready, contained=True), Reason.RESULT_REUSED)
    elif green is not None:
        settling.passed(draft, replace(ready, reused_from=green.run), Reason.RESULT_REUSED)
    elif not one.published:
        # The result it relied on may not be used any more, and there is nothing to test.
        settling.retry_on_new_branch(draft, entry, Detail(run=run.id))


def nothing_to_test(draft: Draft, one: NothingToTest) -> None:
    """Its heads are in its base already: it stands and falls with the base."""
    run = _building(draft, one.run)
    if run is None:
        return
    ready = replace(
        run, phase=RunPhase.TESTING, contained=True, published=False, built_at=draft.now
    )
    draft.put_run(ready)
    settling.passed(draft, ready, Reason.RESULT_REUSED)


def conflicted(draft: Draft, one: TestBranchConflicted) -> None:
    """A head does not merge: with the target it fails, with somebody ahead it waits for them."""
    run = _building(draft, one.run)
    if run is None:
        return
    entry = draft.tested_by(run)
    if one.pr != entry.pr or entry.state is EntryState.PENDING_FAILURE:
        text = f"pull request {one.pr} did not merge while the test branch was built"
        _try_again(draft, entry, Detail(text=text, paths=one.paths, prs=(one.pr,)))
        return
    if one.with_base:
        detail = Detail(text="it conflicts with the target branch", paths=one.paths)
        leaving.leave(draft, entry, EntryState.FAILED, Reason.CONFLICT_TARGET, detail)
        return
    unlanded = tuple(member.pr for member in run.base if draft.entry_of(member) is not None)
    culprits = (one.culprit,) if one.culprit in unlanded else unlanded
    if not culprits:
        text = "it conflicted with a pull request that has landed or left since"
        _try_again(draft, entry, Detail(text=text, paths=one.paths))
        return
    held = replace(entry, held_by=tuple(pr for pr in culprits if pr is not None))
    detail = Detail(paths=one.paths, prs=held.held_by)
    leaving.restart(draft, held, Reason.CONFLICT_AHEAD, detail)


def refused(draft: Draft, one: TestBranchRefused) -> None:
    """The provider builds no such branch now."""
    run = _building(draft, one.run)
    if run is None:
        return
    entry = draft.tested_by(run)
    detail = Detail(text=one.text or one.code.value, run=run.id)
    if one.code is BuildRefusal.WORKFLOWS and one.pr in (None, entry.pr):
        barred = replace(entry, barred=(Reason.WORKFLOWS_PERMISSION_MISSING,))
        leaving.set_aside(draft, barred, Reason.WORKFLOWS_PERMISSION_MISSING, detail)
        return
    reason = _HOLDS.get(one.code)
    if reason is None:
        _try_again(draft, entry, detail)
        return
    until = None
    if reason is HoldReason.TEST_BRANCH_DENIED:
        until = draft.now + holds.TRY_AGAIN
    holds.place_once(draft, holds.Wish(reason, detail.text, until=until))
    _back(draft, entry, Reason.BUILD_RETRY, detail)


def lost(draft: Draft, one: TestBranchLost) -> None:
    """Somebody took the test branch away although it was put back once."""
    run = draft.runs.get(one.run)
    if run is None or run.phase is RunPhase.BUILDING or run.status is RunStatus.FAILED:
        return
    entry = draft.tested_by(run)
    if leaving.is_landing(draft, entry):
        return
    losses = entry.losses + 1
    entry = replace(entry, losses=losses)
    text = f"its test branch was taken away by {one.by or 'somebody'}"
    if losses > LOSSES_MAX:
        text = f"{text}, {losses} times in all"
        detail = Detail(text=text, run=run.id)
        leaving.leave(draft, entry, EntryState.CANCELLED, Reason.TEST_BRANCH_TAMPERED, detail)
        return
    draft.put(entry)
    _back(draft, entry, Reason.TEST_BRANCH_LOST, Detail(text=text, run=run.id))


def _building(draft: Draft, run_id: str) -> Run | None:
    run = draft.runs.get(run_id)
    return run if run is not None and run.phase is RunPhase.BUILDING else None


def _try_again(draft: Draft, entry: Entry, detail: Detail) -> None:
    """Build once more, later each time; after the last try the entry leaves."""
    tries = entry.build_tries + 1
    if tries >= TRIES_MAX:
        detail = replace(detail, text=f"{detail.text} ({tries} tries)")
        leaving.leave(draft, entry, EntryState.FAILED, Reason.BUILD_REFUSED, detail)
        return
    wait = FIRST_WAIT * 2 ** (tries - 1)
    entry = replace(entry, build_tries=tries, build_after=draft.now + wait)
    draft.put(entry)
    _back(draft, entry, Reason.BUILD_RETRY, detail)


def _back(draft: Draft, entry: Entry, reason: Reason, detail: Detail) -> None:
    if entry.state is EntryState.PENDING_FAILURE:
        leaving.come_back(draft, [leaving.Back(entry.pr, reason, detail)])
    else:
        leaving.restart(draft, entry, reason, detail)
