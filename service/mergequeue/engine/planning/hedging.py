"""Hedge: idle slots test a group on the base that it would have if an entry ahead failed.

A hedge delays nothing: any other run that may start takes its slot. It blames no entry and
lands nothing before it has become the group's own run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.mergequeue.engine import targets
from service.mergequeue.engine.config import Hedging
from service.mergequeue.engine.culprits import optimism
from service.mergequeue.engine.model import Detail, Entry, Member, Run
from service.mergequeue.engine.reasons import Cause, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases
from service.mergequeue.engine.state.draft import Draft, Finding
from service.mergequeue.engine.state.graph import Graph, Node, places
from service.mergequeue.engine.states import SPARE, EntryState, RunKind, RunStatus

_STATES = {
    RunStatus.IN_PROGRESS: (EntryState.TESTING, Reason.TEST_STARTED),
    RunStatus.SUCCEEDED: (EntryState.TESTS_PASSED, Reason.RUN_PASSED),
    RunStatus.FAILED: (EntryState.PENDING_FAILURE, Reason.CHECK_FAILED),
}


@dataclass(frozen=True, slots=True)
class Hedge:
    """A run worth having: the group, its other base, and the entries it is without."""

    members: tuple[Member, ...]
    base: tuple[Member, ...]
    without: tuple[str, ...]


def review(draft: Draft) -> None:
    """Let hedges take over whose case has come true, and end those whose case cannot any more."""
    for run in draft.runs.of_kind(RunKind.HEDGE):
        main = _main_of(draft, run)
        left_out = _left_out(draft, run, main) if main is not None else ()
        if main is None or _is_decided(draft, run, left_out):
            draft.retire(run, Reason.AHEAD_CHANGED)
        elif any(entry.pr in bases.graph(draft).of for entry in left_out):
            if not _is_still(draft, run, main):
                draft.retire(run, Reason.AHEAD_CHANGED)
        elif run.status is not RunStatus.CANCELLED and _stands(draft, run, main):
            _take_over(draft, run, main)
        else:
            draft.retire(run, Reason.AHEAD_CHANGED)


def wanted(draft: Draft, slots: int) -> list[Hedge]:
    """The hedges worth most, best first, for at most so many free slots."""
    config = draft.queue.config
    if slots < 1 or config.hedging is not Hedging.SPARE_SLOTS:
        return []
    hedges = draft.runs.of_kind(RunKind.HEDGE)
    standing = sum(run.status is not RunStatus.CANCELLED for run in hedges)
    room = min(slots, config.concurrency // 2 - standing)
    if room < 1:
        return []
    hedged = {run.entries for run in hedges}
    drawn = bases.graph(draft)
    risky = _risky(draft, drawn)
    found = [
        one
        for node in (drawn.nodes if risky else ())
        if node.ahead & risky and node.members not in hedged
        for one in _best(draft, drawn, node)
    ]
    found.sort(key=lambda pair: -pair[0])
    return [hedge for _, hedge in found[:room]]


def give_way(draft: Draft) -> None:
    """End what is worth least in a spare slot: something real starts there."""
    running = [
        run
        for kind in SPARE
        for run in draft.runs.of_kind(kind)
        if run.status is RunStatus.IN_PROGRESS
    ]
    drawn = bases.graph(draft)
    least = min(running, key=lambda run: (_worth(draft, drawn, run), -run.number))
    draft.retire(least, Reason.AHEAD_CHANGED)


def give_up(draft: Draft, run: Run, reason: Reason) -> None:
    """Let a run in a spare slot be that cannot be tested.

    It stays as a cancelled run until its case is decided, so that the same is not tried again
    and again: without somebody ahead its group may conflict with the target. A try does not stay:
    the next ones have their time.
    """
    if run.status is RunStatus.IN_PROGRESS and run.kind is not RunKind.TRY:
        draft.finish(run, RunStatus.CANCELLED, Finding())
    elif run.status is not RunStatus.CANCELLED:
        draft.retire(run, reason)


def _risky(draft: Draft, drawn: Graph) -> int:
    """The undecided nodes below others that fail often enough for a run without them."""
    least = draft.queue.config.hedge_threshold
    mask = 0
    for place in places(drawn.below):
        node = drawn.nodes[place]
        if not _has_passed(draft, node) and _p_fail(draft, node) >= least:
            mask |= 1 << place
    return mask


def _best(draft: Draft, drawn: Graph, node: Node) -> Iterator[tuple[float, Hedge]]:
    """Return the best hedge of one group on top of a risky node, None if it may have none."""
    first = draft.entries[node.members[0].pr]
    run = draft.runs.get(first.run or "")
    if run is None or run.status is not RunStatus.IN_PROGRESS or run.kind is not RunKind.MAIN:
        return
    if first.facts.below:
        return
    # One that brought nothing may have left its batch: what is left is no group of its own.
    if run.entries != node.members:
        return
    undecided = {
        ahead: _p_fail(draft, drawn.nodes[ahead])
        for ahead in places(node.ahead)
        if not _has_passed(draft, drawn.nodes[ahead])
    }
    best = max(undecided, key=lambda ahead: (undecided[ahead], -ahead))
    base = _base_without(drawn, node, best)
    left = {member.pr for member in drawn.nodes[best].members}
    if not all(_may_stay(draft.entries[member.pr], left) for member in base):
        return
    score = undecided[best]
    for other, chance in undecided.items():
        if other != best:
            score *= 1.0 - chance
    without = tuple(member.entry for member in drawn.nodes[best].members)
    yield score, Hedge(run.entries, base, without)


def _may_stay(entry: Entry, left: set[int]) -> bool:
    """Whether an entry of a base is under test and goes on when these are not ahead of it.

    A member of a stack contains those below it, and leaves the line with them.
    """
    return entry.state is not EntryState.PENDING and left.isdisjoint(entry.facts.below)


def _base_without(drawn: Graph, node: Node, left: int) -> tuple[Member, ...]:
    """The base of a node if one ahead of it were not there."""
    others = node.ahead & ~(1 << left)
    if drawn.single:
        return drawn.members(others)
    taken = [node]
    mask = 0
    for ahead in reversed(list(places(others))):
        other = drawn.nodes[ahead]
        if any(targets.meet(one.touches, other.touches) for one in taken):
            taken.append(other)
            mask |= 1 << ahead
    return drawn.members(mask)


def _worth(draft: Draft, drawn: Graph, run: Run) -> float:
    numbers = [member.pr for member in run.entries]
    place = drawn.of.get(numbers[0])
    if place is None:
        return 0.0
    score = 1.0
    for ahead in places(drawn.nodes[place].ahead):
        node = drawn.nodes[ahead]
        if not _has_passed(draft, node):
            chance = _p_fail(draft, node)
            score *= chance if node.members[0].entry in run.without else 1.0 - chance
    return score


def _main_of(draft: Draft, run: Run) -> Run | None:
    """The run that the group is in now, if it is the same group still."""
    tested = draft.tested(run)
    if len(tested) != len(run.entries) or not tested[0].run:
        return None
    main = draft.runs.get(tested[0].run)
    if main is None or main.entries != run.entries or tested[0].bisection is not None:
        return None
    return main


def _left_out(draft: Draft, run: Run, main: Run) -> tuple[Entry, ...]:
    """What the hedge is without of the group's own base, as far as it is there still."""
    found = (draft.entry_of(member) for member in main.base if member.entry in run.without)
    return tuple(entry for entry in found if entry is not None)


def _is_decided(draft: Draft, run: Run, left_out: Sequence[Entry]) -> bool:
    """Whether what the hedge is without passed or landed after all."""
    finals = [draft.finished_entries.get(entry) for entry in run.without]
    return any(entry.state is EntryState.TESTS_PASSED for entry in left_out) or any(
        final is not None and final.state is EntryState.MERGED for final in finals
    )


def _is_still(draft: Draft, run: Run, main: Run) -> bool:
    """Whether the rest of the hedge's base is as it was."""
    made = bases.progress(draft, run)
    if made is None or bases.broken(draft, main) is not None:
        return False
    ahead = {member.entry for member in bases.ahead(draft, draft.own(main))}
    return all(member.entry in ahead for member in run.base if member.pr not in made.landed)


def _stands(draft: Draft, run: Run, main: Run) -> bool:
    made = bases.progress(draft, run)
    own = draft.own(main)
    if made is None or not bases.is_predicted(draft, run, made):
        return False
    left = tuple(member for member in run.base if member.pr not in made.landed)
    return left == bases.ahead(draft, own)


def _take_over(draft: Draft, run: Run, main: Run) -> None:
    """The hedge becomes the group's own run, with all its results."""
    draft.put_run(replace(run, kind=RunKind.MAIN, without=()))
    state, reason = _STATES[run.status]
    if run.status is RunStatus.FAILED and run.cause is Cause.TIMEOUT:
        reason = Reason.RUN_TIMED_OUT
    kept = state is EntryState.PENDING_FAILURE and draft.queue.config.can_optimistically_merge
    has_passed = state is EntryState.TESTS_PASSED
    own = draft.own(main)
    draft.retire(main, Reason.AHEAD_OUT)
    for entry in own:
        mine = replace(
            entry,
            run=run.id,
            batch=run.number,
            verified_by=run.id if has_passed else None,
            kept=kept,
            fresh=entry.fresh and not has_passed,
        )
        if entry.state is state is EntryState.TESTS_PASSED:
            draft.put(mine)
        else:
            draft.move(mine, state, reason, Detail(run=run.id))
    if has_passed:
        optimism.clear(draft, draft.runs[run.id])


def _has_passed(draft: Draft, node: Node) -> bool:
    return draft.entries[node.members[0].pr].state is EntryState.TESTS_PASSED


def _p_fail(draft: Draft, node: Node) -> float:
    passes = 1.0
    for member in node.members:
        entry = draft.entries[member.pr]
        passes *= 1.0 - (0.0 if entry.screened else entry.p_fail)
    return 1.0 - passes
