"""Measured cells as Markdown."""

from collections.abc import Iterable

from tests.bench.scheduling.cells import Cell
from tests.bench.scheduling.metrics import Summary

COLUMNS = (
    "strategy",
    "P50",
    "P95",
    "P99",
    "merged/h",
    "runs/merge",
    "CI-h/merge",
    "aborted",
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


def cell_table(cell: Cell) -> str:
    """A heading, the ideal in minutes, and a row for each strategy."""
    has_urgent = any(one.urgent95 for one in cell.rows.values())
    names = (*COLUMNS, *(URGENT_COLUMNS if has_urgent else ()))
    yard = cell.ideal
    minutes = f"{yard.p50_min:.0f}/{yard.p95_min:.0f}/{yard.p99_min:.0f} min"
    lines = [
        f"**{cell.scenario.title}** (ideal P50/P95/P99 = {minutes})",
        "",
        _line(names),
        "|" + "---|" * len(names),
        *(_line(_row(name, one, has_urgent)) for name, one in cell.rows.items()),
        *_warnings(cell),
    ]
    return "\n".join(lines)


def _row(name: str, one: Summary, has_urgent: bool) -> list[str]:
    row = [
        name,
        f"{one.n50:.2f}",
        f"{one.n95:.2f}",
        f"{one.n99:.2f}",
        f"{one.merged_per_h:.1f}",
        f"{one.runs_per_merge:.2f}",
        f"{one.hours_per_merge:.2f}",
        f"{100 * one.abort_share:.0f}%",
        f"{one.wrong_eject_pct:.2f}%",
        f"{one.red_main:.0f}",
        f"{one.unproven:.0f}",
    ]
    return row + ([f"{one.urgent95:.2f}", f"{one.others50_min:.1f}"] if has_urgent else [])


def _warnings(cell: Cell) -> Iterable[str]:
    for metric, words in NEVER.items():
        found = {name: getattr(one, metric) for name, one in cell.rows.items()}
        names = [name for name, value in found.items() if value]
        if names:
            yield f"\n{words}: {', '.join(names)}."


def _line(values: Iterable[str]) -> str:
    return f"| {' | '.join(values)} |"
