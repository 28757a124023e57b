"""How long something still takes, from how long it took before (UX.md 1.8)."""

from collections.abc import Sequence
from dataclasses import dataclass

SAMPLES_MIN = 5
"""Below this nothing is said."""

SAMPLES_MAX = 50
"""Newest successful runs that count."""

LOW, HIGH = 0.25, 0.90
"""Percentiles between which a run probably lies."""


@dataclass(frozen=True, slots=True)
class TimeLeftRange:
    """Seconds from now; both below zero: overdue by `-latest_s`."""

    earliest_s: float
    latest_s: float


def time_left(
    durations_s: Sequence[float], elapsed_s: float, rounds_ahead: int = 0
) -> TimeLeftRange | None:
    """When a run ends that began `elapsed_s` ago, or waits for `rounds_ahead` full rounds.

    `durations_s` are those of successful runs, newest first; None below five of them. Waiting
    adds the same range for each round of slots ahead.
    """
    sample = sorted(durations_s[:SAMPLES_MAX])
    if len(sample) < SAMPLES_MIN:
        return None
    rounds = 1 + rounds_ahead
    return TimeLeftRange(
        earliest_s=_percentile(sample, LOW) * rounds - elapsed_s,
        latest_s=_percentile(sample, HIGH) * rounds - elapsed_s,
    )


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Linear between the two nearest."""
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
