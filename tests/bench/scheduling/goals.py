"""The goals P1 to P23, held against measured cells, with and without test results.

A goal counts as met within 5 %, as it is stated; what must be 0 has no tolerance. P19 to P22 are of
a world in which failures are known early, P23 of the believable one (world.py).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.bench.scheduling.cells import (
    CELLS_IN_WORLDS,
    STRATEGIES_IN_WORLDS,
    Cell,
    Effort,
    Scenario,
    measured,
    published,
    worlds,
)
from tests.bench.scheduling.engine_strategy import engines
from tests.bench.scheduling.metrics import Summary
from tests.bench.scheduling.scenarios import HELD_OUT, MIDDLE
from tests.bench.scheduling.strategies.registry import ORACLES

TOLERANCE = 0.05
SHARE_AT_SCALE_1 = 0.1
"""Of the published number of pull requests, where CI is not overloaded."""

MAX_CPU_S = 10.0
"""Of one simulation at scale 1."""

COUNT_IN_WORLDS, COUNT_IN_WORLDS_MAX = 300, 900
"""Pull requests of a simulation in other worlds, at scale 1 and at most."""

URGENT_MAX, GROWTH_MAX = 1.3, 1.1
"""P13: 95th percentile of urgent ones in undisturbed runs; growth of the others' median."""

WRONG_PCT_MAX = 0.1
"""P2: good pull requests that were rejected, in every cell."""

CUT_OFF, TEST_RESULTS = "cut off", "test results"
OURS, FIXED, PLAIN = "headgate", "headgate-fixed", "headgate-plain"
PROTO, EVI = "proto", "evi"

Row = dict[str, object]
Cells = Mapping[Scenario, Cell]
Rows = Mapping[str, Summary]


@dataclass(frozen=True)
class Bound:
    """A wanted figure: at most `limit`, times the same figure of another strategy if one is named.

    `is_floor`: at least.
    """

    label: str
    metric: str
    limit: float
    of: str | None = None
    is_floor: bool = False

    def limit_in(self, rows: Rows) -> float:
        """The limit as a number."""
        return self.limit if self.of is None else self.limit * getattr(rows[self.of], self.metric)

    def is_met(self, rows: Rows, name: str) -> bool:
        """Whether the strategy reaches it, within the tolerance."""
        value, limit = getattr(rows[name], self.metric), self.limit_in(rows)
        if self.is_floor:
            return bool(value >= limit * (1 - TOLERANCE))
        return bool(value <= limit * (1 + TOLERANCE))


@dataclass(frozen=True)
class Goal:
    """Bounds for one of our settings in one cell."""

    id: str
    scenario: Scenario
    bounds: tuple[Bound, ...]
    name: str = OURS

    def is_measured(self, rows: Rows) -> bool:
        """Whether all strategies it speaks of were, and those it compares with to the end."""
        others = {bound.of for bound in self.bounds if bound.of is not None}
        return self.name in rows and all(_is_whole(rows, other) for other in others)


def _p50(limit: float) -> Bound:
    return Bound("P50", "n50", limit)


def _p95(limit: float) -> Bound:
    return Bound("P95", "n95", limit)


def _runs(limit: float) -> Bound:
    return Bound("runs/merge", "runs_per_merge", limit)


def _figures_of(p50: float, p95: float, runs: float) -> tuple[Bound, ...]:
    return _p50(p50), _p95(p95), _runs(runs)


def _at_least_as_fast_as(name: str) -> tuple[Bound, ...]:
    return (
        Bound("P50", "n50", 1, of=name),
        Bound("P95", "n95", 1, of=name),
    )


F_MIDDLE, S_MIDDLE = (Scenario(family, *MIDDLE[family]) for family in ("F", "S"))
F_URGENT, S_URGENT = (Scenario(family, *MIDDLE[family], "urgent 1%") for family in ("F", "S"))
ALL_MERGES = Bound("merged/h", "merged_per_h", 0.99, of="oracle", is_floor=True)

GOALS = (
    Goal("P3", Scenario("F", 60, 24), (*_figures_of(1.30, 2.8, 1.55), ALL_MERGES)),
    Goal("P4", F_MIDDLE, _figures_of(0.92, 1.60, 1.50)),
    Goal(
        "P5",
        Scenario("F", 60, 8),
        (
            Bound("merged P50", "merged50", 1.8),
            Bound("merged P95", "merged95", 10),
            Bound("rejected P95", "verdict95", 20),
            _runs(0.58),
        ),
    ),
    Goal("P6", Scenario("F", 10, 8), _figures_of(1.00, 1.45, 1.30)),
    Goal("P7", S_MIDDLE, _figures_of(1.08, 1.25, 2.5)),
    Goal("P7", Scenario("S", 500, 500), _figures_of(1.04, 1.15, 1.30)),
    Goal("P8", Scenario("S", 300, 100), (_p50(2.0),)),
    Goal(
        "P9",
        Scenario("S", 300, 300, "ALL 1%"),
        (*_figures_of(1.6, 2.6, 4), Bound("CPU s", "cpu_s", 20, of=PROTO)),
    ),
    Goal("P10", Scenario("F", 30, 24, "no predictor"), (_p50(1.8), _p95(2.5))),
    Goal("P12", F_MIDDLE, _at_least_as_fast_as("batch-chain"), FIXED),
    Goal("P12", F_MIDDLE, _at_least_as_fast_as("prefix"), PLAIN),
    Goal("P14", Scenario("F", 60, 64), _figures_of(1.02, 2.40, 2.3)),
    Goal(
        "P15",
        Scenario("F", 30, 24, "conflicts 10%"),
        (*_figures_of(1.45, 3.8, 2.6), Bound("doomed", "doomed_share", 0.08)),
    ),
    Goal("P16", Scenario("F", 30, 24, "bursts of 8"), _figures_of(0.92, 2.0, 1.55)),
    Goal("P17", Scenario("F", 30, 24, "weak predictor, broken 8%"), _figures_of(1.30, 2.2, 2.2)),
    Goal("P18", Scenario("F", 30, 24, "flaky 10%"), _figures_of(1.0, 2.05, 1.75)),
)


RELATIVE = 1.1
"""P23: how much slower than a queue on the same slots that knows what is bad."""

RUNS_RELATIVE = 1.5
"""P23: as many runs to find out what that queue knows."""


def _near(name: str) -> tuple[Bound, ...]:
    return (
        Bound("P50", "n50", RELATIVE, of=name),
        Bound("P95", "n95", RELATIVE, of=name),
        Bound("runs/merge", "runs_per_merge", RUNS_RELATIVE, of=name),
    )


def _early(cell: tuple[float, int], variation: str = "base") -> Scenario:
    return Scenario("F", *cell, variation, world="early failures")


GOALS_OF_WORLDS = (
    Goal("P19", _early((60, 24)), (_p50(1.05), _p95(2.2))),
    Goal("P20", _early((60, 8)), (_p50(1.6), _p95(10))),
    Goal(
        "P21",
        _early((30, 24), "conflicts 10%"),
        (_p50(1.15), _p95(2.5), Bound("doomed", "doomed_share", 0.08)),
    ),
    Goal(
        "P22",
        _early((30, 24), "weak predictor, broken 8%"),
        (_p50(1.10), _p95(1.7)),
    ),
    *(
        Goal("P23", replace(scenario, world="believable"), _near("oracle-batch"))
        for scenario in CELLS_IN_WORLDS
    ),
)
"""Goals of other worlds.

Those of the early failures are what the engine reached when this world was tried first. In the
believable one there was no figure to start from: `oracle-batch` has the same slots and is told what
is bad, so its figures can be reached by one who knows. They are no bound: a queue that tests a pull
request in several runs at once escapes the longest of them and can be faster.
"""


def with_results() -> Iterator[Goal]:
    """The same goals in the cells in which CI sends the results of its tests."""
    cells = published()
    for goal in GOALS:
        known = goal.scenario.variation
        variation = TEST_RESULTS if known == "base" else f"{known}, {TEST_RESULTS}"
        scenario = replace(goal.scenario, variation=variation)
        if goal.name == OURS and scenario in cells:
            yield replace(goal, scenario=scenario)


def run(scale: float = 1.0) -> list[Row]:
    """The goals as rows; scale 1: their own cells, fewer pull requests, one seed; 5: the whole.

    A larger scale takes more seeds and more of the pull requests, up to the published ones.
    """
    effort = Effort(
        seeds=HELD_OUT[: max(1, int(scale))],
        share=min(1.0, SHARE_AT_SCALE_1 * scale),
        max_cpu_s=MAX_CPU_S * max(1.0, scale),
    )
    in_worlds = replace(
        effort,
        count=min(COUNT_IN_WORLDS_MAX, round(COUNT_IN_WORLDS * scale)),
        strategies=STRATEGIES_IN_WORLDS,
    )
    scenarios = published() if scale >= len(HELD_OUT) else needed()
    cells = [*measured(scenarios, effort), *measured(needed_in_worlds(), in_worlds)]
    return rows_of({cell.scenario: cell for cell in cells})


def needed() -> tuple[Scenario, ...]:
    """The cells that goals name."""
    named = [goal.scenario for goal in GOALS]
    more = (Scenario("F", 30, 24, "cancel 5%"), Scenario("F", 30, 24, "outage 20 min"), *worlds())
    return tuple(dict.fromkeys([*named, *more, F_URGENT, S_URGENT]))


def needed_in_worlds() -> tuple[Scenario, ...]:
    """The cells of other worlds that goals name."""
    return tuple(dict.fromkeys(goal.scenario for goal in GOALS_OF_WORLDS))


def rows_of(cells: Cells) -> list[Row]:
    """A row for each goal whose cell and strategies were measured."""
    rows = [_safety(cells), *_wrong_ejects(cells)]
    for goal in (*GOALS, *GOALS_OF_WORLDS, *with_results(), *_others(cells)):
        cell = cells.get(goal.scenario)
        if cell is not None and goal.is_measured(cell.rows):
            rows.append(_row(goal, cell))
    for urgent, calm in ((F_URGENT, F_MIDDLE), (S_URGENT, S_MIDDLE)):
        if urgent in cells and calm in cells and OURS in cells[urgent].rows:
            rows.append(_urgency(cells[urgent], cells[calm]))
    return sorted(rows, key=lambda row: int(str(row["goal"])[1:]))


def rows_in_worlds(cells: Cells) -> list[Row]:
    """A row for each goal of other worlds whose cell and strategies were measured."""
    return [
        _row(goal, cells[goal.scenario])
        for goal in GOALS_OF_WORLDS
        if goal.scenario in cells and goal.is_measured(cells[goal.scenario].rows)
    ]


def _row(goal: Goal, cell: Cell) -> Row:
    rows = cell.rows
    wanted = (
        f"{bound.label} {'≥' if bound.is_floor else '≤'} {bound.limit_in(rows):.4g}"
        for bound in goal.bounds
    )
    return {
        "goal": goal.id,
        "cell": cell.scenario.title,
        "settings": goal.name,
        "wanted": _joined(wanted),
        "figure": _figures(rows[goal.name], goal.bounds),
        "met": _met(rows[goal.name], (bound.is_met(rows, goal.name) for bound in goal.bounds)),
        **_compared(rows, goal.bounds),
    }


def _compared(rows: Rows, bounds: Sequence[Bound]) -> Row:
    """The same figures of the fastest baseline, and of the prototypes."""
    shown: Row = {}
    best = _best_baseline(rows, "n50")
    if best is not None:
        shown["best baseline"] = f"{_figures(rows[best], bounds)} ({best})"
    return shown | {name: _figures(rows[name], bounds) for name in (PROTO, EVI) if name in rows}


def _safety(cells: Cells) -> Row:
    """P1: nothing red, unproven or stuck in any cell; simulations that were cut off are named."""
    names = ("red_main", "unproven", "cancelled_merged", "stuck")
    ours = [cell.rows[name] for cell in cells.values() for name in engines() if name in cell.rows]
    whole = [one for one in ours if not one.truncated]
    found = {name: sum(getattr(one, name) for one in whole) for name in names}
    cut = len(ours) - len(whole)
    is_met = all(value == 0 for value in found.values())
    return {
        "goal": "P1",
        "cell": f"{len(cells)} cells, all settings"
        + (f"; {cut} of {len(ours)} cut off" * (cut > 0)),
        "wanted": "red main, unproven, withdrawn merged, stuck 0",
        "figure": _joined(f"{value:g}" for value in found.values()),
        "met": "NO" if not is_met else "yes" if whole else CUT_OFF,
    }


def _wrong_ejects(cells: Cells) -> Iterator[Row]:
    """P2: of all cells that in which most good ones are rejected."""
    ours = {cell.scenario: cell.rows for cell in cells.values() if OURS in cell.rows}
    if not ours:
        return
    worst = max(ours, key=lambda scenario: ours[scenario][OURS].wrong_eject_pct)
    bounds = (Bound("wrong ejects %", "wrong_eject_pct", WRONG_PCT_MAX),)
    yield {
        **_row(Goal("P2", worst, bounds), cells[worst]),
        "cell": f"{worst.title}, the worst of {len(ours)}",
    }


def _others(cells: Cells) -> Iterator[Goal]:
    """P11: in cells that no other goal names, at or below the prototype."""
    goals = (*GOALS, *GOALS_OF_WORLDS, *with_results())
    named = {F_URGENT, S_URGENT, *(goal.scenario for goal in goals)}
    bounds = (*_at_least_as_fast_as(PROTO), Bound("runs/merge", "runs_per_merge", 1, of=PROTO))
    for scenario in cells:
        if scenario not in named:
            yield Goal("P11", scenario, bounds)


def _urgency(urgent: Cell, calm: Cell) -> Row:
    """P13: urgent ones are hardly disturbed, and hardly disturb the others."""

    def growth(name: str) -> float:
        return urgent.rows[name].others50_min / calm.rows[name].others50_min

    def figures(name: str) -> str:
        return f"{urgent.rows[name].urgent95:.2f} · {growth(name):.2f}"

    is_met = (
        urgent.rows[OURS].urgent95 <= URGENT_MAX * (1 + TOLERANCE),
        growth(OURS) <= GROWTH_MAX * (1 + TOLERANCE),
    )
    row: Row = {
        "goal": "P13",
        "cell": urgent.scenario.title,
        "settings": OURS,
        "wanted": f"urgent P95 ≤ {URGENT_MAX} runs · others' P50 ≤ {GROWTH_MAX} of without",
        "figure": figures(OURS),
        "met": CUT_OFF if calm.rows[OURS].truncated else _met(urgent.rows[OURS], is_met),
    }
    best = _best_baseline(urgent.rows, "urgent95")
    if best is not None:
        row["best baseline"] = f"{figures(best)} ({best})"
    return row | {name: figures(name) for name in (PROTO, EVI) if name in urgent.rows}


def _best_baseline(rows: Rows, metric: str) -> str | None:
    """The one with the least of this figure."""
    theirs = rows.keys() - {*ORACLES, *engines(), PROTO, EVI}
    others = [name for name in rows if name in theirs and _is_whole(rows, name)]
    return min(others, key=lambda name: float(getattr(rows[name], metric)), default=None)


def _is_whole(rows: Rows, name: str) -> bool:
    return name in rows and not rows[name].truncated


def _figures(one: Summary, bounds: Sequence[Bound]) -> str:
    return _joined(f"{getattr(one, bound.metric):.2f}" for bound in bounds)


def _joined(words: Iterable[str]) -> str:
    return " · ".join(words)


def _met(one: Summary, each: Iterable[bool]) -> str:
    """A simulation that was cut off says nothing."""
    if one.truncated:
        return CUT_OFF
    return "yes" if all(each) else "NO"
