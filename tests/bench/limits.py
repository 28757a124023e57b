"""Landings inside GitHub's limits: the whole service against a sandbox that enforces them.

Pull requests arrive at random (Poisson) for 15 minutes of a fast clock; CI takes ten minutes. Each
cell stops by itself: its arrivals end, what is left gets 18 minutes, and a cell that takes longer
than five minutes of real time is cut and says so. The limits of an hour are not reached in that
time; `tests/end_to_end/test_limits.py` and `tests/github/test_pacing.py` show what happens there.
"""

import asyncio
import random
import re
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import structlog

from service.vocabulary import MergeMethod
from tests.harness.world import World, WorldOptions, living

HOURS = 0.25
LEFT_H = 0.3
SPEED = 8.0
"""A landing has 15 seconds of this clock, so a faster one measures the machine."""
REAL_S_MAX = 300.0
CI_MINUTES = 10
SEED = 7
CI = f"""\
triggers: {{push: ["headgate/merge/**"]}}
checks:
  - {{name: unit, seconds: {CI_MINUTES * 60}}}
"""
SINGLE: Mapping[str, Any] = {"concurrency": 60}
BATCHES: Mapping[str, Any] = {
    "concurrency": 12,
    "batch": True,
    "batching_min_size": 8,
    "batching_max_wait_time_minutes": 3,
    "merge_method": MergeMethod.MERGE_COMMIT,
}
Row = dict[str, object]


@dataclass(frozen=True)
class Cell:
    """One line of the table."""

    name: str
    per_hour: int
    settings: Mapping[str, Any]
    has_limits: bool = True
    content_max: float = 3


CELLS = (
    Cell("single, without limits", 100, SINGLE, has_limits=False),
    Cell("single", 100, SINGLE),
    Cell("batches of 8, landed by ref update", 240, BATCHES, content_max=1.5),
)


@dataclass
class Measured:
    """What one cell gave; `asked` are the numbers with the times of their `/merge`."""

    asked: dict[int, datetime] = field(default_factory=dict)
    is_cut: bool = False


def run(scale: float = 1.0) -> Sequence[Row]:
    """Measure every cell; `scale` multiplies the hours."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    try:
        return [asyncio.run(_row(cell, HOURS * scale)) for cell in CELLS]
    finally:
        structlog.reset_defaults()


async def _row(cell: Cell, hours: float) -> Row:
    options = WorldOptions(ci=CI, required=(), speed=SPEED, has_limits=cell.has_limits)
    measured = Measured()
    with TemporaryDirectory() as folder:
        async with living(Path(folder), options) as world:
            await world.make_queue(required_statuses=("unit",), **cell.settings)
            began = world.clock.now()
            until = monotonic() + REAL_S_MAX
            for name, hours_of in ((_arrive, hours), (_finish, LEFT_H)):
                limit = asyncio.timeout(max(until - monotonic(), 0.1))
                try:
                    async with limit:
                        await name(world, cell, measured, hours_of)
                except TimeoutError:
                    measured.is_cut = True
            return _figures(world, cell, measured, began)


async def _arrive(world: World, cell: Cell, measured: Measured, hours: float) -> None:
    chance = random.Random(SEED)
    end = world.clock.monotonic_s() + hours * 3600
    at_s = world.clock.monotonic_s()
    while True:
        at_s += chance.expovariate(cell.per_hour / 3600)
        if at_s > end:
            return
        await world.clock.sleep(max(at_s - world.clock.monotonic_s(), 0))
        number = await world.open()
        measured.asked[number] = world.clock.now()
        await world.comment("/merge", on=number)


async def _finish(world: World, cell: Cell, measured: Measured, hours: float) -> None:
    end = world.clock.monotonic_s() + hours * 3600
    while world.clock.monotonic_s() < end:
        done = set(await world.merged())
        if done >= set(measured.asked) and all("Merged" in world.comment_on(n) for n in done):
            return
        await world.clock.sleep(30)


def _figures(world: World, cell: Cell, measured: Measured, began: datetime) -> Row:
    """Rates count from the first landing to the last."""
    merged = {
        number: issue.pull.merged_at
        for number, issue in world.repository.issues.items()
        if issue.pull is not None and issue.pull.merged_at is not None
    }
    waits = sorted((at - measured.asked[n]).total_seconds() / 60 for n, at in merged.items())
    times = sorted(merged.values())
    span = max(times[-1] - times[0], timedelta(minutes=1)) if times else timedelta(minutes=1)
    counts = _counts(world)
    refused = [one for one in world.sandbox.world.calls if one["status"] in (403, 429)]
    landed = max(len(merged), 1)
    writes = counts["write"] + counts["content"]
    return {
        "goal": "U1",
        "subject": cell.name,
        "offered_per_hour": cell.per_hour,
        "asked": len(measured.asked),
        "landed": len(merged),
        "landed_per_hour": round(len(merged) / (span.total_seconds() / 3600)),
        "p50_minutes": round(statistics.median(waits), 1) if waits else 0,
        "p95_minutes": round(waits[int(len(waits) * 0.95)], 1) if waits else 0,
        "final_comments_missing": sum("Merged" not in world.comment_on(n) for n in merged),
        "final_comments_missing_goal": 0,
        "refused_by_limits": len(refused),
        "calls": round((counts["read"] + writes) / landed, 1),
        "writes": round(writes / landed, 1),
        "content": round(counts["content"] / landed, 2),
        "content_goal": cell.content_max,
        "is_cut": measured.is_cut,
        "hours": round((world.clock.now() - began).total_seconds() / 3600, 1),
    }


def _counts(world: World) -> Mapping[str, float]:
    """Calls by kind, as the service's own metrics page has them."""
    text = world.runtime.telemetry.text().decode()
    found = dict(re.findall(r'headgate_provider_calls_total{kind="(\w+)"} (\S+)', text))
    return defaultdict(float, {kind: float(count) for kind, count in found.items()})
