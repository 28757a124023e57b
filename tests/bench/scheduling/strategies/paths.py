"""Assumptions about what happens to those ahead, most probable first."""

import heapq
import math
from collections.abc import Callable, Iterable

Path = frozenset[int]
"""Those ahead of which it is assumed that they merge."""


class Paths:
    """Lazy best-first enumeration of the subsets of one's undecided predecessors.

    Scores are logarithms of probabilities. The best path has every predecessor at its likelier
    outcome; others flip some of them, the cheapest flips first (extend or swap the last one).
    """

    __slots__ = ("_flips", "_heap", "_preferred", "best")

    def __init__(self, predecessors: Iterable[int], prob: Callable[[int], float]) -> None:
        best = 0.0
        flips: list[tuple[float, int, bool]] = []
        preferred: list[int] = []
        for pr in predecessors:
            p = prob(pr)
            if p >= 0.5:
                preferred.append(pr)
                best += math.log(p)
                flips.append((math.log(1.0 - p) - math.log(p), pr, False))
            else:
                best += math.log(1.0 - p)
                flips.append((math.log(p) - math.log(1.0 - p), pr, True))
        flips.sort(key=lambda flip: -flip[0])
        self.best = best
        self._flips = flips
        self._preferred = frozenset(preferred)
        self._heap: list[tuple[float, tuple[int, ...]]] = [(-best, ())]

    def next_score(self) -> float | None:
        """The score of the next path, None when there is none."""
        return -self._heap[0][0] if self._heap else None

    def pop(self) -> Path:
        """The next path."""
        negative, taken = heapq.heappop(self._heap)
        last = taken[-1] if taken else -1
        if last + 1 < len(self._flips):
            self._push_after(-negative, taken, last)
        if not taken:
            return self._preferred
        members = set(self._preferred)
        for index in taken:
            _, pr, is_added = self._flips[index]
            if is_added:
                members.add(pr)
            else:
                members.discard(pr)
        return frozenset(members)

    def _push_after(self, score: float, taken: tuple[int, ...], last: int) -> None:
        cost = self._flips[last + 1][0]
        heapq.heappush(self._heap, (-(score + cost), (*taken, last + 1)))
        if taken:
            swapped = -(score + cost - self._flips[last][0])
            heapq.heappush(self._heap, (swapped, (*taken[:-1], last + 1)))
