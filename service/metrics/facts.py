"""Facts and their sums: the values that turns write down and pages read."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

BOUNDS_S = (60, 300, 600, 900, 1800, 3600, 5400, 7200, 14400, 28800, 86400)
"""Upper bounds of buckets, in seconds; one more holds what is longer.

See docs/reference/metrics.md.
"""

ROLLING_BOUNDS_S = BOUNDS_S[:8]
"""Those of the rolling hour; what is longer shares their last bucket."""

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricFact:
    """Something that happened to a queue; `ms` says how long it took, where it took any time.

    `kind` is one of `queue_families.py`, with the values of its labels.
    """

    kind: str
    labels: Labels
    ms: int = 0

    @property
    def cell(self) -> int:
        """The place of its bucket; facts that take no time are all in the first."""
        return bisect_left(BOUNDS_S, self.ms / 1000)


@dataclass(frozen=True, slots=True)
class Sum:
    """The number of facts, and their time together."""

    count: int
    ms: int


Cells = Mapping[tuple[str, Labels, int], Sum]
"""Sums by kind, labels and cell; what never happened is missing."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Facts by duration: how many in each bucket alone, the last without bound."""

    buckets: tuple[int, ...]
    ms: int


Value = int | float | Histogram
"""The value that one series shows."""

Samples = Mapping[str, Mapping[Labels, Value]]
"""Families' names → labels beside those of every series → value."""
