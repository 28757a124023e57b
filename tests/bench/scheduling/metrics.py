"""A result as the numbers that are published."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from tests.bench.scheduling.audit import PrState
from tests.bench.scheduling.ideal import undisturbed
from tests.bench.scheduling.interface import URGENT
from tests.bench.scheduling.simulator import Result

HOUR_S, MINUTE_S = 3600.0, 60.0
PERCENTILES = (50, 95, 99)
DECIDED = (PrState.MERGED, PrState.EJECTED)

MORE_IS_BETTER = frozenset({"merged", "merged_per_h", "drain_per_h", "utilization", "fairness"})

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """One strategy in one cell.

    `p50_min` to `p99_min`: turnaround (submitted to merged or rejected) in minutes, `n50` to
    `n99` divided by the ideal's; `merged50` to `verdict95` likewise, of those that merged and of
    those that were rejected. `good` are those the ideal merges. `merged_per_h` up to the
    last arrival, `drain_per_h` up to the last decision. `runs_per_merge` counts started runs,
    `hours_per_merge` CI hours, `abort_share` cancelled of started runs, `utilization` busy
    worker time of all, `doomed_share` runs that hold two which conflict of started runs.
    `wrong_eject_pct` is in % of the good. `urgent95`: 95th percentile of the
    turnaround of urgent ones that merged, divided by that of one undisturbed run of each; 0
    without any. `others50_min`: median of those that are not urgent. `fairness`: Jain's index over
    the mean turnaround of each author, 1 if all are alike; `people95`, `bots95`: 95th percentiles
    of both, divided by the ideal's. Percentiles of nobody are no numbers.
    """

    p50_min: float
    p95_min: float
    p99_min: float
    n50: float
    n95: float
    n99: float
    merged50: float
    merged95: float
    verdict50: float
    verdict95: float
    merged: float
    good: float
    merged_per_h: float
    drain_per_h: float
    runs_per_merge: float
    hours_per_merge: float
    abort_share: float
    doomed_share: float
    utilization: float
    wrong_ejects: float
    wrong_eject_pct: float
    urgent95: float
    others50_min: float
    fairness: float
    people95: float
    bots95: float
    red_main: float
    unproven: float
    superset: float
    via_base: float
    stuck: float
    cancelled_merged: float
    truncated: float
    events: float
    cpu_s: float


def summary(result: Result, yardstick: Result) -> Summary:
    """The numbers of a result beside the ideal of the same workload."""
    q = _percentiles(turnaround(result))
    ideal_q = _percentiles(turnaround(yardstick))
    ended = [_percentiles(turnaround(result, state)) for state in DECIDED]
    merged = result.merged
    per_merge = max(merged, 1)
    arrive = result.workload.arrive
    window_h = max(arrive[-1] - arrive[0], 1.0) / HOUR_S
    whole_h = max(max(result.decided) - arrive[0], 1.0) / HOUR_S
    findings = result.findings
    return Summary(
        p50_min=q[0] / MINUTE_S,
        p95_min=q[1] / MINUTE_S,
        p99_min=q[2] / MINUTE_S,
        n50=q[0] / ideal_q[0],
        n95=q[1] / ideal_q[1],
        n99=q[2] / ideal_q[2],
        merged50=ended[0][0] / ideal_q[0],
        merged95=ended[0][1] / ideal_q[1],
        verdict50=ended[1][0] / ideal_q[0],
        verdict95=ended[1][1] / ideal_q[1],
        merged=merged,
        good=yardstick.merged,
        merged_per_h=result.merged_in_window / window_h,
        drain_per_h=merged / whole_h,
        runs_per_merge=result.runs_started / per_merge,
        hours_per_merge=result.busy / HOUR_S / per_merge,
        abort_share=result.runs_aborted / max(result.runs_started, 1),
        doomed_share=result.runs_doomed / max(result.runs_started, 1),
        utilization=result.busy / HOUR_S / (max(result.workers, 1) * whole_h),
        wrong_ejects=result.wrong_ejects,
        wrong_eject_pct=100.0 * result.wrong_ejects / max(yardstick.merged, 1),
        urgent95=_urgent95(result),
        others50_min=_others50(result) / MINUTE_S,
        fairness=_fairness(result),
        people95=_percentiles(_of_authors(result, bots=False))[1] / ideal_q[1],
        bots95=_percentiles(_of_authors(result, bots=True))[1] / ideal_q[1],
        red_main=findings.red_main,
        unproven=findings.unproven,
        superset=findings.superset,
        via_base=findings.via_base,
        stuck=result.stuck,
        cancelled_merged=findings.cancelled_merged,
        truncated=result.is_truncated,
        events=result.events,
        cpu_s=result.cpu_s,
    )


def mean(summaries: list[Summary]) -> Summary:
    """The mean of each number over the seeds that have it."""
    return _joined(summaries, lambda _name, values: fmean(values))


def worst(summaries: list[Summary]) -> Summary:
    """Each number of the seed in which it is worst."""
    return _joined(
        summaries, lambda name, values: min(values) if name in MORE_IS_BETTER else max(values)
    )


def _joined(summaries: list[Summary], join: Callable[[str, list[float]], float]) -> Summary:
    joined: dict[str, float] = {}
    for name in Summary.__dataclass_fields__:
        values = [float(getattr(one, name)) for one in summaries]
        numbers = [value for value in values if not math.isnan(value)]
        joined[name] = join(name, numbers) if numbers else math.nan
    return Summary(**joined)


def turnaround(result: Result, *states: PrState) -> Floats:
    """Seconds from submission to decision of those that ended so, in order of arrival.

    Without a state of those merged or rejected.
    """
    return _taken(result)[np.isin(np.asarray(result.state), states or DECIDED)]


def _taken(result: Result) -> Floats:
    return np.asarray(result.decided) - np.asarray(result.workload.arrive)


def _fairness(result: Result) -> float:
    """Jain's index: the square of the sum, divided by the number times the sum of squares."""
    authors = _authors(result)[_is_decided(result)]
    taken = turnaround(result)
    means = np.asarray([taken[authors == author].mean() for author in np.unique(authors)])
    return float(means.sum() ** 2 / (len(means) * (means**2).sum())) if len(means) else math.nan


def _of_authors(result: Result, *, bots: bool) -> Floats:
    is_by_bot = _authors(result) < result.workload.config.bots
    return _taken(result)[_is_decided(result) & (is_by_bot == bots)]


def _authors(result: Result) -> NDArray[np.int64]:
    return np.asarray([view.author for view in result.workload.views])


def _is_decided(result: Result) -> NDArray[np.bool_]:
    return np.isin(np.asarray(result.state), DECIDED)


def _is_urgent(result: Result) -> NDArray[np.bool_]:
    return np.asarray([view.priority == URGENT for view in result.workload.views])


def _urgent95(result: Result) -> float:
    which = _is_urgent(result) & (np.asarray(result.state) == PrState.MERGED)
    if not which.any():
        return 0.0
    alone = np.asarray(undisturbed(result.workload))[which]
    return float(np.percentile(_taken(result)[which], 95) / np.percentile(alone, 95))


def _others50(result: Result) -> float:
    taken = _taken(result)[_is_decided(result) & ~_is_urgent(result)]
    return float(np.percentile(taken, 50)) if len(taken) else math.nan


def _percentiles(seconds: Floats) -> list[float]:
    if not len(seconds):
        return [math.nan] * len(PERCENTILES)
    return [float(each) for each in np.percentile(seconds, PERCENTILES)]
