"""The target branch as others move it: adopted, restarted, or left to a person.

See docs/design/engine.md 7.
"""

from service.mergequeue.engine import targets
from service.mergequeue.engine.inputs import LandingMismatch, TargetGone, TargetMoved
from service.mergequeue.engine.model import Detail, Entry, KeptMove, LandedStep, Tip
from service.mergequeue.engine.outputs import LandingMismatched, TipMoved
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases, holds, leaving
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.places import is_expected
from service.mergequeue.engine.states import EntryState


def moved(draft: Draft, one: TargetMoved) -> None:
    """The tip as read now. A commit we know changes nothing, unless history was rewritten."""
    holds.release_all(draft, frozenset({HoldReason.TARGET_MISSING}), "the branch is back")
    for pr, sha in one.ours:
        if (entry := draft.entries.get(pr)) is not None:
            draft.put(replace(entry, facts=replace(entry.facts, landed_by_us=True, merged_sha=sha)))
    queue = draft.queue
    if queue.tip is None:
        _set_foreign(draft, KeptMove(one.tip, one.prs, rewritten=False))
        return
    if one.tip.sha == queue.tip.sha or (_is_past(draft, one.tip) and not one.rewritten):
        return
    move = KeptMove(one.tip, one.prs, one.rewritten, targets.union((one.targets,)))
    if queue.landing is not None or holds.is_waiting_for_a_look(queue):
        _keep(draft, move)
    else:
        _follow(draft, move, queue.tip)


def gone(draft: Draft, _one: TargetGone) -> None:
    """The branch does not exist: everything waits until it is back."""
    text = f"the branch {draft.queue.branch} does not exist"
    holds.place_once(draft, holds.HoldRequest(HoldReason.TARGET_MISSING, text))


def mismatched(draft: Draft, one: LandingMismatch) -> None:
    """Hold the queue: what landed is not what was tested, and a person must look first."""
    run, landing = draft.runs.get(one.run), draft.queue.landing
    if run is None or landing is None or landing.run != one.run:
        return
    kept = draft.queue.kept_move
    prs = kept.prs if kept is not None else ()
    draft.put_queue(
        replace(draft.queue, landing=None, kept_move=KeptMove(one.tip, prs, rewritten=False))
    )
    holds.landing_ended(draft)
    draft.record(LandingMismatched(one.run, one.position, one.evidence))
    numbers = ", ".join(str(run.steps[place - 1].pr) for place in landing.positions)
    text = f"the landing of {numbers} could not be proved"
    request = holds.HoldRequest(HoldReason.LANDING_MISMATCH, text, evidence=one.evidence)
    holds.place(draft, request)
    detail = Detail(text=one.evidence, run=run.id)
    for position in sorted(set(one.merged) & set(landing.positions)):
        landed = replace(draft.entries[run.steps[position - 1].pr], cancel=None)
        leaving.leave_alone(draft, landed, EntryState.MERGED, Reason.LANDED, detail)


def take_kept(draft: Draft) -> None:
    """Apply the postponed move, because nothing prevents it any longer."""
    kept = draft.queue.kept_move
    if kept is None or draft.queue.landing is not None:
        return
    if holds.is_waiting_for_a_look(draft.queue):
        return
    draft.put_queue(replace(draft.queue, kept_move=None))
    if draft.queue.tip is not None and kept.tip.sha != draft.queue.tip.sha:
        _follow(draft, kept, draft.queue.tip)


def looked_at(draft: Draft) -> None:
    """A person has looked: all live runs are void, and planning begins from the real tip."""
    kept = draft.queue.kept_move
    if kept is None or holds.is_waiting_for_a_look(draft.queue):
        return
    draft.put_queue(replace(draft.queue, kept_move=None))
    _set_foreign(draft, kept)
    moved_on = Detail(sha=kept.tip.sha)
    line = [draft.entries[pr] for _, pr in draft.places.line]
    running = [one for one in line if one.run is not None and one.bisection is None]
    for counted_on in (True, False):
        numbers = [one.pr for one in running if is_expected(one) is counted_on]
        backs = [leaving.Back(pr, Reason.TARGET_MOVED, moved_on) for pr in numbers]
        leaving.send_back(draft, backs)
    for bisection in list(draft.queue.bisections.values()):
        leaving.abandon(draft, bisection, Reason.TARGET_MOVED, moved_on)


def _keep(draft: Draft, move: KeptMove) -> None:
    kept = draft.queue.kept_move
    if kept is not None:
        prs = (*kept.prs, *(pr for pr in move.prs if pr not in kept.prs))
        rewritten = kept.rewritten or move.rewritten
        both = targets.union((kept.targets, move.targets))
        move = KeptMove(move.tip, prs, rewritten, both)
    if move != kept:
        draft.put_queue(replace(draft.queue, kept_move=move))


def _follow(draft: Draft, move: KeptMove, old: Tip) -> None:
    """Take in a move that is no news of ours; a rewritten history waits for a person."""
    if move.rewritten:
        draft.put_queue(replace(draft.queue, kept_move=move))
        text = f"history was rewritten: {old.sha} is not below {move.tip.sha}"
        holds.place_once(draft, holds.HoldRequest(HoldReason.TARGET_REWRITTEN, text))
    else:
        _take(draft, move, old)


def _is_past(draft: Draft, tip: Tip) -> bool:
    return any(step.before == tip.sha for step in draft.queue.landed)


def _take(draft: Draft, move: KeptMove, old: Tip) -> None:
    """Others moved the target forward: adopt it if it is what was predicted."""
    merged = _by_hand(draft, move.prs)
    if move.tip.tree == old.tree:
        _adopt(draft, move.tip, old, [])
        _end_merged(draft, merged, move.tip)
    elif _is_predicted(draft, move.tip, merged):
        _adopt(draft, move.tip, old, merged)
        _end_merged(draft, merged, move.tip)
    else:
        _set_foreign(draft, move)


def _set_foreign(draft: Draft, kept: KeptMove) -> None:
    merged = _by_hand(draft, kept.prs)
    tip, old = kept.tip, draft.queue.tip
    before = old.sha if old is not None else tip.sha
    move = LandedStep(bases.FOREIGN, before, tip.sha, tip.tree, kept.targets)
    draft.put_queue(replace(draft.queue, tip=tip, landed=(*draft.queue.landed, move)))
    draft.record(TipMoved(tip.sha, landed=False, adopted=False))
    _end_merged(draft, merged, tip)


def _adopt(draft: Draft, tip: Tip, old: Tip, merged: list[Entry]) -> None:
    """Go on from a tip that has the predicted tree: the bases below hold."""
    touches = targets.union(entry.touches for entry in merged)
    steps = [LandedStep(None, old.sha, tip.sha, tip.tree, touches)]
    if merged:
        below = [old.sha, *(tip.sha for _ in merged[1:])]
        steps = [
            LandedStep(
                entry.pr,
                before,
                tip.sha,
                tip.tree,
                touches,
                is_proved=_is_proved(entry),
                entry=entry.id,
                batch=entry.batch,
            )
            for entry, before in zip(merged, below, strict=True)
        ]
    draft.put_queue(replace(draft.queue, tip=tip, landed=(*draft.queue.landed, *steps)))
    draft.record(TipMoved(tip.sha, landed=False, adopted=True))


def _is_proved(entry: Entry) -> bool:
    return entry.state is EntryState.TESTS_PASSED


def _by_hand(draft: Draft, prs: tuple[int, ...]) -> list[Entry]:
    """Entries that others merged, in queue order: named with the move, or seen before it."""
    waiting = {pr for pr in draft.places.leaving if draft.entries[pr].cancel in bases.SEEN_MERGED}
    numbers = {pr for pr in prs if pr in draft.entries} | waiting
    return sorted(
        (draft.entries[pr] for pr in numbers),
        key=lambda entry: (entry.rank is None, entry.rank or 0, entry.pr),
    )


def _end_merged(draft: Draft, merged: list[Entry], tip: Tip) -> None:
    for entry in merged:
        final = replace(entry, cancel=None, landed_sha=entry.facts.merged_sha)
        detail = Detail(sha=entry.facts.merged_sha or tip.sha)
        by_us = entry.facts.landed_by_us
        reason = Reason.LANDED_UNRECORDED if by_us else Reason.MERGED_BY_HAND
        leaving.leave(draft, final, EntryState.MERGED, reason, detail)


def _is_predicted(draft: Draft, tip: Tip, merged: list[Entry]) -> bool:
    """Return whether a run that holds predicted this tree for exactly these, the line's first."""
    numbers = [entry.pr for entry in merged]
    for run in draft.runs.values():
        if not run.steps or bases.broken(draft, run) is not None:
            continue
        made = bases.progress(draft, run)
        start = len(made.landed) if made is not None else 0
        steps = run.steps[start : start + len(numbers)]
        if steps and [step.pr for step in steps] == numbers:
            return steps[-1].tree == tip.tree
    return False
