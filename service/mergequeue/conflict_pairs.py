"""Pairs of open pull requests that conflict, and the order that needs the fewest rebases. Pure.

A pull request that lands after one that it conflicts with has to be rebased, once. So the first to
land are a largest set without a pair in it (docs/design/conflicts.md 4).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from service.vocabulary import Sha

EXACT_MAX = 24
"""Larger groups are ordered by the number of pairs of each."""

Graph = Mapping[int, frozenset[int]]


@dataclass(frozen=True, slots=True)
class ConflictPair:
    """Two open pull requests of which one conflicts once the other has landed, by their numbers."""

    low: int
    high: int
    head_low: Sha
    head_high: Sha
    paths: tuple[str, ...]
    found_at: datetime

    def other(self, number: int) -> int | None:
        """Return the other pull request; None if this one is not in the pair."""
        return {self.low: self.high, self.high: self.low}.get(number)


@dataclass(frozen=True, slots=True)
class LandingOrder:
    """Pull requests that conflict, directly or by others: `first` land as they are, then `rebased`.

    `otherwise`: rebases if they land in the order of the queue and of their numbers.
    """

    first: tuple[int, ...]
    rebased: tuple[int, ...]
    otherwise: int

    @property
    def text(self) -> str:
        """The advice as a sentence."""
        count, saves = len(self.rebased), self.otherwise > len(self.rebased)
        rebases = f"{count} rebase{'s' * (count != 1)}"
        instead = f" instead of {self.otherwise}" if saves else ""
        then = f"then rebase {_named(self.rebased)}: {rebases}{instead}"
        return f"Land {_named(self.first)} first, {then}."


@dataclass(frozen=True, slots=True)
class Foreseen:
    """The conflicts of a queue, and the orders of landing that need the fewest rebases.

    `left`: pairs that this process has not compared yet. `is_on`: the radar looks.
    """

    pairs: tuple[ConflictPair, ...]
    orders: tuple[LandingOrder, ...]
    left: int
    looked_at: datetime | None
    is_on: bool
    is_blind: bool

    def of(self, number: int) -> tuple[ConflictPair, ...]:
        """Return the conflicts of one pull request."""
        return tuple(one for one in self.pairs if one.other(number) is not None)

    def others_of(self, number: int) -> tuple[int, ...]:
        """Return the pull requests that one conflicts with."""
        others = (one.other(number) for one in self.pairs)
        return tuple(other for other in others if other is not None)

    def order_of(self, number: int) -> LandingOrder | None:
        """Return the order for the pull requests that this one conflicts with."""
        with_it = (one for one in self.orders if number in (*one.first, *one.rebased))
        return next(with_it, None)


def orders(pairs: Iterable[tuple[int, int]], line: Sequence[int]) -> tuple[LandingOrder, ...]:
    """Return an order for each group of pull requests that conflicts connect.

    `line`: those in the queue, in its order; among equal ones they land first.
    """
    graph: dict[int, set[int]] = {}
    for one, other in pairs:
        graph.setdefault(one, set()).add(other)
        graph.setdefault(other, set()).add(one)
    place = {number: at for at, number in enumerate(line)}
    ranked = sorted(graph, key=lambda number: (place.get(number, len(line)), number))
    rank = {number: at for at, number in enumerate(ranked)}
    found = []
    for group in _groups(ranked, graph):
        own = {number: frozenset(graph[number]) for number in group}
        first = _free(own, rank) if len(group) <= EXACT_MAX else _greedy(own, rank)
        rebased = [number for number in group if number not in first]
        otherwise = sum(any(rank[n] < rank[number] for n in own[number]) for number in group)
        found.append(LandingOrder(tuple(n for n in group if n in first), tuple(rebased), otherwise))
    return tuple(found)


def _groups(ranked: Sequence[int], graph: Mapping[int, set[int]]) -> list[list[int]]:
    """Return the connected groups, each in the order of `ranked`."""
    left, groups = list(ranked), []
    while left:
        met, open_ones = {left[0]}, [left[0]]
        while open_ones:
            new = graph[open_ones.pop()] - met
            met |= new
            open_ones += new
        groups.append([number for number in left if number in met])
        left = [number for number in left if number not in met]
    return groups


def _free(graph: Graph, rank: Mapping[int, int]) -> frozenset[int]:
    """Return a largest set without a pair; of equal ones that with the first members."""
    if not graph:
        return frozenset()
    # One with at most one pair is in some largest set.
    alone = [number for number, others in graph.items() if len(others) <= 1]
    if alone:
        number = min(alone, key=lambda each: rank[each])
        return _free(_without(graph, {number, *graph[number]}), rank) | {number}
    number = min(graph, key=lambda each: (-len(graph[each]), rank[each]))
    with_it = _free(_without(graph, {number, *graph[number]}), rank) | {number}
    return max(
        with_it,
        _free(_without(graph, {number}), rank),
        key=lambda each: (len(each), sorted((-rank[n] for n in each), reverse=True)),
    )


def _greedy(graph: Graph, rank: Mapping[int, int]) -> frozenset[int]:
    """Return a large set without a pair: always the one with the fewest pairs left."""
    found: set[int] = set()
    while graph:
        number = min(graph, key=lambda each: (len(graph[each]), rank[each]))
        found.add(number)
        graph = _without(graph, {number, *graph[number]})
    return frozenset(found)


def _without(graph: Graph, gone: set[int]) -> Graph:
    return {number: others - gone for number, others in graph.items() if number not in gone}


def _named(numbers: Sequence[int]) -> str:
    *most, last = (f"#{number}" for number in numbers)
    return f"{', '.join(most)} and {last}" if most else last
