"""A queue drawn as what it is: runs stacked on the tip, searches beside them, those that wait.

The bars of test runs share an axis of time, in percent of its width.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from service.dashboard import marks
from service.dashboard.marks import Mark
from service.mergequeue.engine.checked import checked_of
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.explaining.explain import Explained
from service.mergequeue.engine.model import Bisection, Entry, MergeQueue, Run
from service.mergequeue.engine.states import EntryState, RunStatus
from service.mergequeue.operations import queue_views
from service.mergequeue.operations.page_of_queue import PageOfQueue
from service.mergequeue.operations.views import PullRequestView
from service.mergequeue.wording import checked_names, conditions, reasons, situation
from service.text import markdown, phrases, times
from service.text.phrases import Moment, Phrase, phrase
from service.text.times import TimeLeft

ENTRIES_MAX = 200
"""Entries of the line on one page."""

IN_FULL_MAX = 30
"""Entries without a run that are drawn with their reason; more take one line of text each."""

BASE_SHOWN_MAX = 3

_PAST_MAX, _FUTURE_MAX = timedelta(hours=1), timedelta(hours=2)
_SHORTEST = timedelta(minutes=20)
_STEPS_MIN = (5, 10, 15, 30, 60)
_TICKS_MAX = 5
_EDGE = 7
"""Percent of the axis at each end where the text of a time would be cut."""


class _Tick(NamedTuple):
    """A time on the axis."""

    x: float
    at: datetime


class _Box(NamedTuple):
    """A part of a bar; `kind` is its class in `static/pages.css`."""

    kind: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class _Bar:
    """A bar with its text; `waits` is a dotted line, `lands` and `fails` are signs at its end."""

    label: Phrase
    boxes: tuple[_Box, ...] = ()
    waits: tuple[float, float] | None = None
    lands: float | None = None
    fails: float | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """The times between two instants; what is outside is drawn at the edge."""

    start: datetime
    end: datetime
    now: datetime
    ticks: tuple[_Tick, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        length = self.end - self.start
        step = next(
            (each for each in _STEPS_MIN if length / timedelta(minutes=each) <= _TICKS_MAX),
            _STEPS_MIN[-1],
        )
        first = self.start.replace(minute=0, second=0, microsecond=0)
        found = []
        for nth in range(int((self.end - first) / timedelta(minutes=step)) + 1):
            at = first + timedelta(minutes=step) * nth
            if _EDGE <= self._share(at) <= 100 - _EDGE:
                found.append(_Tick(self.x(at), at))
        object.__setattr__(self, "ticks", tuple(found))

    def _share(self, at: datetime) -> float:
        return 100 * ((at - self.start) / (self.end - self.start))

    def x(self, at: datetime) -> float:
        """Return where an instant is, from 0 to 100."""
        return round(min(100.0, max(0.0, self._share(at))), 2)

    def box(self, kind: str, since: datetime, until: datetime) -> _Box:
        """Return a part of a bar between two instants."""
        x = self.x(since)
        return _Box(kind, x, round(max(0.6, self.x(until) - x), 2))


@dataclass(frozen=True, slots=True)
class CheckShown:
    """A required status of a run."""

    name: str
    url: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class LineRow:
    """Entries that one run tests, or one entry without a run.

    Entries that wait for the same share a row. `left` is the time left in words, `begun` when
    its run began if no time left is known, `lands` when it lands at the latest.
    `progress` is in percent. Not `is_full`: one line of text.
    """

    entries: tuple[PullRequestView, ...]
    mark: Mark
    run: Run | None
    on: Phrase
    checks: tuple[CheckShown, ...]
    notes: tuple[Phrase, ...]
    bar: _Bar | None
    left: str
    begun: datetime | None
    lands: datetime | None
    progress: int | None
    is_full: bool = True

    @property
    def is_waiting(self) -> bool:
        """Return whether no run tests it yet."""
        return self.run is None


@dataclass(frozen=True, slots=True)
class SearchRow:
    """A run of a search: for each suspect whether it is `tested`, in its `base` or `out`."""

    run: Run
    mark: Mark
    cells: tuple[tuple[int, str], ...]
    failed: tuple[CheckShown, ...]
    bar: _Bar | None


@dataclass(frozen=True, slots=True)
class Search:
    """A search for the cause of a failure, its runs in the order they were made."""

    entries: tuple[PullRequestView, ...]
    suspects: Phrase
    rows: tuple[SearchRow, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """The searches and the rows of one part of a queue; `after` entries come before it."""

    axis: Axis
    searches: tuple[Search, ...]
    rows: tuple[LineRow, ...]
    after: int
    total: int

    @property
    def is_last(self) -> bool:
        """Return whether nothing comes behind it."""
        return self.after + ENTRIES_MAX >= self.total


def drawn(page: PageOfQueue, after: int, now: datetime) -> Line:
    """Return the line behind its first `after` entries, at most `ENTRIES_MAX` of them."""
    value = page.view.value
    placed = [each for each in page.view.entries if each.position is not None]
    waiting = [each for each in placed if each.entry.bisection not in value.bisections]
    shown = waiting[after : after + ENTRIES_MAX]
    runs = [run for each in shown if (run := _run_of(value, each.entry)) is not None]
    runs += page.searched.values()
    lefts = [each.eta for each in shown[:IN_FULL_MAX] if each.eta is not None]
    scale = _axis_of(runs, lefts, now)
    searches = () if after else tuple(_searches(page, placed, scale))
    return Line(scale, searches, rows_of(value, shown, scale), after, len(waiting))


def _run_of(value: MergeQueue, entry: Entry) -> Run | None:
    """Return the run that tests an entry, or that it passed in."""
    return value.runs.get(entry.run or entry.verified_by or "")


def rows_of(
    value: MergeQueue,
    shown: Sequence[PullRequestView],
    scale: Axis,
    in_full_max: int = IN_FULL_MAX,
) -> tuple[LineRow, ...]:
    """Return a row for each run and for each entry without one, in the order of the queue.

    The first `in_full_max` entries without a run are drawn in full.
    """
    full = _notes_of(value, shown, scale.now, in_full_max)

    def key(view: PullRequestView) -> object:
        run = _run_of(value, view.entry)
        if run is not None:
            return run.id
        entry = view.entry
        is_alone = entry.id not in full or entry.held_by
        return entry.id if is_alone else (full[entry.id], marks.of_entry(entry), view.eta)

    rows = []
    for _, group in groupby(shown, key=key):
        views = tuple(group)
        notes = full.get(views[0].entry.id)
        rows.append(_row(value, views, scale, notes))
    return tuple(rows)


def _notes_of(
    value: MergeQueue, shown: Sequence[PullRequestView], now: datetime, in_full_max: int
) -> dict[str, tuple[Phrase, ...]]:
    """Return the notes of entries that are drawn in full, by id."""
    in_runs = [each.entry for each in shown if _run_of(value, each.entry) is not None]
    others = [each.entry for each in shown if _run_of(value, each.entry) is None]
    full = (*in_runs, *others[:in_full_max])
    explained = queue_views.explain_entries(value, full, now)
    return {each.id: tuple(notes_of(value, each, explained[each.id], now)) for each in full}


def _row(
    value: MergeQueue,
    views: tuple[PullRequestView, ...],
    scale: Axis,
    notes: tuple[Phrase, ...] | None,
) -> LineRow:
    entry, now = views[0].entry, scale.now
    run = _run_of(value, entry)
    # Nobody knows when a conflict is gone.
    eta = None if entry.held_by else views[-1].eta
    is_over = eta is not None and eta.latest < now
    is_full = notes is not None
    return LineRow(
        entries=views,
        mark=marks.of_entry(entry, is_failing=views[0].failing is not None),
        run=run,
        on=Phrase() if run is None else stacked_on(value, run),
        checks=() if run is None else checks_of(run),
        notes=notes or (),
        bar=_bar_of(scale, run, eta) if is_full else None,
        left=_left(entry, eta, now),
        begun=None if run is None or eta else run.created_at,
        lands=None if eta is None or is_over else eta.latest,
        progress=_progress(run, eta, now),
        is_full=is_full,
    )


def stacked_on(value: MergeQueue, run: Run) -> Phrase:
    """Return what a run was built on: `on main`, `on #1 and #2`, `on 7 ahead`."""
    prs = run.base_prs
    if not prs:
        return phrase("on {}", value.branch)
    if len(prs) <= BASE_SHOWN_MAX:
        return phrase("on {}", phrases.pulls(prs))
    return phrase("on {} ahead, up to {}", len(prs), phrases.pulls(prs[-1:]))


def checks_of(run: Run) -> tuple[CheckShown, ...]:
    """Return the required statuses of a run with their present result."""
    if run.contained or run.reused_from is not None:
        # No report on its own commit counts.
        return tuple(
            CheckShown(one.name, one.url, marks.of_checked(one)) for one in checked_of(run)
        )
    return tuple(
        CheckShown(one.required.name, one.named.url, marks.of_standing(one, run))
        for one in verdict.standings_of(run)
    )


def notes_of(
    value: MergeQueue, entry: Entry, explained: Explained, now: datetime
) -> Iterable[Phrase]:
    """Return what an entry waits for, and what is odd about its test run."""
    run = _run_of(value, entry)
    if run is not None and entry.state is EntryState.TESTING:
        found = situation.failing_of(entry, run)
        if found is not None:
            yield phrases.sentence(reasons.failing(found))
        yield from checked_names.of_run(run, now)
        return
    waits = next((one for one in explained.conditions if not one.met), None)
    if waits is not None:
        yield phrase("Waits until {}", conditions.clause(waits, value))
    if entry.held_by and entry.detail.paths:
        yield phrase("Both change {}", phrases.names(entry.detail.paths))


def _left(entry: Entry, eta: TimeLeft | None, now: datetime) -> str:
    if eta is not None:
        return times.remaining(eta, now) if eta.latest < now else times.span(eta, now)
    if entry.held_by:
        return markdown.plain(phrase("after {}", phrases.pulls(entry.held_by, "or")))
    return ""


def _progress(run: Run | None, eta: TimeLeft | None, now: datetime) -> int | None:
    if run is None or eta is None or eta.latest <= run.created_at:
        return None
    share = (now - run.created_at) / (eta.latest - run.created_at)
    return round(100 * min(1.0, max(0.0, share)))


def _searches(
    page: PageOfQueue, placed: Sequence[PullRequestView], scale: Axis
) -> Iterable[Search]:
    for search in page.view.value.bisections.values():
        prs = tuple(member.pr for member in search.entries)
        runs = [run for run in page.searched.values() if _is_of(run, search)]
        runs.sort(key=lambda run: (run.created_at, run.number))
        yield Search(
            entries=tuple(each for each in placed if each.entry.bisection == search.id),
            suspects=phrases.pulls(prs[search.lo : search.hi], "or"),
            rows=tuple(_search_row(run, prs, scale) for run in runs),
        )


def _is_of(run: Run, search: Bisection) -> bool:
    return run.bisection == search.id or run.id == search.run


def _search_row(run: Run, prs: Sequence[int], scale: Axis) -> SearchRow:
    tested, base = set(run.prs), set(run.base_prs)
    return SearchRow(
        run=run,
        mark=marks.of_run(run),
        cells=tuple(
            (pr, "tested" if pr in tested else "base" if pr in base else "out") for pr in prs
        ),
        failed=tuple(one for one in checks_of(run) if one.mark.color == "bad"),
        bar=_bar_of(scale, run, None),
    )


def _axis_of(runs: Sequence[Run], left: Sequence[TimeLeft], now: datetime) -> Axis:
    """Return the axis on which these runs and estimates fit, within its limits."""
    starts = [max(now - _PAST_MAX, run.created_at) for run in runs]
    ends = [min(now + _FUTURE_MAX, each.latest) for each in left]
    start, end = min(starts, default=now), max(ends, default=now)
    missing = max(timedelta(), _SHORTEST - (end - start))
    start, end = min(start, now) - missing / 2, max(end, now) + missing / 2
    margin = (end - start) / 20
    return Axis(start - margin, end + margin, now)


def _bar_of(axis: Axis, run: Run | None, left: TimeLeft | None) -> _Bar | None:
    """Return the bar of a run, or of an entry that waits for one; None: nothing is known."""
    if run is None:
        return None if left is None else _planned(axis, left)
    if run.status is RunStatus.IN_PROGRESS:
        return _running(axis, run, left)
    end = run.finished_at or axis.now
    done = axis.box("b-done", run.created_at, end)
    ran = phrase("Ran {} to {}", _time(run.created_at), _time(end))
    if run.status is not RunStatus.SUCCEEDED:
        return _Bar(ran + phrase(f", {run.status.value}"), (done,), fails=axis.x(end))
    if left is None:
        return _Bar(ran + phrase(", passed"), (done,))
    lands = max(left.latest, axis.now)
    waits = (axis.x(end), axis.x(lands))
    label = ran + phrase(", passed; lands by {}", _time(lands))
    return _Bar(label, (done,), waits, lands=axis.x(lands))


def _running(axis: Axis, run: Run, left: TimeLeft | None) -> _Bar:
    done = axis.box("b-done", run.created_at, axis.now)
    begun = phrase("Started {}", _time(run.created_at))
    if left is None or left.latest <= axis.now:
        so_far = times.duration(axis.now - run.created_at)
        return _Bar(begun + phrase(f", {so_far} so far"), (done,))
    boxes = [done]
    earliest = max(left.earliest, axis.now)
    if earliest > axis.now:
        boxes.append(axis.box("b-left", axis.now, earliest))
    boxes.append(axis.box("b-range", earliest, left.latest))
    lands = (_time(earliest), _time(left.latest))
    label = begun + phrase(", expected to land {} to {}", *lands)
    return _Bar(label, tuple(boxes), lands=axis.x(left.latest))


def _planned(axis: Axis, left: TimeLeft) -> _Bar:
    earliest, latest = max(left.earliest, axis.now), max(left.latest, axis.now)
    label = phrase("Expected to land {} to {}", _time(earliest), _time(latest))
    return _Bar(label, (axis.box("b-plan", earliest, latest),), lands=axis.x(latest))


def _time(at: datetime) -> Moment:
    return Moment(at, f"{at:%H:%M}")
