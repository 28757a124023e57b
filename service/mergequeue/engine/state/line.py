"""The line: ranks, which entry is first, and where a returning entry is placed.

Ranks are integers far apart, so that a place in between needs no other entry to move.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import takewhile

from service.mergequeue.engine import targets
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.outputs import EntryPlaced, PlacedWhy
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState, RunStatus
from service.mergequeue.engine.targets import Targets

GAP = 2**20
"""Distance of neighbors in a fresh line; 20 insertions fit between two of them."""

URGENT = 0
"""The one priority that interrupts."""

_HAS_RESULT_OR_RUNS = frozenset({RunStatus.IN_PROGRESS, RunStatus.SUCCEEDED})


def append(draft: Draft, entry: Entry) -> Entry:
    """Give a waiting entry the last place of the line."""
    line = draft.places.line
    placed = replace(entry, rank=line[-1][0] + GAP if line else GAP)
    draft.put(placed)
    return placed


def interrupt(draft: Draft, entry: Entry) -> None:
    """Give an urgent entry the place behind the last one that it meets and may not pass.

    Those are urgent ones and passed ones whose base is sure, so also the one that lands now.
    Nothing changes if it is there already.
    """
    anchor = None
    for _, pr in reversed(draft.places.line):
        other = draft.entries[pr]
        if pr != entry.pr and bases.meets(draft, entry, other) and _is_before_urgent(draft, other):
            anchor = _last_of_batch(draft, other)
            break
    if entry.rank is not None and not _is_passed_over(draft, anchor, entry):
        return
    _place_behind(draft, anchor, [entry], PlacedWhy.URGENT)


def last_undisturbed(draft: Draft, returning: Iterable[Entry]) -> Entry | None:
    """The last entry that meets any of these and whose run, in progress or passed, holds."""
    touches = [entry.touches for entry in returning]
    nodes = bases.graph(draft).nodes
    for node in reversed(nodes):
        entry = draft.entries[node.members[-1].pr]
        run = draft.runs.get(entry.run or "")
        if (
            run is not None
            and run.status in _HAS_RESULT_OR_RUNS
            and _is_met(draft, node.touches, touches)
            and bases.broken(draft, run) is None
        ):
            return entry
    return None


def rejoin(draft: Draft, anchor: Entry | None, prs: Sequence[int]) -> None:
    """Place entries that came back behind `anchor`, those that are before it; order kept.

    `anchor` is `last_undisturbed` from before they came back, so a return restarts no run.
    """
    if anchor is None or anchor.rank is None:
        return
    movers = [
        entry
        for pr in prs
        if (entry := draft.entries[pr]).rank is not None and entry.rank < anchor.rank
    ]
    if movers:
        _place_behind(draft, anchor, movers, PlacedWhy.REJOIN)


def gather(draft: Draft, group: Sequence[Entry]) -> None:
    """Put the placed members of a group side by side, right behind the first."""
    first, *rest = group
    line = draft.places.line
    start = bisect_left(line, (first.rank or 0, first.pr))
    if [pr for _, pr in line[start + 1 : start + 1 + len(rest)]] != [one.pr for one in rest]:
        _place_behind(draft, first, rest, PlacedWhy.BATCH)


def put_first(draft: Draft, entry: Entry, why: PlacedWhy) -> None:
    """Give an entry the first place of the line."""
    _place_behind(draft, None, [entry], why)


def insert_before(draft: Draft, other: Entry, movers: Sequence[Entry], why: PlacedWhy) -> None:
    """Put entries right before one that is ahead of them; their order is kept."""
    line = draft.places.line
    index = bisect_left(line, (other.rank or 0, other.pr))
    anchor = draft.entries[line[index - 1][1]] if index else None
    _place_behind(draft, anchor, movers, why)


def take_places_again(draft: Draft) -> None:
    """Let members of failed batches go before newer entries that wait for runs behind the others.

    They came back behind entries under test. When those restart, to overtake them restarts none.
    """
    backwards = (draft.entries[pr] for _, pr in reversed(draft.places.line))
    idle = list(takewhile(_may_be_overtaken, backwards))
    idle.reverse()
    for place, mover in enumerate(idle):
        if not mover.failed_batches or mover.facts.below:
            continue
        newer = next((one for one in idle[:place] if (one.seq or 0) > (mover.seq or 0)), None)
        if newer is not None:
            insert_before(draft, newer, [mover], PlacedWhy.RETURNED)


def _may_be_overtaken(entry: Entry) -> bool:
    is_idle = entry.state is EntryState.PENDING and not entry.held_by
    return is_idle and entry.priority != URGENT


def _is_before_urgent(draft: Draft, entry: Entry) -> bool:
    if entry.priority == URGENT:
        return True
    if entry.state is not EntryState.TESTS_PASSED:
        return False
    return bases.is_sure(draft, draft.runs[entry.run or ""])


def _last_of_batch(draft: Draft, entry: Entry) -> Entry:
    drawn = bases.graph(draft)
    place = drawn.of.get(entry.pr)
    return entry if place is None else draft.entries[drawn.nodes[place].members[-1].pr]


def _is_met(draft: Draft, node: Targets | None, touches: Sequence[Targets | None]) -> bool:
    return not draft.is_parallel or any(targets.meet(node, one) for one in touches)


def _is_passed_over(draft: Draft, anchor: Entry | None, entry: Entry) -> bool:
    """Return whether an entry is between the anchor and the entry, or the entry is ahead of it."""
    line = draft.places.line
    first = 0
    if anchor is not None and anchor.rank is not None:
        first = bisect_right(line, (anchor.rank, anchor.pr))
    return first >= len(line) or line[first][1] != entry.pr


def _place_behind(
    draft: Draft, anchor: Entry | None, entries: Sequence[Entry], why: PlacedWhy
) -> None:
    ranks = _free_ranks(draft, anchor, len(entries))
    if ranks is None:
        _renumber(draft)
        anchor = anchor and draft.entries[anchor.pr]
        ranks = _free_ranks(draft, anchor, len(entries)) or []
    for entry, rank in zip(entries, ranks, strict=True):
        draft.put(replace(draft.entries[entry.pr], rank=rank))
        draft.record(EntryPlaced(entry.pr, entry.id, rank, why))


def _free_ranks(draft: Draft, anchor: Entry | None, count: int) -> list[int] | None:
    """So many ranks right behind the anchor, None: at the front; no room: None."""
    line = draft.places.line
    if anchor is None or anchor.rank is None:
        first = line[0][0] if line else GAP
        return [first - GAP * left for left in range(count, 0, -1)]
    index = bisect_right(line, (anchor.rank, anchor.pr))
    if index == len(line):
        return [anchor.rank + GAP * step for step in range(1, count + 1)]
    width = (line[index][0] - anchor.rank) // (count + 1)
    if width == 0:
        return None
    return [anchor.rank + width * step for step in range(1, count + 1)]


def _renumber(draft: Draft) -> None:
    for index, (_, pr) in enumerate(list(draft.places.line), start=1):
        draft.put(replace(draft.entries[pr], rank=index * GAP))
