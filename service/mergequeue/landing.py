"""What lands next, and what the answer to a landing means (ENGINE.md 11).

One landing per queue at a time. It carries everything the shell needs to refuse it.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from service.errors import InvariantBroken
from service.mergequeue import bases, holds, leaving, readiness, target, verdict
from service.mergequeue.draft import Draft
from service.mergequeue.inputs import AdvanceRefused, Landed, LandingStopCode, LandingStopped
from service.mergequeue.model import (
    Detail,
    Entry,
    LandedStep,
    Landing,
    LandMode,
    Run,
    Tip,
)
from service.mergequeue.outputs import (
    Land,
    LandingHalted,
    LandingStarted,
    LandStep,
    Proof,
    TipMoved,
)
from service.mergequeue.reasons import HoldReason, Reason
from service.mergequeue.states import LANDS, EntryState, RunKind
from service.vocabulary import MergeMethod

ADVANCE_PAUSE = timedelta(minutes=10)
"""How long the merge call is used after the atomic update was refused."""

LAND_AGAIN = timedelta(seconds=60)
"""How long a landing waits that found the provider not ready for it."""

LAND_AGAIN_STALE = timedelta(seconds=5)
"""How long it waits when a condition of the permit failed: the facts come as reports."""


def land(draft: Draft) -> None:
    """Ask for the one landing that is due."""
    tip = draft.queue.tip
    if tip is None or not _is_free(draft):
        return
    candidate = _candidate(draft)
    if candidate is None:
        return
    entry, run = candidate
    if run.contained:
        _end_contained(draft, entry, tip)
    else:
        _begin(draft, run, tip)


def is_open(draft: Draft) -> bool:
    """Whether the queue lets anything land: its state, its holds, the required statuses."""
    queue = draft.queue
    return (
        queue.state in LANDS
        and not holds.stops_landings(queue)
        and queue.required is not None
        and queue.required.source is not None
    )


def landed(draft: Draft, one: Landed) -> None:
    """One position is on the target, and proved."""
    run, landing = draft.runs.get(one.run), draft.queue.landing
    if run is None or landing is None or landing.run != run.id:
        return
    if one.position not in landing.positions:
        return
    step = run.steps[len(run.base) + one.position - 1]
    if step.tree != one.tree:
        raise InvariantBroken("I1", f"pull request {step.pr} landed as a tree nobody tested")
    rest = tuple(position for position in landing.positions if position > one.position)
    tip = Tip(one.sha, one.tree)
    move = LandedStep(step.pr, landing.expected_tip.sha, one.sha, one.tree)
    draft.put_queue(
        replace(
            draft.queue,
            tip=tip,
            landed=(*draft.queue.landed, move),
            landing=replace(landing, positions=rest, expected_tip=tip) if rest else None,
        )
    )
    draft.say(TipMoved(one.sha, landed=True, adopted=False))
    _end_landed(draft, run, one)
    if not rest:
        target.take_kept(draft)


def stopped(draft: Draft, one: LandingStopped) -> None:
    """One position did not land; the facts behind it came as reports before."""
    run = _close(draft, one.run, one.position, one.code.value, one.text)
    if run is None:
        return
    target.take_kept(draft)
    entry = draft.entry_of(run.entries[one.position - 1])
    if entry is not None and (entry.cancel is None or entry.cancel in leaving.RESTARTS):
        _REACTIONS[one.code](draft, entry, one)


def advance_refused(draft: Draft, one: AdvanceRefused) -> None:
    """The branch takes no atomic update now: land by the merge call for a while."""
    run = _close(draft, one.run, 1, "advance_refused", one.text)
    if run is not None:
        draft.put_queue(replace(draft.queue, advance_refused_at=draft.now))
        target.take_kept(draft)


def _is_free(draft: Draft) -> bool:
    queue = draft.queue
    if queue.landing is not None or queue.kept_move is not None:
        return False
    return is_open(draft) and (queue.land_after is None or queue.land_after <= draft.now)


def _candidate(draft: Draft) -> tuple[Entry, Run] | None:
    """The first of the line if it may land now. In SINGLE mode nobody else may."""
    entry = next(bases.expected(draft), None)
    if entry is None or not readiness.may_land(entry):
        return None
    if entry.state is not EntryState.TESTS_PASSED:
        return None
    # Its base holds, else it would be PENDING, and nothing of it is left: it is the first.
    run = draft.runs[entry.verified_by or ""]
    if not verdict.verdict_of(run, draft.now, draft.queue.sends_results).is_green:
        return None
    return entry, run


def _position(draft: Draft, run: Run) -> int:
    """Which of the run's entries is the next to land, from 1."""
    return (bases.landed_count(draft, run) or 0) - len(run.base) + 1


def _begin(draft: Draft, run: Run, tip: Tip) -> None:
    queue = draft.queue
    mode = _mode(draft, run, tip)
    position = _position(draft, run)
    last = position if mode is LandMode.CALL else len(run.entries)
    landing = Landing(
        number=queue.next_landing,
        run=run.id,
        positions=tuple(range(position, last + 1)),
        mode=mode,
        expected_tip=tip,
        since=draft.now,
    )
    draft.put_queue(
        replace(queue, landing=landing, next_landing=landing.number + 1, land_after=None)
    )
    draft.do(
        Land(
            number=landing.number,
            run=run.id,
            mode=mode,
            method=queue.config.merge_method,
            expected_tip=tip,
            steps=tuple(_land_step(run, position) for position in landing.positions),
            proof=Proof.EXACT_TREE,
        )
    )
    draft.say(LandingStarted(run.id, landing.positions, mode, tip.sha))


def _mode(draft: Draft, run: Run, tip: Tip) -> LandMode:
    """CAS where the tested commits themselves can become the branch (RELIABILITY.md 2)."""
    queue = draft.queue
    if queue.config.merge_method != MergeMethod.MERGE_COMMIT or run.kind is RunKind.DIRECT:
        return LandMode.CALL
    refused = queue.advance_refused_at
    if refused is not None and draft.now < refused + ADVANCE_PAUSE:
        return LandMode.CALL
    before = run.steps[len(run.base) - 1].commit if run.base else run.base_tip.sha
    return LandMode.CAS if tip.sha == before else LandMode.CALL


def _land_step(run: Run, position: int) -> LandStep:
    member = run.entries[position - 1]
    index = len(run.base) + position - 1
    step = run.steps[index]
    return LandStep(
        position=position,
        pr=member.pr,
        entry=member.entry,
        head=member.head,
        parent_tree=run.steps[index - 1].tree if index else run.base_tip.tree,
        tree=step.tree,
        commit=step.commit,
    )


def _end_landed(draft: Draft, run: Run, one: Landed) -> None:
    entry = draft.tested_by(run)
    reason = Reason.LANDED_DIRECTLY if run.kind is RunKind.DIRECT else Reason.LANDED
    final = replace(entry, cancel=None, landed_sha=one.sha)
    detail = Detail(run=run.id, sha=one.sha)
    if one.position == len(run.entries):
        draft.retire(run, reason)
    draft.move(final, EntryState.MERGED, reason, detail)


def _end_contained(draft: Draft, entry: Entry, tip: Tip) -> None:
    """Everything below has landed, so the target has the entry's commits already."""
    # A step that moves nothing: bases which count the entry in hold on.
    move = LandedStep(entry.pr, tip.sha, tip.sha, tip.tree)
    draft.put_queue(replace(draft.queue, landed=(*draft.queue.landed, move)))
    detail = Detail(text="the target branch contains its head already", sha=tip.sha)
    leaving.leave(draft, entry, EntryState.MERGED, Reason.ALREADY_CONTAINED, detail)


def _close(draft: Draft, run_id: str, position: int, code: str, text: str) -> Run | None:
    """End the landing in flight if it is of this run."""
    run, landing = draft.runs.get(run_id), draft.queue.landing
    if run is None or landing is None or landing.run != run.id:
        return None
    draft.put_queue(replace(draft.queue, landing=None))
    draft.judging.add(run_id)
    draft.say(LandingHalted(run_id, position, code, text))
    return run


def _later(wait: timedelta) -> Callable[[Draft, Entry, LandingStopped], None]:
    def wait_and_plan_again(draft: Draft, _entry: Entry, _one: LandingStopped) -> None:
        draft.put_queue(replace(draft.queue, land_after=draft.now + wait))

    return wait_and_plan_again


def _checks_missing(draft: Draft, entry: Entry, one: LandingStopped) -> None:
    """Wait for the checks; a borrowed result that its commit lost is replaced by a real run."""
    run = draft.runs[one.run]
    if run.reused_from is None and run.kind is not RunKind.DIRECT:
        _later(LAND_AGAIN)(draft, entry, one)
        return
    detail = Detail(text=one.text, run=run.id)
    leaving.restart(draft, replace(entry, fresh=True), Reason.RETRY_ON_NEW_BRANCH, detail)


def _ends(state: EntryState, reason: Reason) -> Callable[[Draft, Entry, LandingStopped], None]:
    def end(draft: Draft, entry: Entry, one: LandingStopped) -> None:
        detail = Detail(text=one.text or one.code.value, run=one.run)
        leaving.leave(draft, entry, state, reason, detail)

    return end


def _rebuild(reason: Reason) -> Callable[[Draft, Entry, LandingStopped], None]:
    def begin_anew(draft: Draft, entry: Entry, one: LandingStopped) -> None:
        # The same tree may pass at once by an earlier result: not the same refusal at once.
        _later(LAND_AGAIN)(draft, entry, one)
        leaving.restart(draft, entry, reason, Detail(text=one.text, run=one.run))

    return begin_anew


def _holds(reason: HoldReason) -> Callable[[Draft, Entry, LandingStopped], None]:
    def hold(draft: Draft, _entry: Entry, one: LandingStopped) -> None:
        until = draft.now + holds.TRY_AGAIN if reason is HoldReason.RULE_DENIED else None
        holds.place_once(draft, holds.Wish(reason, one.text or one.code.value, until=until))

    return hold


def _bar(draft: Draft, entry: Entry, one: LandingStopped) -> None:
    barred = replace(entry, barred=(Reason.WORKFLOWS_PERMISSION_MISSING,))
    detail = Detail(text=one.text)
    leaving.set_aside(draft, barred, Reason.WORKFLOWS_PERMISSION_MISSING, detail)


def _refused(draft: Draft, entry: Entry, one: LandingStopped) -> None:
    """Refused for this pull request alone: the facts say why, or the provider's words do."""
    unmet = readiness.unmet_now(draft, entry)
    if unmet:
        leaving.set_aside(draft, entry, unmet[0], Detail(text=one.text))
        return
    detail = Detail(text=one.text or one.code.value, run=one.run)
    leaving.leave(draft, entry, EntryState.FAILED, Reason.MERGE_REFUSED, detail)


_REACTIONS: dict[LandingStopCode, Callable[[Draft, Entry, LandingStopped], None]] = {
    LandingStopCode.RETRY: _later(LAND_AGAIN),
    LandingStopCode.CHECKS_MISSING: _checks_missing,
    LandingStopCode.STALE: _later(LAND_AGAIN_STALE),
    # The new tip comes as a report, if it did not come before: it restarts whom it concerns.
    LandingStopCode.BASE_MOVED: _later(LAND_AGAIN),
    LandingStopCode.CHANGE_DIFFERS: _rebuild(Reason.TARGET_MOVED),
    LandingStopCode.HEAD_CHANGED: _ends(EntryState.CANCELLED, Reason.HEAD_CHANGED),
    LandingStopCode.CLOSED: _ends(EntryState.CANCELLED, Reason.PR_CLOSED),
    LandingStopCode.DRAFT: _ends(EntryState.CANCELLED, Reason.CONVERTED_TO_DRAFT),
    LandingStopCode.CONFLICT: _rebuild(Reason.LANDING_STOPPED),
    LandingStopCode.RULE_DENIED: _holds(HoldReason.RULE_DENIED),
    LandingStopCode.METHOD_DENIED: _holds(HoldReason.RULE_DENIED),
    LandingStopCode.OTHER: _holds(HoldReason.RULE_DENIED),
    LandingStopCode.NOT_PERMITTED: _holds(HoldReason.PERMISSION_LOST),
    LandingStopCode.WORKFLOWS: _bar,
    LandingStopCode.REBASE_DIFFERS: _ends(EntryState.FAILED, Reason.REBASE_DIFFERS),
    LandingStopCode.PR_REFUSED: _refused,
}
"""What each refusal leads to (ENGINE.md 11)."""
