"""Apply what became of test branches: built, in conflict, refused, lost (docs/design/engine.md 7).

Each changes only its run and entry; a report about a run that is over changes nothing.
"""

from datetime import timedelta

from service.errors import InvariantBroken
from service.mergequeue.engine.config import UndoneWork
from service.mergequeue.engine.culprits import bisecting
from service.mergequeue.engine.inputs import (
    BuildRefusal,
    NothingToTest,
    TestBranchBuilt,
    TestBranchConflicted,
    TestBranchDelayed,
    TestBranchLost,
    TestBranchRefused,
)
from service.mergequeue.engine.model import Detail, Entry, Run
from service.mergequeue.engine.outputs import RunBuilt, Tell
from service.mergequeue.engine.planning import hedging, reuse, settling, untested
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import holds, leaving, readiness, undone
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import SPARE, EntryState, RunKind, RunPhase, RunStatus

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
    BuildRefusal.GIT_NEEDED: HoldReason.CONFIG_INVALID,
}
"""Refusals that concern every run of the queue."""


def built(draft: Draft, one: TestBranchBuilt) -> None:
    """The branch is built, or its tree is known: tests start, or are not needed."""
    run = _building(draft, one.run)
    if run is None:
        return
    expected = [(member.pr, member.head) for member in run.members]
    if [(step.pr, step.head) for step in one.steps] != expected:
        raise InvariantBroken("I5", f"run {run.id} was built of other heads than it was given")
    ready = _with_branch(draft, run, one)
    if not _keeps_out(draft, ready, one):
        _begin(draft, ready, one)


def _begin(draft: Draft, ready: Run, one: TestBranchBuilt) -> None:
    """Let the tests start, or take a result that is known."""
    for entry in draft.own(ready):
        # A conflict that was reported while it was built counts no more.
        draft.touched.add(entry.pr)
        if entry.build_tries or entry.build_after is not None:
            draft.put(replace(entry, build_tries=0, build_after=None))
    may_reuse = ready.kind is not RunKind.PROBE or bisecting.skips_known(draft, ready)
    green = reuse.green_of(draft, ready) if may_reuse else None
    if ready.entries and all(step.contained for step in one.steps[len(ready.base) :]):
        settling.passed(draft, replace(ready, contained=True), Reason.RESULT_REUSED)
    elif green is not None:
        settling.passed(draft, replace(ready, reused_from=green.run), Reason.RESULT_REUSED)
    elif (red := bisecting.known_red(draft, ready)) is not None:
        bisecting.red_already(draft, ready, red)
    elif not one.published:
        # The result it relied on may not be used any more, and there is nothing to test.
        settling.retry_on_new_branch(draft, ready, Detail(run=ready.id))
    else:
        # Now the checks can be shown.
        for entry in draft.own(ready):
            draft.request(Tell(entry.pr, entry.id, entry.state, entry.reason))


def _keeps_out(draft: Draft, run: Run, one: TestBranchBuilt) -> bool:
    """Note how the results stand to landed work; take out the first that may not land with it.

    It ends, waits for its author, or waits for those ahead whose work it would take back. The rest
    of its batch goes on without it (docs/design/undone-work.md 6).
    """
    for entry in draft.own(run):
        work = one.judged.get(entry.pr)
        if work is not None and work.head == entry.head and entry.work != work:
            draft.put(replace(entry, work=undone.newer(entry, work)))
    if not one.judged:
        return False
    for entry in draft.own(run):
        is_current = undone.is_current(draft, entry.head, entry.work)
        if is_current and undone.is_superseded(draft, entry):
            undone.supersede(draft, entry)
            return True
        ahead = undone.ahead_of(draft, run, entry)
        if undone.waits(draft, entry):
            unready = replace(entry, unmet=readiness.unmet_now(draft, entry))
            detail = undone.detail_of(entry)
            leaving.set_aside(draft, unready, Reason.UNDOES_LANDED_WORK, detail)
            return True
        if ahead and draft.queue.config.undone_work is UndoneWork.HOLD and entry.rank is not None:
            detail = replace(undone.detail_of(entry), prs=ahead)
            _hold_out(draft, run, entry, detail, Reason.UNDOES_AHEAD)
            return True
    return False


def _with_branch(draft: Draft, run: Run, one: TestBranchBuilt) -> Run:
    """Put the run with its test branch into the draft, and return it."""
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
    has_lost = any(draft.entry_of(member) is None for member in run.base)
    if has_lost or run.base_tip != draft.queue.tip:
        # What it predicts for its base may differ from what has landed of it meanwhile.
        draft.doubted.add(run.id)
    draft.record(RunBuilt(run.id, one.sha))
    return ready


def nothing_to_test(draft: Draft, one: NothingToTest) -> None:
    """Its heads are already in its base: its result is that of the base."""
    run = _building(draft, one.run)
    if run is None:
        return
    ready = replace(
        run, phase=RunPhase.TESTING, contained=True, published=False, built_at=draft.now
    )
    draft.put_run(ready)
    settling.passed(draft, ready, Reason.RESULT_REUSED)


def conflicted(draft: Draft, one: TestBranchConflicted) -> None:
    """A head conflicts: with the target it fails, with an entry ahead it waits for that entry.

    The rest of its batch continues without it.
    """
    run = _building(draft, one.run)
    if run is None:
        return
    own = _tested_for(draft, run)
    entry = next((other for other in own if other.pr == one.pr), None)
    if run.kind is RunKind.SCREEN and not one.with_base and len(own) > 1:
        # No entry is ahead of another here: each is tried alone.
        _give_up(draft, run, own, Detail(paths=one.paths, prs=(one.pr,), run=run.id))
        return
    if entry is None or (run.kind is RunKind.SCREEN and not one.with_base):
        text = f"pull request {one.pr} did not merge while the test branch was built"
        _try_again(draft, run, Detail(text=text, paths=one.paths, prs=(one.pr,)))
        return
    if one.with_base:
        detail = Detail(text="it conflicts with the target branch", paths=one.paths)
        leaving.leave(draft, entry, EntryState.FAILED, Reason.CONFLICT_TARGET, detail)
        return
    earlier = (*run.base, *run.entries[: _place(run, one.pr)])
    unlanded = tuple(member.pr for member in earlier if draft.entry_of(member) is not None)
    culprits = (one.culprit,) if one.culprit in unlanded else unlanded
    if not culprits:
        text = "it conflicted with a pull request that has landed or left since"
        _try_again(draft, run, Detail(text=text, paths=one.paths))
        return
    _hold_out(draft, run, entry, Detail(paths=one.paths, prs=tuple(pr for pr in culprits if pr)))


def delayed(draft: Draft, one: TestBranchDelayed) -> None:
    """Nothing more starts before the provider's next slot: it would only wait as well."""
    run = _building(draft, one.run)
    if run is None or one.until <= draft.now:
        return
    request = holds.HoldRequest(HoldReason.PROVIDER_LIMIT, one.text)
    if holds.place_until(draft, request, one.until):
        for entry in draft.own(run):
            draft.request(Tell(entry.pr, entry.id, entry.state, entry.reason))


def refused(draft: Draft, one: TestBranchRefused) -> None:
    """The provider builds no such branch now."""
    run = _building(draft, one.run)
    if run is None:
        return
    detail = Detail(text=one.text or one.code.value, run=run.id)
    own = _tested_for(draft, run)
    if one.code is BuildRefusal.WORKFLOWS and own:
        named = [entry for entry in own if one.pr in (None, entry.pr)]
        if named:
            barred = replace(named[0], barred=(Reason.WORKFLOWS_PERMISSION_MISSING,))
            leaving.set_aside(draft, barred, Reason.WORKFLOWS_PERMISSION_MISSING, detail)
            return
    reason = _HOLDS.get(one.code)
    if reason is None:
        _try_again(draft, run, detail)
        return
    until = None
    if reason is HoldReason.TEST_BRANCH_DENIED:
        until = draft.now + holds.TRY_AGAIN
    holds.place_once(draft, holds.HoldRequest(reason, detail.text, until=until))
    _repeat(draft, run, Reason.BUILD_RETRY, detail)


def lost(draft: Draft, one: TestBranchLost) -> None:
    """Somebody took the test branch away although it was put back once."""
    run = draft.runs.get(one.run)
    if run is None or run.phase is RunPhase.BUILDING or run.status is RunStatus.FAILED:
        return
    own = _examined(draft, run)
    if any(leaving.is_landing(draft, entry) for entry in own):
        return
    text = f"its test branch was taken away by {one.by or 'somebody'}"
    for entry in own:
        draft.put(replace(entry, losses=entry.losses + 1))
    for entry in own:
        if entry.losses >= LOSSES_MAX:
            last = Detail(text=f"{text}, {entry.losses + 1} times in all", run=run.id)
            mine, why = draft.entries[entry.pr], Reason.TEST_BRANCH_TAMPERED
            leaving.leave_alone(draft, mine, EntryState.CANCELLED, why, last)
    _repeat(draft, run, Reason.TEST_BRANCH_LOST, Detail(text=text, run=run.id))


def _building(draft: Draft, run_id: str) -> Run | None:
    run = draft.runs.get(run_id)
    if run is None or run.status is not RunStatus.IN_PROGRESS:
        return None
    return run if run.phase is RunPhase.BUILDING else None


def _place(run: Run, pr: int) -> int:
    return next(place for place, member in enumerate(run.entries) if member.pr == pr)


def _hold_out(
    draft: Draft, run: Run, entry: Entry, detail: Detail, reason: Reason = Reason.CONFLICT_AHEAD
) -> None:
    """The entry is out until those it conflicts with are gone; the rest regroups."""
    others = [one for one in draft.own(run) if one.pr != entry.pr]
    back = Detail(run=run.id, prs=(entry.pr,))
    leaving.hold_out(draft, entry, detail, reason)
    leaving.send_back(
        draft, [leaving.Back(one.pr, Reason.BATCH_MEMBER_LEFT, back) for one in others]
    )


def _try_again(draft: Draft, run: Run, detail: Detail) -> None:
    """Build once more, later each time; after the last try a batch is taken apart.

    One that is alone leaves: the provider does not build its branch.
    """
    own = _examined(draft, run)
    tries = max((entry.build_tries for entry in own), default=0) + 1
    if own and tries >= TRIES_MAX:
        _give_up(draft, run, own, replace(detail, text=f"{detail.text} ({tries} tries)"))
        return
    wait = FIRST_WAIT * 2 ** (tries - 1)
    for entry in own:
        draft.put(replace(entry, build_tries=tries, build_after=draft.now + wait))
    _repeat(draft, run, Reason.BUILD_RETRY, detail)


def _give_up(draft: Draft, run: Run, own: tuple[Entry, ...], detail: Detail) -> None:
    if len(own) == 1:
        leaving.leave(draft, own[0], EntryState.FAILED, Reason.BUILD_REFUSED, detail)
        return
    for entry in own:
        draft.put(replace(entry, taken_apart=True, build_tries=0))
    searched = draft.queue.bisections.get(run.bisection or "")
    if searched is not None:
        leaving.abandon(draft, searched, Reason.BATCH_TAKEN_APART, detail)
    else:
        leaving.restart(draft, run, Reason.BATCH_TAKEN_APART, detail)


def _examined(draft: Draft, run: Run) -> tuple[Entry, ...]:
    """Return the entries of the run; for a probe, the undecided ones of its bisection."""
    if not bisecting.is_examining(draft, run):
        return _tested_for(draft, run)
    return bisecting.undecided(draft, draft.queue.bisections[run.bisection or ""])


def _tested_for(draft: Draft, run: Run) -> tuple[Entry, ...]:
    """Return the entries that the branch is built for: a try has none of its own."""
    return draft.tested(run) if run.kind is RunKind.TRY else draft.own(run)


def _repeat(draft: Draft, run: Run, reason: Reason, detail: Detail) -> None:
    """Retry on another branch; a bisection starts another probe instead."""
    if run.id not in draft.runs:
        return
    if run.kind is RunKind.TIP:
        untested.not_built(draft, run, detail.text)
    elif bisecting.is_examining(draft, run):
        bisecting.lost(draft, run, reason)
    elif run.kind in SPARE:
        hedging.give_up(draft, run, reason)
    else:
        leaving.restart(draft, run, reason, detail)
