"""Who stands on whom: the expected entries of the line as nodes, each with all it depends on.

ENGINE.md 7. A node is the batch of a live run, or one placed entry; a base takes nodes whole.
Sets of nodes are bit masks over their places, so that a closure is one integer and joining two
is one operation. Within one target the nodes form a chain: the closure of the last of them holds
all the earlier ones, so a node only looks at the last of each chain it belongs to.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from service.mergequeue import targets
from service.mergequeue.model import Member
from service.mergequeue.targets import Targets


@dataclass(slots=True)
class Node:
    """One place of the graph; `rank` is that of its last member, `ahead` a mask."""

    members: tuple[Member, ...]
    rank: int
    touches: Targets | None
    ahead: int = 0


class Graph:
    """Nodes in line order. With `single` any two meet, whatever they touch."""

    def __init__(self, *, single: bool) -> None:
        self.single = single
        self.nodes: list[Node] = []
        self.of: dict[int, int] = {}
        self._chains: dict[str, int] = {}
        self._barrier = 0
        self._decoded: dict[int, tuple[Member, ...]] = {}
        self._flat: list[Member] = []
        self._starts: list[int] = []

    def append(self, node: Node) -> None:
        """Take in the next node of the line; its `ahead` is set."""
        place = len(self.nodes)
        own = 1 << place
        node.ahead = own - 1 if self.single else self._ahead_of_last(node.touches, own)
        self.nodes.append(node)
        self._starts.append(len(self._flat))
        self._flat.extend(node.members)
        for member in node.members:
            self.of[member.pr] = place

    def closure(self, touches: Targets | None, end: int | None = None) -> int:
        """What somebody who touches this would depend on, standing behind the first `end` nodes."""
        end = len(self.nodes) if end is None else end
        if self.single:
            return (1 << end) - 1
        mask = 0
        for place in range(end - 1, -1, -1):
            node = self.nodes[place]
            if not mask >> place & 1 and targets.meet(touches, node.touches):
                mask |= node.ahead | 1 << place
        return mask

    def members(self, mask: int) -> tuple[Member, ...]:
        """The members of these nodes, in line order."""
        known = self._decoded.get(mask)
        if known is None:
            known = self._decoded[mask] = self._decode(mask)
        return known

    def before(self, rank: int) -> int:
        """How many nodes stand before this rank."""
        low, high = 0, len(self.nodes)
        while low < high:
            middle = (low + high) // 2
            if self.nodes[middle].rank < rank:
                low = middle + 1
            else:
                high = middle
        return low

    def _decode(self, mask: int) -> tuple[Member, ...]:
        if not mask & (mask + 1):
            last = mask.bit_length()
            stop = self._starts[last] if last < len(self._starts) else len(self._flat)
            return tuple(self._flat[:stop])
        return tuple(member for place in places(mask) for member in self.nodes[place].members)

    def _ahead_of_last(self, touches: Targets | None, own: int) -> int:
        if touches is None or touches.everything:
            self._barrier = own | own - 1
            return own - 1
        ahead = self._barrier
        chains = self._chains
        for name in touches.names:
            known = chains.get(name)
            if known is not None:
                ahead |= known
        inclusive = ahead | own
        for name in touches.names:
            chains[name] = inclusive
        return ahead


def places(mask: int) -> Iterator[int]:
    """The places in a mask, in order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
