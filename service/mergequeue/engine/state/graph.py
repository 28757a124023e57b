"""The dependency graph of the line: nodes of expected entries, each with all it depends on.

docs/design/testing.md 2. A node is the batch of a live run, or one placed entry; a base takes nodes
whole. Sets of nodes are bit masks over their places, so that a closure is one integer and joining
two is one operation. Within one target the nodes form a chain: the closure of the last of them
holds all the earlier ones, so a node only looks at the last of each chain it belongs to.

Nodes are only added at the end, and members are taken away that depend on none. After any other
change of the line, the graph is drawn again.
"""

from bisect import bisect_left
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

from service.mergequeue.engine.model import Member
from service.mergequeue.engine.targets import Targets, meet

NOWHERE = -(2**63)
"""A rank before all others."""


@dataclass(slots=True)
class Node:
    """One place of the graph; `rank` is that of its last member, `ahead` a mask."""

    members: tuple[Member, ...]
    rank: int
    touches: Targets | None
    ahead: int = 0


class Graph:
    """Nodes in line order. With `single` any two meet, whatever they touch.

    `of` is the place of each member by pull request, `end` the rank up to which the line is drawn,
    `below` a mask of the nodes that others depend on.
    """

    def __init__(self, *, single: bool) -> None:
        self.single = single
        self.nodes: list[Node] = []
        self.of: dict[int, int] = {}
        self.end = NOWHERE
        self.below = 0
        # Each target's last node; under None the last one that impacts every target.
        self._last: dict[str | None, int] = {}
        self._flat: list[Member] = []
        self._starts: list[int] = []

    def copy(self) -> "Graph":
        """Return a graph of its own with the same content."""
        twin = copy(self)
        twin.nodes, twin.of = self.nodes.copy(), self.of.copy()
        twin._last = self._last.copy()
        twin._flat, twin._starts = self._flat.copy(), self._starts.copy()
        return twin

    def append(self, node: Node) -> None:
        """Add the next node of the line and set its `ahead`."""
        place = len(self.nodes)
        node.ahead = (1 << place) - 1 if self.single else self._ahead_of_last(node.touches)
        self.below |= node.ahead
        self.nodes.append(node)
        self._starts.append(len(self._flat))
        self._flat.extend(node.members)
        for member in node.members:
            self.of[member.pr] = place

    def without(self, pr: int) -> "Graph | None":
        """Return the graph without this member; None unless it is the first of all it depends on.

        Nothing depends on others through it, so the others keep what is ahead of them.
        """
        place = self.of.get(pr)
        node = None if place is None else self.nodes[place]
        if place is None or node is None or node.ahead or node.members[0].pr != pr:
            return None
        twin = self.copy()
        del twin._flat[self._starts[place]], twin.of[pr]
        twin._starts = [start - (start > self._starts[place]) for start in self._starts]
        if len(node.members) > 1:
            twin.nodes[place] = Node(node.members[1:], node.rank, node.touches)
        else:
            twin._cut(place)
        return twin

    def closure(self, touches: Targets | None, end: int | None = None) -> int:
        """Return what an entry with these targets would depend on behind the first `end` nodes."""
        if end is None or end == len(self.nodes):
            return self._met(touches)
        mask = 0
        for place in range(end - 1, -1, -1):
            node = self.nodes[place]
            if not mask >> place & 1 and (self.single or meet(touches, node.touches)):
                mask |= node.ahead | 1 << place
        return mask

    def members(self, mask: int) -> tuple[Member, ...]:
        """Return the members of these nodes, in line order."""
        low = mask & -mask
        if mask & mask + low:
            return tuple(member for place in places(mask) for member in self.nodes[place].members)
        # Neighbors: one slice, because a base of a long line is most often all of it.
        first, end = low.bit_length() - 1, mask.bit_length()
        stop = self._starts[end] if end < len(self._starts) else len(self._flat)
        return tuple(self._flat[self._starts[first] : stop]) if mask else ()

    def before(self, rank: int) -> int:
        """Return how many nodes are before this rank."""
        return bisect_left(self.nodes, rank, key=lambda node: node.rank)

    def _cut(self, place: int) -> None:
        """Close the gap that a node without members leaves."""
        del self._starts[place]
        below = (1 << place) - 1

        def cut(mask: int) -> int:
            return mask & below | mask >> 1 & ~below

        # What is before it in the line depends on nothing behind.
        self.nodes[place:] = [
            node
            if node.ahead <= below
            else Node(node.members, node.rank, node.touches, cut(node.ahead))
            for node in self.nodes[place + 1 :]
        ]
        self.of = {pr: at - (at > place) for pr, at in self.of.items()}
        self.below = cut(self.below)
        self._last = {name: at - (at > place) for name, at in self._last.items() if at != place}

    def _met(self, touches: Targets | None) -> int:
        if self.single or touches is None or touches.everything:
            return (1 << len(self.nodes)) - 1
        mask = 0
        for place in {self._last.get(name) for name in (None, *touches.names)}:
            if place is not None:
                mask |= self.nodes[place].ahead | 1 << place
        return mask

    def _ahead_of_last(self, touches: Targets | None) -> int:
        """Return what the next node depends on; it is the last one of its targets from now on."""
        ahead = self._met(touches)
        names = (None,) if touches is None or touches.everything else touches.names
        self._last |= dict.fromkeys(names, len(self.nodes))
        return ahead


def places(mask: int) -> Iterator[int]:
    """Iterate over the places in a mask, in order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
