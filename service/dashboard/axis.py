"""Bars of test runs over a shared axis of time, in percent of its width."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from service.mergequeue.engine.model import Run
from service.mergequeue.engine.states import RunStatus
from service.text import times
from service.text.times import TimeLeft

PAST_MAX, FUTURE_MAX = timedelta(hours=1), timedelta(hours=2)
SHORTEST = timedelta(minutes=20)
STEPS_MIN = (5, 10, 15, 30, 60)
TICKS_MAX = 5
EDGE = 7
"""Percent of the axis at each end where the text of a time would be cut."""


class Tick(NamedTuple):
    """A time on the axis."""

    x: float
    text: str


class Box(NamedTuple):
    """A part of a bar; `kind` is its class in `static/pages.css`."""

    kind: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar with its text; `waits` is a dotted line, `lands` and `fails` are signs at its end."""

    label: str
    boxes: tuple[Box, ...] = ()
    waits: tuple[float, float] | None = None
    lands: float | None = None
    fails: float | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """The times between two instants; what is outside is drawn at the edge."""

    start: datetime
    end: datetime
    now: datetime
    ticks: tuple[Tick, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        length = self.end - self.start
        step = next(
            (each for each in STEPS_MIN if length / timedelta(minutes=each) <= TICKS_MAX),
            STEPS_MIN[-1],
        )
        first = self.start.replace(minute=0, second=0, microsecond=0)
        found = []
        for nth in range(int((self.end - first) / timedelta(minutes=step)) + 1):
            at = first + timedelta(minutes=step) * nth
            if EDGE <= self._share(at) <= 100 - EDGE:
                found.append(Tick(self.x(at), f"{at:%H:%M}"))
        object.__setattr__(self, "ticks", tuple(found))

    def _share(self, at: datetime) -> float:
        return 100 * ((at - self.start) / (self.end - self.start))

    def x(self, at: datetime) -> float:
        """Return where an instant is, from 0 to 100."""
        return round(min(100.0, max(0.0, self._share(at))), 2)

    def box(self, kind: str, since: datetime, until: datetime) -> Box:
        """Return a part of a bar between two instants."""
        x = self.x(since)
        return Box(kind, x, round(max(0.6, self.x(until) - x), 2))


def axis_of(runs: Sequence[Run], left: Sequence[TimeLeft], now: datetime) -> Axis:
    """Return the axis on which these runs and estimates fit, within its limits."""
    starts = [max(now - PAST_MAX, run.created_at) for run in runs]
    ends = [min(now + FUTURE_MAX, each.latest) for each in left]
    start, end = min(starts, default=now), max(ends, default=now)
    missing = max(timedelta(), SHORTEST - (end - start))
    start, end = min(start, now) - missing / 2, max(end, now) + missing / 2
    margin = (end - start) / 20
    return Axis(start - margin, end + margin, now)


def bar_of(axis: Axis, run: Run | None, left: TimeLeft | None) -> Bar | None:
    """Return the bar of a run, or of an entry that waits for one; None: nothing is known."""
    if run is None:
        return None if left is None else _planned(axis, left)
    if run.status is RunStatus.IN_PROGRESS:
        return _running(axis, run, left)
    end = run.finished_at or axis.now
    done = axis.box("b-done", run.created_at, end)
    ran = f"Ran {run.created_at:%H:%M} to {end:%H:%M}"
    if run.status is not RunStatus.SUCCEEDED:
        return Bar(f"{ran}, {run.status.value}", (done,), fails=axis.x(end))
    if left is None:
        return Bar(f"{ran}, passed", (done,))
    lands = max(left.latest, axis.now)
    waits = (axis.x(end), axis.x(lands))
    return Bar(f"{ran}, passed; lands by {lands:%H:%M}", (done,), waits, lands=axis.x(lands))


def _running(axis: Axis, run: Run, left: TimeLeft | None) -> Bar:
    done = axis.box("b-done", run.created_at, axis.now)
    begun = f"Started {run.created_at:%H:%M}"
    if left is None or left.latest <= axis.now:
        return Bar(f"{begun}, {times.duration(axis.now - run.created_at)} so far", (done,))
    boxes = [done]
    earliest = max(left.earliest, axis.now)
    if earliest > axis.now:
        boxes.append(axis.box("b-left", axis.now, earliest))
    boxes.append(axis.box("b-range", earliest, left.latest))
    label = f"{begun}, expected to land {earliest:%H:%M} to {left.latest:%H:%M}"
    return Bar(label, tuple(boxes), lands=axis.x(left.latest))


def _planned(axis: Axis, left: TimeLeft) -> Bar:
    earliest, latest = max(left.earliest, axis.now), max(left.latest, axis.now)
    label = f"Expected to land {earliest:%H:%M} to {latest:%H:%M}"
    return Bar(label, (axis.box("b-plan", earliest, latest),), lands=axis.x(latest))
