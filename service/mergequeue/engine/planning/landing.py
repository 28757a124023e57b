"""What lands next, and what the answer to a landing means (ENGINE.md 11).

One landing per queue at a time. It carries everything the shell needs to refuse it.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from service.errors import InvariantBroken
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.inputs import AdvanceRefused, Landed, LandingStopCode, LandingStopped
from service.mergequeue.engine.model import (
    Detail,
    Entry,
    LandedStep,
    Landing,
    LandMode,
    Member,
    MergeQueue,
    Proof,
    Refusal,
    Run,
    Tip,
    Unexplained,
)
from service.mergequeue.engine.outputs import (
    Land,
    LandingHalted,
    LandingStarted,
    LandStep,
    Tell,
    TipMoved,
)
from service.mergequeue.engine.planning import landing_waits
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.state import bases, holds, leaving, readiness, target
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import LANDS, EntryState, RunKind
from service.vocabulary import SYSTEM, MergeMethod

ADVANCE_PAUSE = timedelta(minutes=10)
"""How long the merge call is used after the atomic update was refused."""

LAND_AGAIN = timedelta(seconds=60)
"""How long a landing waits that found the provider not ready for it."""

LAND_AGAIN_STALE = timedelta(seconds=5)
"""How long it waits at first when a condition of the permit failed; doubled each time."""

REFUSED_FOR = (
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(hours=1),
    timedelta(hours=1),
)
"""How long an entry that the provider refused is out of the line, by how often it was before."""

REFUSALS_MAX = len(REFUSED_FOR)
"""After being set aside so often the next refusal ends the submission."""

BORROWED_TRIES = 2
"""How often a borrowed result is replaced before its entry is set aside."""

UNEXPLAINED_FOR = timedelta(hours=1)
UNEXPLAINED_MAX = 20
"""How long, and how many, refusals without a known cause are remembered."""

Reaction = Callable[[Draft, Entry, LandingStopped], None]


def land(draft: Draft) -> None:
    """Ask for the one landing that is due."""
    tip = draft.queue.tip
    if tip is None or not _is_free(draft):
        return
    run = _candidate(draft)
    if run is None:
        return
    entry = draft.own(run)[0]
    if _is_contained(run, entry):
        _end_contained(draft, entry, tip)
    else:
        _begin(draft, run, tip)


def is_open(draft: Draft) -> bool:
    """Return whether the queue may land: by its state, holds and required statuses."""
    queue = draft.queue
    return (
        queue.state in LANDS
        and not holds.stops_landings(queue)
        and queue.required is not None
        and queue.required.source is not None
    )


def stands(queue: MergeQueue, run_id: str, now: datetime) -> bool:
    """Return whether the base of the landing run still holds.

    Asked before a landing is permitted: what a pull request touches may have grown meanwhile.
    """
    draft = Draft(queue, now, SYSTEM)
    run = draft.runs.get(run_id)
    return run is not None and bases.broken(draft, run) is None


def landed(draft: Draft, one: Landed) -> None:
    """One position is on the target, and proved."""
    run, landing = draft.runs.get(one.run), draft.queue.landing
    if run is None or landing is None or landing.run != run.id:
        return
    if one.position not in landing.positions:
        return
    step = run.steps[one.position - 1]
    if landing.proof is Proof.EXACT_TREE and step.tree != one.tree:
        raise InvariantBroken("I1", f"pull request {step.pr} landed as a tree nobody tested")
    entry = draft.entries[step.pr]
    rest = tuple(position for position in landing.positions if position > one.position)
    tip = Tip(one.sha, one.tree)
    move = LandedStep(
        step.pr, landing.expected_tip.sha, one.sha, one.tree, entry.touches, run=run.id
    )
    draft.put_queue(
        replace(
            draft.queue,
            tip=tip,
            landed=(*draft.queue.landed, move),
            landing=replace(landing, positions=rest, expected_tip=tip) if rest else None,
            unexplained=(),
        )
    )
    draft.say(TipMoved(one.sha, landed=True, adopted=False))
    _end_landed(draft, run, entry, one)
    if not rest:
        target.take_kept(draft)


def stopped(draft: Draft, one: LandingStopped) -> None:
    """One position did not land; the facts behind it came as reports before."""
    run = _close(draft, one.run, one.position, one.code.value, one.text)
    if run is None:
        return
    target.take_kept(draft)
    entry = draft.entry_of((*run.base, *run.entries)[one.position - 1])
    if entry is not None and (entry.cancel is None or entry.cancel in leaving.RESTARTS):
        times = entry.stops.get(one.code.value, 0) + 1
        entry = replace(entry, stops={**entry.stops, one.code.value: times})
        draft.put(entry)
        _REACTIONS[one.code](draft, entry, one)


def advance_refused(draft: Draft, one: AdvanceRefused) -> None:
    """The branch takes no atomic update now: land by the merge call for a while."""
    landing = draft.queue.landing
    position = landing.positions[0] if landing is not None else 1
    run = _close(draft, one.run, position, "advance_refused", one.text)
    if run is not None:
        draft.put_queue(replace(draft.queue, advance_refused_at=draft.now))
        target.take_kept(draft)


def _is_free(draft: Draft) -> bool:
    queue = draft.queue
    if queue.landing is not None or queue.kept_move is not None:
        return False
    return is_open(draft) and (queue.land_after is None or queue.land_after <= draft.now)


def _candidate(draft: Draft) -> Run | None:
    """The run of the first unit of the line that may land now; only the first of each lane may.

    A unit that has begun to land goes on before any other: it is proved only as a whole.
    """
    runs: dict[str, Run] = {}
    for node in bases.foremost(draft):
        run_id = draft.entries[node.members[0].pr].verified_by
        if run_id is not None:
            runs[run_id] = draft.runs[run_id]
    in_order = sorted(runs.values(), key=lambda run: not _has_begun(draft, run))
    return next((run for run in in_order if _may_land(draft, run)), None)


def _has_begun(draft: Draft, run: Run) -> bool:
    """Whether what landed last was the beginning of this very unit."""
    landed = draft.queue.landed
    return bool(landed) and landed[-1].run == run.id


def _may_land(draft: Draft, run: Run) -> bool:
    """Return whether the whole unit is ready, with everything that it depends on inside.

    Its base holds, else it would be PENDING.
    """
    own = draft.own(run)
    if not all(readiness.may_land(entry) for entry in own):
        return False
    mine = {entry.id for entry in own}
    last = max(place for place, member in enumerate(_members(run)) if member.entry in mine)
    if any(member.entry not in mine and draft.entry_of(member) for member in _members(run)[:last]):
        return False
    return _is_green(draft, run)


def _is_green(draft: Draft, run: Run) -> bool:
    skippable = verdict.skippable_in(run, draft.entries)
    return verdict.verdict_of(run, draft.now, draft.queue.sends_results, skippable).is_green


def _begin(draft: Draft, run: Run, tip: Tip) -> None:
    queue = draft.queue
    mode = _mode(draft, run, tip)
    places = _places(draft, run)
    if mode is LandMode.CALL:
        places = places[:1]
    steps = tuple(_land_step(run, place) for place in places)
    landing = Landing(
        number=queue.next_landing,
        run=run.id,
        positions=places,
        mode=mode,
        expected_tip=tip,
        since=draft.now,
        proof=Proof.EXACT_TREE if steps[0].parent_tree == tip.tree else Proof.SAME_CHANGE,
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
            steps=steps,
            proof=landing.proof,
        )
    )
    draft.say(LandingStarted(run.id, landing.positions, mode, tip.sha))


def _places(draft: Draft, run: Run) -> tuple[int, ...]:
    """Places among the run's steps, from 1, of the entries that land by it.

    Up to the next one that brings nothing: that one ends without a landing.
    """
    mine = {entry.pr for entry in draft.own(run)}
    found = []
    for place, step in enumerate(run.steps, start=1):
        if step.pr in mine:
            if step.contained:
                break
            found.append(place)
    return tuple(found)


def _members(run: Run) -> tuple[Member, ...]:
    return (*run.base, *run.entries)


def _is_contained(run: Run, entry: Entry) -> bool:
    return run.contained or any(step.pr == entry.pr and step.contained for step in run.steps)


def _mode(draft: Draft, run: Run, tip: Tip) -> LandMode:
    """CAS where the tested commits themselves can become the branch (RELIABILITY.md 2)."""
    queue = draft.queue
    if queue.config.merge_method != MergeMethod.MERGE_COMMIT or run.kind is RunKind.DIRECT:
        return LandMode.CALL
    refused = queue.advance_refused_at
    if refused is not None and draft.now < refused + ADVANCE_PAUSE:
        return LandMode.CALL
    places = _places(draft, run)
    first = places[0]
    before = run.steps[first - 2].commit if first > 1 else run.base_tip.sha
    is_whole = places == tuple(range(first, len(run.steps) + 1))
    return LandMode.CAS if tip.sha == before and is_whole else LandMode.CALL


def _land_step(run: Run, place: int) -> LandStep:
    member = (*run.base, *run.entries)[place - 1]
    step = run.steps[place - 1]
    return LandStep(
        position=place,
        pr=member.pr,
        entry=member.entry,
        head=member.head,
        parent_tree=run.steps[place - 2].tree if place > 1 else run.base_tip.tree,
        tree=step.tree,
        commit=step.commit,
    )


def _end_landed(draft: Draft, run: Run, entry: Entry, one: Landed) -> None:
    reason = Reason.LANDED_DIRECTLY if run.kind is RunKind.DIRECT else Reason.LANDED
    final = replace(entry, cancel=None, landed_sha=one.sha)
    detail = Detail(run=run.id, sha=one.sha)
    if len(draft.own(run)) == 1:
        draft.retire(run, reason)
    draft.move(final, EntryState.MERGED, reason, detail)


def _end_contained(draft: Draft, entry: Entry, tip: Tip) -> None:
    """Everything below has landed, so the target has the entry's commits already."""
    # A step that moves nothing: bases which count the entry in hold on.
    move = LandedStep(entry.pr, tip.sha, tip.sha, tip.tree, entry.touches)
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
    draft.doubt_bases()
    draft.say(LandingHalted(run_id, position, code, text))
    return run


def _later(wait: timedelta) -> Reaction:
    def wait_and_plan_again(draft: Draft, _entry: Entry, _one: LandingStopped) -> None:
        draft.put_queue(replace(draft.queue, land_after=draft.now + wait))

    return wait_and_plan_again


def _later_and_later(draft: Draft, entry: Entry, one: LandingStopped) -> None:
    """Wait twice as long as the last time, at most `LAND_AGAIN`."""
    times = entry.stops.get(one.code.value, 1)
    wait = min(LAND_AGAIN_STALE * 2 ** (times - 1), LAND_AGAIN)
    draft.put_queue(replace(draft.queue, land_after=draft.now + wait))


def _bounded(tries: int, reaction: Reaction, reason: Reason = Reason.MERGE_REFUSED) -> Reaction:
    """React this way to the first `tries` stops of an entry, then set the entry aside."""

    def react(draft: Draft, entry: Entry, one: LandingStopped) -> None:
        if entry.stops.get(one.code.value, 0) <= tries:
            reaction(draft, entry, one)
        else:
            _set_aside(draft, entry, one, reason)

    return react


def _checks_missing(draft: Draft, entry: Entry, one: LandingStopped) -> None:
    """A borrowed result that its commit lost is replaced by a real run; else the entry waits."""
    run = draft.runs[one.run]
    if not _is_green(draft, run):
        # More is required now than at the permit: the run waits for it, and the entry with it.
        _later(LAND_AGAIN)(draft, entry, one)
        return
    is_borrowed = run.reused_from is not None or run.kind is RunKind.DIRECT
    if not is_borrowed or entry.stops.get(one.code.value, 0) > BORROWED_TRIES:
        _refused(draft, entry, one, Reason.CHECK_MISSING)
        return
    detail = Detail(text=one.text, run=run.id)
    for own in draft.own(run):
        draft.put(replace(own, fresh=True))
    leaving.restart(draft, run, Reason.RETRY_ON_NEW_BRANCH, detail)


def _ends(state: EntryState, reason: Reason) -> Reaction:
    def end(draft: Draft, entry: Entry, one: LandingStopped) -> None:
        detail = Detail(text=one.text or one.code.value, run=one.run)
        leaving.leave(draft, entry, state, reason, detail)

    return end


def _rebuild(reason: Reason) -> Reaction:
    def begin_anew(draft: Draft, _entry: Entry, one: LandingStopped) -> None:
        # The same tree may pass at once by an earlier result: not the same refusal at once.
        draft.put_queue(replace(draft.queue, land_after=draft.now + LAND_AGAIN))
        leaving.restart(draft, draft.runs[one.run], reason, Detail(text=one.text, run=one.run))

    return begin_anew


def _holds(reason: HoldReason) -> Reaction:
    def hold(draft: Draft, entry: Entry, one: LandingStopped) -> None:
        _place_hold(draft, reason, one)
        # Its state stays, but its comment must not go on saying that it merges next.
        draft.do(Tell(entry.pr, entry.id, entry.state, entry.reason))

    return hold


def _place_hold(draft: Draft, reason: HoldReason, one: LandingStopped) -> None:
    until = draft.now + holds.TRY_AGAIN if reason in _TRIED_AGAIN else None
    holds.place_once(draft, holds.Wish(reason, one.text or one.code.value, until=until))


def _bar(draft: Draft, entry: Entry, one: LandingStopped) -> None:
    barred = replace(entry, barred=(Reason.WORKFLOWS_PERMISSION_MISSING,))
    detail = Detail(text=one.text)
    leaving.set_aside(draft, barred, Reason.WORKFLOWS_PERMISSION_MISSING, detail)


def _of_its_own(draft: Draft, entry: Entry, one: LandingStopped) -> None:
    _refused(draft, entry, one, Reason.MERGE_REFUSED)


def _refused(draft: Draft, entry: Entry, one: LandingStopped, otherwise: Reason) -> None:
    """Refused for this pull request alone: its facts say until when, or the refusal does."""
    unmet = readiness.unmet_now(draft, entry)
    if unmet and entry.refusals < REFUSALS_MAX:
        counted = replace(entry, refusals=entry.refusals + 1)
        leaving.set_aside(draft, counted, unmet[0], Detail(text=one.text))
        return
    _set_aside(draft, entry, one, otherwise)


def _unexplained(draft: Draft, entry: Entry, one: LandingStopped) -> None:
    """No fact explains the refusal: the entry waits; the queue too if two different ones met it.

    Only what two pull requests in a row met says something of the branch. The second one is set
    aside as well, so that after the hold the next pull request shows whether it is over.
    """
    words = _alike(one.text)
    recent = [
        known
        for known in draft.queue.unexplained
        if known.pr != entry.pr and known.at + UNEXPLAINED_FOR > draft.now
    ]
    met_by_others = any(known.words == words for known in recent)
    mine = Unexplained(entry.pr, words, draft.now)
    kept = (*recent, mine)[-UNEXPLAINED_MAX:]
    draft.put_queue(replace(draft.queue, unexplained=kept))
    if met_by_others:
        _place_hold(draft, HoldReason.RULE_DENIED, one)
    _set_aside(draft, entry, one, Reason.MERGE_REFUSED)


def _alike(text: str) -> str:
    """The words of a refusal without what differs from one pull request to another."""
    return _VARYING.sub("…", text.lower()).strip(" .")


_VARYING = re.compile(r"\"[^\"]*\"|`[^`]*`|\b[0-9a-f]{7,40}\b|#?\d+")


def _set_aside(draft: Draft, entry: Entry, one: LandingStopped, otherwise: Reason) -> None:
    """Take the entry out of the line for a while; after `REFUSALS_MAX` times for good."""
    text = one.text or one.code.value
    if entry.refusals >= REFUSALS_MAX:
        detail = Detail(text=text, run=one.run)
        leaving.leave(draft, entry, EntryState.FAILED, Reason.MERGE_REFUSED, detail)
        return
    known = [(readiness.reason_of(each), each.name) for each in one.blockers]
    reasons = [(reason, name) for reason, name in known if reason is not None]
    reason, name = reasons[0] if reasons else (otherwise, None)
    refusal = Refusal(
        reason=reason,
        name=name or (text if reason is Reason.MERGE_REFUSED else ""),
        until=draft.now + REFUSED_FOR[entry.refusals],
        blockers=entry.facts.blockers,
    )
    left = {code: count for code, count in entry.stops.items() if code != one.code.value}
    aside = replace(entry, refusal=refusal, refusals=entry.refusals + 1, stops=left)
    leaving.set_aside(draft, aside, reason, Detail(text=text))


_TRIED_AGAIN = frozenset(
    {HoldReason.RULE_DENIED, HoldReason.STRICT_CHECKS, HoldReason.METHOD_DENIED}
)

_REACTIONS: dict[LandingStopCode, Reaction] = {
    LandingStopCode.RETRY: _bounded(1, _later(LAND_AGAIN)),
    LandingStopCode.UNAVAILABLE: landing_waits.wait,
    LandingStopCode.CHECKS_MISSING: _checks_missing,
    LandingStopCode.STALE: _bounded(6, _later_and_later),
    # The new tip comes as a report, if it did not come before: it restarts whom it concerns.
    LandingStopCode.BASE_MOVED: _bounded(3, _later(LAND_AGAIN)),
    LandingStopCode.CHANGE_DIFFERS: _bounded(3, _rebuild(Reason.TARGET_MOVED)),
    LandingStopCode.HEAD_CHANGED: _ends(EntryState.CANCELLED, Reason.HEAD_CHANGED),
    LandingStopCode.CLOSED: _ends(EntryState.CANCELLED, Reason.PR_CLOSED),
    LandingStopCode.DRAFT: _ends(EntryState.CANCELLED, Reason.CONVERTED_TO_DRAFT),
    LandingStopCode.CONFLICT: _bounded(1, _rebuild(Reason.LANDING_STOPPED), Reason.CONFLICT_TARGET),
    # The branch's own rules let nothing land: these hold the queue.
    LandingStopCode.RULE_DENIED: _holds(HoldReason.RULE_DENIED),
    LandingStopCode.METHOD_DENIED: _holds(HoldReason.METHOD_DENIED),
    LandingStopCode.STRICT: _holds(HoldReason.STRICT_CHECKS),
    LandingStopCode.PROVIDER_QUEUE: _holds(HoldReason.PROVIDER_QUEUE),
    LandingStopCode.NOT_PERMITTED: _holds(HoldReason.PERMISSION_LOST),
    LandingStopCode.OTHER: _unexplained,
    LandingStopCode.WORKFLOWS: _bar,
    LandingStopCode.REBASE_DIFFERS: _ends(EntryState.FAILED, Reason.REBASE_DIFFERS),
    LandingStopCode.PR_REFUSED: _of_its_own,
}
"""What each refusal leads to (ENGINE.md 11)."""
