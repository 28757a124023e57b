"""Landings inside GitHub's limits: the whole service against a sandbox that enforces them.

Pull requests arrive at random (Poisson); CI takes ten minutes; test branches are built by git. Time
stands still while the process works and jumps to the next timer when it rests
(`tests/harness/clock.py:JumpingLoop`), so the figures are of the service and not of the machine. A
call takes no time; spacing, limits and webhooks do. Arrivals end after `HOURS`, then the rest has
`LEFT_H`; a cell that takes more than `REAL_S_MAX` of real time is cut and says so (SCALE multiplies
hours and that time: 10 gives a day's eight hours). The table shows how many hours were simulated;
one takes about a minute of computing, three where 300 an hour are tested one by one.
"""

import asyncio
import random
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, TypeVar

import structlog

from service.vocabulary import MergeMethod
from tests.harness.clock import JumpingLoop
from tests.harness.world import World, WorldOptions, living

LEFT_H = 1.5
REAL_S_MAX = 480.0
CI_MINUTES = 10
SEED = 7
CI = f"""\
triggers: {{push: ["headgate/merge/**"]}}
checks:
  - {{name: unit, seconds: {CI_MINUTES * 60}}}
"""
FAILING_CI = """\
triggers: {push: ["headgate/merge/**"]}
checks:
  - name: unit
    seconds: 60
    rules:
      - {exists: [broken.txt], conclusion: failure}
"""
SINGLE: Mapping[str, Any] = {"concurrency": 60}
BATCHES: Mapping[str, Any] = {
    "concurrency": 12,
    "batch": True,
    "batching_min_size": 8,
    "batching_max_wait_time_minutes": 3,
    "merge_method": MergeMethod.MERGE_COMMIT,
}
CROWDED: Mapping[str, Any] = {"concurrency": 100}
LEAN: Mapping[str, Any] = {
    **CROWDED,
    "create_prs_for_testing_branches": False,
    "comments_enabled": False,
}
GIT_BUILDS: Mapping[str, Any] = {"build_method": "git"}
REST_MAX = 12  # 16 are 300 landings an hour within GitHub's 5,000 calls
GRAPHQL_MAX = 12  # a limit of its own, of 5,000 points as well
REST, GRAPHQL = "/api/v3/", "/api/graphql"
LOOK_EVERY_S = 0.2
Row = dict[str, object]
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Cell:
    """One load, run without limits and then with them."""

    name: str
    per_hour: int
    hours: float
    settings: Mapping[str, Any]
    p95_max: float
    content_max: float = 3


CELLS = (
    Cell("single", 100, 0.8, SINGLE, p95_max=1.1),
    Cell("single", 300, 0.6, CROWDED, p95_max=1.25),
    Cell("single, check runs only, pushed", 300, 0.3, LEAN, p95_max=1.25, content_max=1),
    Cell("batches of 8, landed by ref update", 300, 0.8, BATCHES, p95_max=1.25, content_max=1.5),
)


@dataclass
class Measured:
    """What one cell gave; `asked` are the numbers with the times of their `/merge`."""

    asked: dict[int, datetime] = field(default_factory=dict)
    is_cut: bool = False


def run(scale: float = 1.0) -> Sequence[Row]:
    """Measure every cell, and show its rows at once; `scale` multiplies the hours."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    try:
        rows: list[Row] = []
        for cell in CELLS:
            rows += _rows_of(cell, scale)
            sys.stderr.write("".join(f"{row}\n" for row in rows[-2:]))
        return [*rows, *_jumped(_promptness())]
    finally:
        structlog.reset_defaults()


def _jumped(measuring: Coroutine[Any, Any, Answer]) -> Answer:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(measuring)


def _rows_of(cell: Cell, scale: float) -> Sequence[Row]:
    """The load without limits, and with them."""
    free = _jumped(_row(cell, cell.hours * scale, has_limits=False))
    limited = _jumped(_row(cell, cell.hours * scale, has_limits=True))
    ratio = float(str(limited["p95_minutes"])) / max(float(str(free["p95_minutes"])), 0.1)
    goals = {"p95_of_unlimited": round(ratio, 2), "p95_of_unlimited_goal": cell.p95_max}
    return [
        free,
        {
            **limited,
            **goals,
            "rest_goal": REST_MAX,
            "graphql_goal": GRAPHQL_MAX,
            "content_goal": cell.content_max,
        },
    ]


async def _row(cell: Cell, hours: float, *, has_limits: bool) -> Row:
    options = WorldOptions(ci=CI, required=(), has_limits=has_limits, settings=dict(GIT_BUILDS))
    measured = Measured()
    with TemporaryDirectory() as folder:
        async with living(Path(folder), options) as world:
            await world.make_queue(required_statuses=("unit",), **cell.settings)
            began = world.clock.now()
            until = monotonic() + REAL_S_MAX * max(hours / cell.hours, 1)
            measured.is_cut = not await _arrive(world, cell, measured, hours, until)
            measured.is_cut |= not await _finish(world, cell, measured, until)
            name = cell.name if has_limits else f"{cell.name}, without limits"
            return _figures(world, name, cell, measured, began)


async def _arrive(world: World, cell: Cell, measured: Measured, hours: float, until: float) -> bool:
    """Open and submit pull requests; return False if real time ended it."""
    chance = random.Random(SEED)
    end = world.clock.monotonic_s() + hours * 3600
    at_s = world.clock.monotonic_s()
    while monotonic() < until:
        at_s += chance.expovariate(cell.per_hour / 3600)
        if at_s > end:
            return True
        await world.clock.sleep(max(at_s - world.clock.monotonic_s(), 0))
        number = await world.open()
        measured.asked[number] = world.clock.now()
        # Two people: each may send ten commands a minute.
        await world.comment("/merge", on=number, by=("alice", "bob")[number % 2])
    return False


async def _finish(world: World, cell: Cell, measured: Measured, until: float) -> bool:
    """Wait until all have landed and are told; return False if real time ended it."""
    end = world.clock.monotonic_s() + LEFT_H * 3600
    while world.clock.monotonic_s() < end:
        if monotonic() > until:
            return False
        done = set(await world.merged()) & set(measured.asked)
        if done == set(measured.asked) and not _untold(world, cell, done):
            return True
        await world.clock.sleep(30)
    return True


def _untold(world: World, cell: Cell, merged: Iterable[int]) -> int:
    """How many merged pull requests lack the last check run, or a last comment that is due."""
    has_comments = cell.settings.get("comments_enabled", True)
    return sum(
        not world.check_on(number).startswith("Merged")
        or (has_comments and "Merged" not in world.comment_on(number))
        for number in merged
    )


def _figures(world: World, name: str, cell: Cell, measured: Measured, began: datetime) -> Row:
    """Rates count from the first landing to the last."""
    merged = {
        number: issue.pull.merged_at
        for number, issue in world.repository.issues.items()
        if number in measured.asked and issue.pull is not None and issue.pull.merged_at is not None
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
        "subject": name,
        "offered_per_hour": cell.per_hour,
        "asked": len(measured.asked),
        "landed": len(merged),
        "landed_per_hour": round(len(merged) / (span.total_seconds() / 3600)),
        "p50_minutes": round(statistics.median(waits), 1) if waits else 0,
        "p95_minutes": round(waits[int(len(waits) * 0.95)], 1) if waits else 0,
        "last_notices_missing": _untold(world, cell, merged),
        "last_notices_missing_goal": 0,
        "refused_by_limits": len(refused),
        "rest": round(len(_calls_of(world, REST)) / landed, 1),
        "graphql": round(len(_calls_of(world, GRAPHQL)) / landed, 1),
        "writes": round(writes / landed, 1),
        "content": round(counts["content"] / landed, 2),
        "is_cut": measured.is_cut,
        "hours": round((world.clock.now() - began).total_seconds() / 3600, 1),
    }


def _calls_of(world: World, api: str) -> Sequence[Mapping[str, Any]]:
    """Calls that count against the hourly limit of an API: an unchanged answer does not."""
    calls = [one for one in world.sandbox.world.calls if str(one["path"]).startswith(api)]
    return [one for one in calls if one["status"] != HTTPStatus.NOT_MODIFIED]


def _counts(world: World) -> Mapping[str, float]:
    """Calls by kind, as the service's own metrics page has them."""
    text = world.runtime.telemetry.text().decode()
    found = dict(re.findall(r'headgate_provider_calls_total{kind="(\w+)"} (\S+)', text))
    return defaultdict(float, {kind: float(count) for kind, count in found.items()})


async def _promptness() -> Sequence[Row]:
    """How soon a failed check is decided on and shown, in a repository that never uploads."""
    options = WorldOptions(ci=FAILING_CI, required=(), has_limits=True, settings=dict(GIT_BUILDS))
    with TemporaryDirectory() as folder:
        async with living(Path(folder), options) as world:
            await world.make_queue(required_statuses=("unit",))
            number = await world.open(files={"broken.txt": "x\n"})
            await world.comment("/merge", on=number)
            changes, shown = await _watched(world, number)
            failed = min(_ends_of_checks(world))
    decided = min(at for at in changes if at >= failed)
    lags = [min(at - change for at in shown if at >= change) for change in changes]
    return [
        {
            "goal": "U3",
            "subject": "failed check to decision, no uploads",
            "seconds": round((decided - failed).total_seconds(), 1),
            "seconds_goal": 12,
        },
        {
            "goal": "U4",
            "subject": f"state to comment, longest of {len(lags)}",
            "seconds": round(max(lags).total_seconds(), 1),
            "seconds_goal": 5,
        },
    ]


def _ends_of_checks(world: World) -> Sequence[datetime]:
    """When the check runs of CI ended."""
    suites = [suite for suites in world.repository.suites.values() for suite in suites]
    checks = [
        check for suite in suites if suite.app is not world.sandbox.app for check in suite.runs
    ]
    return [check.completed_at for check in checks if check.completed_at is not None]


async def _watched(world: World, number: int) -> tuple[list[datetime], list[datetime]]:
    """When the state of a submission changed until its end, and when its comment did."""
    changes: list[datetime] = []
    shown: list[datetime] = []
    state, text = "", ""
    end = world.clock.monotonic_s() + LEFT_H * 3600
    while state != "ended" or shown[-1] < changes[-1]:
        if world.clock.monotonic_s() > end:
            raise RuntimeError("the submission has not ended")
        await world.clock.sleep(LOOK_EVERY_S)
        value = await world.value()
        is_queued = number in value.entries
        seen = value.entries[number].state.value if is_queued else "ended" if changes else ""
        if seen != state:
            state = seen
            changes.append(world.clock.now())
        if world.comment_on(number) != text:
            text = world.comment_on(number)
            shown.append(world.clock.now())
    return changes, shown
