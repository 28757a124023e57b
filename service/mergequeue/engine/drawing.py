"""Drawing the graph of a line: its expected entries as nodes, batches whole (ENGINE.md 7).

`draft.py` says when a drawn graph holds no more; what only comes behind it is added here.
"""

from bisect import bisect_right

from service.mergequeue.engine import targets
from service.mergequeue.engine.draft import Draft
from service.mergequeue.engine.graph import Graph, Node
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.places import is_expected
from service.mergequeue.engine.targets import Targets


def drawn(draft: Draft) -> Graph:
    """The graph of the whole line: what has come since is added, else it is as it was."""
    known = draft.footing.graph
    line = draft.places.line
    if known is not None and (not line or line[-1][0] <= known.end):
        return known
    behind = undrawn(draft)
    whole = draft.graph_to_change()
    _draw(draft, whole, behind)
    return whole


def undrawn(draft: Draft) -> list[tuple[int, int]]:
    """The line behind what is drawn of it."""
    known, line = draft.footing.graph, draft.places.line
    if known is None:
        return line
    if not line or line[-1][0] <= known.end:
        return []
    return line[bisect_right(line, known.end, key=lambda place: place[0]) :]


def _draw(draft: Draft, graph: Graph, behind: list[tuple[int, int]]) -> None:
    group: list[Entry] = []
    for _, pr in behind:
        entry = draft.entries[pr]
        if not is_expected(entry):
            continue
        if group and (entry.batch is None or entry.batch != group[0].batch):
            graph.append(_node(draft, group))
            group = []
        group.append(entry)
    if group:
        graph.append(_node(draft, group))
    if behind:
        graph.end = behind[-1][0]


def _node(draft: Draft, group: list[Entry]) -> Node:
    members = tuple(draft.member_of(entry) for entry in group)
    touches: Targets | None = group[0].touches
    if draft.is_parallel:
        landed = _landed_of_batch(draft, group[0])
        if landed or len(group) > 1:
            touches = targets.union((*landed, *(entry.touches for entry in group)))
    return Node(members, group[-1].rank or 0, touches)


def _landed_of_batch(draft: Draft, entry: Entry) -> list[Targets]:
    """What those of its batch touched that have landed before it: a base takes batches whole."""
    run = draft.runs.get(entry.run or "")
    if run is None or run.number != entry.batch or draft.entry_of(run.entries[0]) is not None:
        return []
    numbers = {member.pr for member in run.entries}
    moves = (move for move in draft.queue.landed if move.pr in numbers)
    return [move.targets for move in moves if move.targets is not None]
