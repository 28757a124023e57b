"""Impacted targets: what a change touches, and whether two changes meet.

Names are opaque. Two sets meet when they share a name or one of them is everything; an empty
set meets only everything. Unknown targets count as everything, wherever that matters.

See docs/design/engine.md 2; docs/design/testing.md 2.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets of a change: names, or with `everything` all there is and ever will be."""

    names: frozenset[str] = frozenset()
    everything: bool = False


ALL = Targets(everything=True)
"""Impacts every target."""


def of(names: Iterable[str]) -> Targets:
    """The targets with these names."""
    return Targets(frozenset(names))


def meet(one: Targets | None, other: Targets | None) -> bool:
    """Return whether two changes may influence each other; unknown targets meet everything."""
    if one is None or other is None or one.everything or other.everything:
        return True
    return not one.names.isdisjoint(other.names)


def union(sets: Iterable[Targets | None]) -> Targets:
    """Return the targets that several changes touch together."""
    names: set[str] = set()
    for each in sets:
        if each is None or each.everything:
            return ALL
        names |= each.names
    return Targets(frozenset(names))
