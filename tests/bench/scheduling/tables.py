"""Measured cells as Markdown."""

import math
from collections.abc import Callable, Iterable

from tests.bench.scheduling.cells import Cell
from tests.bench.scheduling.metrics import Summary

COLUMNS = (
    "strategy",
    "P50",
    "P95",
    "P99",
    "rejected P50",
    "rejected P95",
    "merged/h",
    "runs/merge",
    "CI-h/merge",
    "aborted",
    "doomed",
    "wrong ejects",
    "red main",
    "unproven",
)

NEVER = {
    "truncated": "Cut off before the end, so their figures say nothing",
    "stuck": "Pull requests were never decided",
    "cancelled_merged": "Withdrawn pull requests were merged",
}
"""What is only mentioned where it is not 0."""

URGENT_COLUMNS = ("urgent P95 / one run", "others' P50, min")
AUTHORS_COLUMNS = ("fairness", "people's P95", "bots' P95")

Added = tuple[Callable[[Summary], str], ...]
"""Further columns."""

OF_URGENT: Added = (lambda one: f"{one.urgent95:.2f}", lambda one: f"{one.others50_min:.1f}")
OF_AUTHORS: Added = (
    lambda one: f"{one.fairness:.3f}",
    lambda one: f"{one.people95:.2f}",
    lambda one: f"{one.bots95:.2f}",
)


def cell_table(cell: Cell) -> str:
    """A heading, the ideal in minutes, and a row for each strategy."""
    has_urgent = any(one.urgent95 for one in cell.rows.values())
    has_bots = not math.isnan(cell.ideal.bots95)
    names = COLUMNS + URGENT_COLUMNS * has_urgent + AUTHORS_COLUMNS * has_bots
    added = OF_URGENT * has_urgent + OF_AUTHORS * has_bots
    yard = cell.ideal
    minutes = f"{yard.p50_min:.0f}/{yard.p95_min:.0f}/{yard.p99_min:.0f} min"
    lines = [
        f"**{cell.scenario.title}** (ideal P50/P95/P99 = {minutes})",
        "",
        _line(names),
        "|" + "---|" * len(names),
        *(_line(_row(cell, name, added)) for name in cell.rows),
        *_warnings(cell),
    ]
    return "\n".join(lines)


def _row(cell: Cell, name: str, added: Added) -> list[str]:
    def shown(text: Callable[[Summary], str]) -> str:
        """The mean, and the worst seed where there are several."""
        mean, worst = text(cell.rows[name]), text(cell.worst[name])
        return f"{mean} ({worst})" if len(cell.seeds) > 1 else mean

    one = cell.rows[name]
    return [
        name,
        shown(lambda each: f"{each.n50:.2f}"),
        shown(lambda each: f"{each.n95:.2f}"),
        f"{one.n99:.2f}",
        _or_dash(one.verdict50),
        _or_dash(one.verdict95),
        f"{one.merged_per_h:.1f}",
        shown(lambda each: f"{each.runs_per_merge:.2f}"),
        f"{one.hours_per_merge:.2f}",
        f"{100 * one.abort_share:.0f}%",
        shown(lambda each: f"{100 * each.doomed_share:.0f}%"),
        shown(lambda each: f"{each.wrong_eject_pct:.2f}%"),
        f"{one.red_main:.0f}",
        f"{one.unproven:.0f}",
        *(text(one) for text in added),
    ]


def _or_dash(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _warnings(cell: Cell) -> Iterable[str]:
    for metric, words in NEVER.items():
        found = {name: getattr(one, metric) for name, one in cell.rows.items()}
        names = [name for name, value in found.items() if value]
        if names:
            yield f"\n{words}: {', '.join(names)}."


def _line(values: Iterable[str]) -> str:
    return f"| {' | '.join(values)} |"
