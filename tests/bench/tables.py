"""Rows of figures as Markdown: a table for each shape of row, and whether goals are met.

The names of a row say what its values are. `x` is a figure, `x_goal` the most it may be and
`x_floor` the least; a unit stays at the end (`p50_ms`, `p50_goal_ms`). `service_x` beside `bare_x`,
or `store_x` beside `driver_x`, are the two sides of one comparison. A row may also say itself
whether it is `met`.
"""

from collections.abc import Iterator, Mapping, Sequence

Row = dict[str, object]
MISSED = "NO"
BOUNDS = {"_goal": "≤", "_floor": "≥"}
SIDES = {"service_": "bare_", "store_": "driver_"}
"""How the figures of ours begin, and those of the reference."""

LEGEND = """`met` is NO where a goal is missed. `(≤ n)`, `(≥ n)`: the goal of the figure before it.
`a / b`: ours / the reference, which was measured by turns in the same run.
"""


def judged(row: Row) -> Row:
    """The row with `met`, if it has goals: yes, or NO if any is missed."""
    found = [
        float(str(row[figure])) <= limit if sign == "≤" else float(str(row[figure])) >= limit
        for figure, (sign, limit) in _bounds(row).items()
    ]
    return {**row, "met": "yes" if all(found) else MISSED} if found else row


def is_missed(row: Row) -> bool:
    """Whether a goal of a judged row is missed."""
    return row.get("met") == MISSED


def section(title: str, rows: Sequence[Row], note: str = "") -> str:
    """A heading, a note, how many goals are missed, and the tables of judged rows."""
    goals, missed = sum("met" in row for row in rows), sum(map(is_missed, rows))
    said = [f"Goals missed: {missed} of {goals}."] if goals else []
    return "\n\n".join([f"## {title}", *([note] if note else []), *said, f"{tables(rows)}\n"])


def tables(rows: Sequence[Row]) -> str:
    """A table for each set of columns, so that no cell is empty; in order of first appearance."""
    shapes: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for row in rows:
        shown = dict(_cells(row))
        shapes.setdefault(tuple(shown), []).append(shown)
    return "\n\n".join(_table(names, alike) for names, alike in shapes.items())


def _table(names: Sequence[str], rows: Sequence[Mapping[str, str]]) -> str:
    lines = [_line([name.replace("_", " ") for name in names]), f"|{'---|' * len(names)}"]
    return "\n".join([*lines, *(_line([row[name] for name in names]) for row in rows)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(row: Row) -> Iterator[tuple[str, str]]:
    """Column and text; whether goals are met comes first."""
    if "met" in row:
        yield "met", str(row["met"])
    bounds, theirs = _bounds(row), dict(_references(row))
    for name, value in row.items():
        if name == "met" or name in theirs.values() or any(word in name for word in BOUNDS):
            continue
        text = _text(value)
        if name in bounds:
            sign, limit = bounds[name]
            text = f"{text} ({sign} {limit:,g})"
        if name in theirs:
            yield name.partition("_")[2], f"{text} / {_text(row[theirs[name]])}"
        else:
            yield name, text


def _bounds(row: Row) -> dict[str, tuple[str, float]]:
    """Figure → sign and limit."""
    return {
        name.replace(word, ""): (sign, float(str(value)))
        for name, value in row.items()
        for word, sign in BOUNDS.items()
        if word in name
    }


def _references(row: Row) -> Iterator[tuple[str, str]]:
    """The name of ours, and of what it is held against."""
    for name in row:
        for ours, theirs in SIDES.items():
            other = theirs + name.removeprefix(ours)
            if name.startswith(ours) and other in row:
                yield name, other


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)
