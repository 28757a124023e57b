"""Choose what lands next, and apply the answer to a landing (docs/design/landing.md 5).

One landing per queue at a time. It carries everything the shell needs to refuse it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from service.errors import InvariantBroken
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.inputs import AdvanceRefused, Landed
from service.mergequeue.engine.model import (
    Detail,
    Entry,
    LandedStep,
    Landing,
    LandMode,
    MergeQueue,
    Proof,
    Run,
    Tip,
)
from service.mergequeue.engine.outputs import (
    Land,
    LandingHalted,
    LandingStarted,
    LandStep,
    TipMoved,
)
from service.mergequeue.engine.planning import untested
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases, holds, leaving, readiness, stacks, target
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import LANDS, EntryState, RunKind
from service.vocabulary import SYSTEM, Sha

ADVANCE_PAUSE = timedelta(minutes=10)
"""The time in which pull requests land one by one after an update of several was refused."""


def land(draft: Draft) -> None:
    """Ask for the one landing that is due; a queue in shadow never does."""
    if draft.queue.config.shadow:
        return
    tip = draft.queue.tip
    if tip is None or not draft.places.verified or not _is_free(draft):
        return
    run = _candidate(draft)
    if run is None or not is_open(draft, run.id) or untested.goes_before(draft, run):
        return
    entry = draft.own(run)[0]
    if _is_contained(run, entry):
        _end_contained(draft, entry, tip)
    else:
        _begin(draft, run, tip)


def is_open(draft: Draft, run: str | None = None) -> bool:
    """Return whether the queue may land, or this run: by state, holds and required statuses."""
    queue = draft.queue
    return (
        queue.state in LANDS
        and not holds.stops_landings(queue, run)
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
        raise InvariantBroken("I1", f"pull request {step.pr} landed as a tree that was not tested")
    entry = draft.entries[step.pr]
    behind = bases.behind(draft, entry) if draft.changed_from is None else None
    rest = tuple(position for position in landing.positions if position > one.position)
    tip = Tip(one.sha, one.tree)
    move = LandedStep(
        step.pr,
        landing.expected_tip.sha,
        one.sha,
        one.tree,
        entry.touches,
        entry=entry.id,
        run=run.id,
        batch=entry.batch,
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
    holds.landing_ended(draft)
    draft.record(TipMoved(one.sha, landed=True, adopted=False))
    note_checks(draft, run)
    untested.note_landed(draft, run, one)
    _end_landed(draft, run, entry, one)
    if behind is not None and draft.entries.graph is not None:
        draft.doubted.add(run.id)
        bases.doubt_unforeseen(draft, behind)
    if not rest:
        target.take_kept(draft)


def note_checks(draft: Draft, run: Run) -> None:
    """Remember which required checks ran on what landed; skips that waited for this count now."""
    known, ran = draft.queue.check_history, verdict.ran_in(run)
    history = known.with_landed(ran, run.created_at, draft.now)
    draft.put_queue(replace(draft.queue, check_history=history))
    if history.ran.keys() - known.ran_lately(draft.now):
        leaving.try_unproved_again(draft)


def advance_refused(draft: Draft, one: AdvanceRefused) -> None:
    """The branch takes no update of several at once now: land one by one for a while."""
    landing = draft.queue.landing
    position = landing.positions[0] if landing is not None else 1
    run = close(draft, one.run, position, "advance_refused", one.text)
    if run is not None:
        draft.put_queue(replace(draft.queue, advance_refused_at=draft.now))
        target.take_kept(draft)


def _is_free(draft: Draft) -> bool:
    queue = draft.queue
    if queue.landing is not None or queue.kept_move is not None:
        return False
    return queue.land_after is None or queue.land_after <= draft.now


def _candidate(draft: Draft) -> Run | None:
    """The run of the first unit of the line that may land now; only the first of each lane may.

    A unit that has begun to land continues before any other: it is proved only as a whole.
    """
    runs: dict[str, Run] = {}
    for node in bases.foremost(draft):
        run = draft.runs[draft.entries[node.members[0].pr].verified_by or ""]
        runs[run.id] = run
    in_order = sorted(runs.values(), key=lambda run: not _has_begun(draft, run))
    return next((run for run in in_order if _may_land(draft, run)), None)


def _has_begun(draft: Draft, run: Run) -> bool:
    """Return whether what landed last was the beginning of this very unit."""
    landed = draft.queue.landed
    return bool(landed) and landed[-1].run == run.id


def _may_land(draft: Draft, run: Run) -> bool:
    """Return whether the whole unit is ready, with everything that it depends on inside.

    Its base holds, else it would be PENDING.
    """
    if not _is_whole(draft, run) or any(True for _ in awaited(draft, run)):
        return False
    return is_green(draft, run)


def _is_whole(draft: Draft, run: Run) -> bool:
    is_ready = all(readiness.may_land(entry) for entry in draft.own(run))
    return is_ready and stacks.may_land(draft, run)


def awaited(draft: Draft, run: Run) -> Iterator[Entry]:
    """Yield the entries of other units that land before the unit of this run."""
    mine = {entry.id for entry in draft.own(run)}
    last = max(place for place, member in enumerate(run.members) if member.entry in mine)
    for member in run.members[:last]:
        entry = draft.entry_of(member)
        if entry is not None and entry.id not in mine:
            yield entry


def would_land(draft: Draft, run: Run) -> bool:
    """Return whether a queue that is not in shadow would have landed the unit by now.

    Units ahead of it count as landed from the moment when they would have landed.
    """
    if not is_open(draft, run.id) or not _is_whole(draft, run):
        return False
    is_first = all(entry.would_land_at is not None for entry in awaited(draft, run))
    return is_first and is_green(draft, run)


def is_green(draft: Draft, run: Run) -> bool:
    """Return whether the run counts as passed by the reports that it has now."""
    ran = draft.queue.check_history.ran_lately(draft.now)
    skippable = verdict.skippable_in(run, draft.entries, ran)
    return verdict.verdict_of(run, draft.now, draft.queue.sends_results, skippable).is_green


def _begin(draft: Draft, run: Run, tip: Tip) -> None:
    queue = draft.queue
    mode = _mode(draft, run, tip)
    places = _places(draft, run)
    if mode is LandMode.CALL and not _lands_at_once(draft, run, places, tip):
        places = places[:1]
    steps = tuple(_land_step(draft, run, place) for place in places)
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
    draft.request(
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
    draft.record(LandingStarted(run.id, landing.positions, mode, tip.sha))


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


def _is_contained(run: Run, entry: Entry) -> bool:
    return run.contained or any(step.pr == entry.pr and step.contained for step in run.steps)


def _mode(draft: Draft, run: Run, tip: Tip) -> LandMode:
    """CAS where the tested commits themselves can become the branch (docs/design/landing.md 2)."""
    config, own = draft.queue.config, draft.own(run)
    if not config.lands_commits or not _is_built_by(run, config) or run.kind is RunKind.DIRECT:
        return LandMode.CALL
    if any(entry.facts.in_stack for entry in own) or _was_refused(draft):
        return LandMode.CALL
    # The provider shows no member of a chain as merged whose base is another branch.
    if not config.land_tested_commits and any(entry.facts.below for entry in own):
        return LandMode.CALL
    places = _places(draft, run)
    first = places[0]
    before = run.steps[first - 2].commit if first > 1 else run.base_tip.sha
    is_whole = places == tuple(range(first, len(run.steps) + 1))
    return LandMode.CAS if tip.sha == before and is_whole else LandMode.CALL


def _is_built_by(run: Run, config: QueueConfig) -> bool:
    """Return whether the commits of the run have the form that this configuration lands."""
    built = run.config
    if built.shadow:
        return False  # its messages are those of a test
    return built.merge_method is config.merge_method and built.lands_commits


def _lands_at_once(draft: Draft, run: Run, places: tuple[int, ...], tip: Tip) -> bool:
    """Return whether one merge call lands all of it: the provider lands what is below a member.

    Not with commit texts of our own, since one call takes one text, and not for a while after such
    a call was refused: then the refusal of a single member says why.
    """
    config = draft.queue.config
    steps = [run.steps[place - 1] for place in places]
    members = [draft.entries[step.pr] for step in steps]
    has_texts = config.commit_title is not None or config.commit_body is not None
    if has_texts or _was_refused(draft) or _parent_tree(run, places[0]) != tip.tree:
        return False
    below = [member.pr for member in members[:-1]]
    return members[-1].facts.in_stack and below == list(members[-1].facts.below)


def _was_refused(draft: Draft) -> bool:
    """Return whether an update of several at once was refused a short while ago."""
    refused = draft.queue.advance_refused_at
    return refused is not None and draft.now < refused + ADVANCE_PAUSE


def _parent_tree(run: Run, place: int) -> Sha:
    return run.steps[place - 2].tree if place > 1 else run.base_tip.tree


def _land_step(draft: Draft, run: Run, place: int) -> LandStep:
    member = run.members[place - 1]
    step = run.steps[place - 1]
    return LandStep(
        position=place,
        pr=member.pr,
        entry=member.entry,
        head=member.head,
        parent_tree=_parent_tree(run, place),
        tree=step.tree,
        commit=step.commit,
        tested_tree=step.tree if untested.is_tested(draft, run, step) else run.steps[-1].tree,
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
    move = LandedStep(
        entry.pr, tip.sha, tip.sha, tip.tree, entry.touches, entry=entry.id, batch=entry.batch
    )
    draft.put_queue(replace(draft.queue, landed=(*draft.queue.landed, move)))
    detail = Detail(text="the target branch contains its head already", sha=tip.sha)
    leaving.leave(draft, entry, EntryState.MERGED, Reason.ALREADY_CONTAINED, detail)


def close(draft: Draft, run_id: str, position: int, code: str, text: str) -> Run | None:
    """End the landing in flight if it is of this run."""
    run, landing = draft.runs.get(run_id), draft.queue.landing
    if run is None or landing is None or landing.run != run.id:
        return None
    draft.put_queue(replace(draft.queue, landing=None))
    holds.landing_ended(draft)
    draft.judging.add(run_id)
    draft.doubt_bases()
    draft.record(LandingHalted(run_id, position, code, text))
    return run
