"""Counting on a failed run's followers: what passes on top of it clears it.

See docs/design/testing.md 7.
"""

from collections.abc import Sequence

from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Detail, Entry, Run
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases, holds
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.graph import Graph
from service.mergequeue.engine.states import EntryState, QueueState, RunStatus

_NOT_PASSED = frozenset({EntryState.TESTING, EntryState.PENDING, EntryState.PENDING_FAILURE})


def clear(draft: Draft, run: Run) -> None:
    """A run passed on a base that holds: what is below it and has not passed, passed with it.

    They and the run's own entries land as one unit, for the run proves only the whole.
    """
    if not draft.queue.config.can_optimistically_merge or bases.broken(draft, run) is not None:
        return
    cleared = _cleared(draft, run)
    if not proves(run, cleared):
        return
    before = {entry.run: None for entry in cleared if entry.run is not None}
    for entry in cleared:
        mine = replace(entry, run=run.id, verified_by=run.id, kept=False, fresh=False)
        if entry.state is EntryState.TESTS_PASSED:
            draft.put(mine)
        else:
            detail = Detail(run=run.id, prs=run.prs)
            draft.move(mine, EntryState.TESTS_PASSED, Reason.SUCCESSOR_PASSED, detail)
    for run_id in before:
        old = draft.runs.get(run_id)
        if old is not None and not draft.own(old):
            draft.retire(old, Reason.SUCCESSOR_PASSED)


def clear_by_follower(draft: Draft, run: Run) -> None:
    """A run failed that had followers: one of them may have passed before."""
    own = draft.own(run)
    for follower, _ in _levels(draft, bases.graph(draft), own[0]) if own else ():
        if follower.status is RunStatus.SUCCEEDED:
            clear(draft, follower)
            return


def is_window_closed(draft: Draft, run: Run) -> bool:
    """Return whether nothing that still runs or may start could clear this failed run.

    A follower's level is how many followers are between it and the failed run, plus one. The
    window closes when none of a level up to the depth is in progress, and one of that depth has
    failed or none can start any more.
    """
    own = draft.own(run)
    depth = draft.queue.config.pending_failure_depth
    if depth == 0 or not own or not own[0].kept:
        return True
    levels = _levels(draft, bases.graph(draft), own[0])
    followers = [(follower, level) for follower, level in levels if level <= depth]
    if any(follower.status is RunStatus.IN_PROGRESS for follower, _ in followers):
        return False
    if any(level == depth and _cannot_clear(follower, own) for follower, level in followers):
        return True
    return not _can_start(draft, own)


def _cannot_clear(follower: Run, own: Sequence[Entry]) -> bool:
    has_passed = follower.status is RunStatus.SUCCEEDED
    return follower.status is RunStatus.FAILED or (has_passed and not proves(follower, own))


def proves(run: Run, cleared: Sequence[Entry]) -> bool:
    """Return whether CI skipped nothing here that it ran on the heads of those below.

    What the settings call optional may be skipped.
    """
    skipped = verdict.skipped_of(run) - verdict.optional_of(run)
    return all(skipped <= set(entry.facts.own_skipped) for entry in cleared)


def _cleared(draft: Draft, run: Run) -> list[Entry]:
    """The entries below the run that land with it: those that have not passed, and some that have.

    A passed run proves only the whole of what it tested. If a part of that has to pass again, the
    other entries that it proved need the new run as their proof too.
    """
    beneath = [entry for entry in map(draft.entry_of, run.base) if entry is not None]
    ids = {entry.id for entry in beneath if entry.state in _NOT_PASSED}
    more = ids
    while more:
        more = {entry.id for entry in beneath if _is_proved_with(draft, entry, ids)} - ids
        ids = ids | more
    return [entry for entry in beneath if entry.id in ids]


def _is_proved_with(draft: Draft, entry: Entry, ids: set[str]) -> bool:
    """Return whether the run that proves an entry tested one of these, itself or below it."""
    proof = draft.runs.get(entry.verified_by or "")
    return proof is not None and any(one.entry in ids for one in proof.members)


def _levels(draft: Draft, drawn: Graph, entry: Entry) -> list[tuple[Run, int]]:
    start = drawn.of[entry.pr]
    depths = {start: 0}
    found = []
    for place in range(start + 1, len(drawn.nodes)):
        node = drawn.nodes[place]
        if not node.ahead >> start & 1:
            continue
        run = draft.runs.get(draft.entries[node.members[-1].pr].run or "")
        if run is None:
            continue
        level = 1 + max(depth for below, depth in depths.items() if node.ahead >> below & 1)
        depths[place] = level
        found.append((run, level))
    return found


def _can_start(draft: Draft, own: tuple[Entry, ...]) -> bool:
    if draft.queue.state is not QueueState.RUNNING or holds.stops_starts(draft.queue):
        return False
    rank = own[0].rank or 0
    behind = [pr for place, pr in draft.places.line if place > rank]
    behind += [pr for _, _, pr in draft.places.waiting]
    return any(
        (other := draft.entries[pr]).state is EntryState.PENDING
        and not other.held_by
        and not other.unmet
        and any(bases.meets(draft, other, entry) for entry in own)
        for pr in behind
    )
