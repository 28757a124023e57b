"""The dependency graph of the line: nodes of expected entries, each with all it depends on.

ENGINE.md 7. A node is the batch of a live run, or one placed entry; a base takes nodes whole.
Sets of nodes are bit masks over their places, so that a closure is one integer and joining two
is one operation. Within one target the nodes form a chain: the closure of the last of them holds
all the earlier ones, so a node only looks at the last of each chain it belongs to.

Nodes come at the end and go by landing, which leaves all others as they are: what a landed node
stood on has landed before it, so masking it away is all. Any other change draws a new graph.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from service.mergequeue.engine.model import Member
from service.mergequeue.engine.targets import Targets, meet

DEAD_MAX = 64
"""A graph with more landed nodes than this is rebuilt."""

NOWHERE = -(2**63)
"""A rank before all others."""


@dataclass(slots=True)
class Node:
    """One place of the graph; `rank` is that of its last member, `ahead` a mask.

    What has landed since stays in `ahead`: it counts only together with `Graph.live`.
    """

    members: tuple[Member, ...]
    rank: int
    touches: Targets | None
    ahead: int = 0


class Graph:
    """Nodes in line order. With `single` any two meet, whatever they touch.

    `live` is the mask of those that have not landed, `of` gives the places of their members and
    `landed` those of members that have; `end` is the rank up to which the line is drawn.
    """

    def __init__(self, *, single: bool) -> None:
        self.single = single
        self.nodes: list[Node] = []
        self.live = 0
        self.of: dict[int, int] = {}
        self.landed: dict[int, int] = {}
        self.end = NOWHERE
        self._chains: dict[str, int] = {}
        self._barrier = 0
        self._flat: list[Member] = []
        self._starts: list[int] = []
        self._stops: list[int] = []
        self._half = 0

    def copy(self) -> "Graph":
        """A graph of its own with the same content."""
        twin = Graph(single=self.single)
        twin.nodes = self.nodes.copy()
        twin.live = self.live
        twin.of = self.of.copy()
        twin.landed = self.landed.copy()
        twin.end = self.end
        twin._chains = self._chains.copy()
        twin._barrier = self._barrier
        twin._flat = self._flat.copy()
        twin._starts = self._starts.copy()
        twin._stops = self._stops.copy()
        twin._half = self._half
        return twin

    @property
    def size(self) -> int:
        """How many nodes stand."""
        return self.live.bit_count()

    @property
    def is_worn(self) -> bool:
        """Whether most of it has landed."""
        dead = len(self.nodes) - self.size
        return dead > max(DEAD_MAX, self.size)

    def standing(self) -> Iterator[Node]:
        """The nodes that have not landed, in line order."""
        return map(self.nodes.__getitem__, places(self.live))

    def append(self, node: Node) -> None:
        """Take in the next node of the line; its `ahead` is set."""
        place = len(self.nodes)
        own = 1 << place
        node.ahead = own - 1 if self.single else self._ahead_of_last(node.touches, own)
        self.nodes.append(node)
        self.live |= own
        self._starts.append(len(self._flat))
        self._flat.extend(node.members)
        self._stops.append(len(self._flat))
        for member in node.members:
            self.of[member.pr] = place

    def is_next(self, pr: int) -> bool:
        """Return whether the node depends on no other: none ahead, no other entry in its own."""
        place = self.of.get(pr)
        if place is None or self.nodes[place].members[0].pr != pr:
            return False
        return not self.nodes[place].ahead & self.live

    def land(self, pr: int) -> None:
        """Take out one that is next. The rest of its batch still touches what the whole touched."""
        place = self.of.pop(pr)
        self.landed[pr] = place
        node = self.nodes[place]
        if len(node.members) == 1:
            self.live &= ~(1 << place)
        else:
            self.nodes[place] = replace(node, members=node.members[1:])
            self._starts[place] += 1
            self._half |= 1 << place

    def is_partial(self, pr: int) -> bool:
        """Whether others of its batch have landed before this one."""
        place = self.of.get(pr)
        return place is not None and bool(self._half >> place & 1)

    def neighbors(self, place: int) -> list[Node]:
        """The nodes right before and right behind this place."""
        before = self.live & ((1 << place) - 1)
        behind = self.live >> place + 1
        found = [self.nodes[before.bit_length() - 1]] if before else []
        if behind:
            found.append(self.nodes[place + (behind & -behind).bit_length()])
        return found

    def closure(self, touches: Targets | None, end: int | None = None) -> int:
        """Return what an entry with these targets would depend on behind the first `end` nodes."""
        if end is None or end == len(self.nodes):
            return self._met(touches) & self.live
        mask = 0
        for place in range(end - 1, -1, -1):
            node = self.nodes[place]
            if not mask >> place & 1 and (self.single or meet(touches, node.touches)):
                mask |= node.ahead | 1 << place
        return mask & self.live

    def members(self, mask: int) -> tuple[Member, ...]:
        """The members of these nodes, in line order."""
        low = mask & -mask
        # Neighbors stand side by side; only the first of them may have begun to land.
        if not mask & mask + low and not mask & self._half & ~low:
            if not mask:
                return ()
            first, last = low.bit_length() - 1, mask.bit_length() - 1
            return tuple(self._flat[self._starts[first] : self._stops[last]])
        return tuple(member for place in places(mask) for member in self.nodes[place].members)

    def before(self, rank: int) -> int:
        """The place behind all nodes that stand before this rank."""
        for place in range(len(self.nodes) - 1, -1, -1):
            if self.live >> place & 1 and self.nodes[place].rank < rank:
                return place + 1
        return 0

    def _met(self, touches: Targets | None) -> int:
        if self.single or touches is None or touches.everything:
            return (1 << len(self.nodes)) - 1
        mask = self._barrier
        for name in touches.names:
            mask |= self._chains.get(name, 0)
        return mask

    def _ahead_of_last(self, touches: Targets | None, own: int) -> int:
        ahead = self._met(touches)
        if touches is None or touches.everything:
            self._barrier = ahead | own
        else:
            for name in touches.names:
                self._chains[name] = ahead | own
        return ahead


def places(mask: int) -> Iterator[int]:
    """The places in a mask, in order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
