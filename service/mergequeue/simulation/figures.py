"""Measurements of a simulation, and the figures made from them."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.mergequeue.engine.explaining.estimates import percentile

MEDIAN, WORST = 0.5, 0.95
"""The percentiles of the time to merge in reports."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One replay. `waits_s` are from the first submission of a head to its merge, in order.

    `restarts` counts entries that went back to PENDING from testing, `failed_good` those FAILED
    although their change breaks nothing; `unfinished` were not final at the end.
    """

    merged: tuple[int, ...]
    waits_s: tuple[float, ...]
    ci_runs: int
    ci_s: float
    restarts: int
    failed: int
    failed_good: int
    cancelled: int
    unfinished: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums over all replays, percentiles over all merges; None where nothing merged."""

    merged: int
    time_to_merge_p50_s: float | None
    time_to_merge_p95_s: float | None
    ci_runs: int
    ci_runs_per_merge: float | None
    ci_minutes: float
    restarts: int
    failed: int
    failed_good: int
    cancelled: int
    unfinished: int


def figures_of(replays: Sequence[Measured]) -> Figures:
    """The figures of queues that have nothing to do with each other, taken together."""
    waits = sorted(wait for one in replays for wait in one.waits_s)
    merged = sum(len(one.merged) for one in replays)
    runs = sum(one.ci_runs for one in replays)
    return Figures(
        merged=merged,
        time_to_merge_p50_s=percentile(waits, MEDIAN) if waits else None,
        time_to_merge_p95_s=percentile(waits, WORST) if waits else None,
        ci_runs=runs,
        ci_runs_per_merge=runs / merged if merged else None,
        ci_minutes=sum(one.ci_s for one in replays) / 60,
        restarts=sum(one.restarts for one in replays),
        failed=sum(one.failed for one in replays),
        failed_good=sum(one.failed_good for one in replays),
        cancelled=sum(one.cancelled for one in replays),
        unfinished=sum(one.unfinished for one in replays),
    )
