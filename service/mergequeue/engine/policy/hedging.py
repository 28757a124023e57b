"""Choose hedges for idle slots: a group on the base that it would have if an entry ahead failed.

See docs/design/testing.md 10.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.mergequeue.engine import targets
from service.mergequeue.engine.config import Hedging
from service.mergequeue.engine.model import Entry, Member, Run
from service.mergequeue.engine.state import bases
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.graph import Graph, Node, places
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus


@dataclass(frozen=True, slots=True)
class Hedge:
    """A run worth having: the group, its other base, and the entries it is without."""

    members: tuple[Member, ...]
    base: tuple[Member, ...]
    without: tuple[str, ...]


def hedges_to_start(draft: Draft, slots: int) -> list[Hedge]:
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


def least_worth(draft: Draft, running: Sequence[Run]) -> Run:
    """The run in a spare slot that is worth least, which gives way first."""
    drawn = bases.graph(draft)
    return min(running, key=lambda run: (_worth(draft, drawn, run), -run.number))


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
    """Return whether an entry of a base is under test and goes on when these are not ahead of it.

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


def _has_passed(draft: Draft, node: Node) -> bool:
    return draft.entries[node.members[0].pr].state is EntryState.TESTS_PASSED


def _p_fail(draft: Draft, node: Node) -> float:
    passes = 1.0
    for member in node.members:
        entry = draft.entries[member.pr]
        passes *= 1.0 - (0.0 if entry.screened else entry.p_fail)
    return 1.0 - passes
