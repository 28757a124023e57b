"""Charts of pages: what a template needs to draw them as SVG, and as tables.

The picture is 100 by 100 and is stretched by the browser; `templates/_charts.html` draws it. Text
of the axes is HTML, so it keeps its size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import zip_longest
from typing import NamedTuple

from service.testhealth.operations.all_tests import RUNS_MAX
from service.testhealth.operations.page_of_test import PageOfTest
from service.text import times

STEPS = (1, 2, 5)
TICKS = 4
LABELS_MAX = 5
GAP = 0.25
"""The part of a bar's place that stays empty."""

SINGLE_WIDTH = 3.0
"""The width of a line's only value, in hundredths of the chart."""

HOUR_S, DAY_S = 3600, 86400
TIME_STEPS_S = (
    *(60, 120, 300, 600, 900, 1800),
    *(each * HOUR_S for each in (1, 2, 3, 6, 12)),
    *(each * DAY_S for each in (1, 2, 5, 10, 20, 50)),
)
"""Steps of an axis of durations; the longest is the last one."""


def duration(seconds: float) -> str:
    """Return seconds as pages write a duration."""
    return times.duration(timedelta(seconds=seconds)) if seconds else "0"


def plain(value: float) -> str:
    """Return a number as an axis and a table show it: `1,200`, `1.4`."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}".rstrip("0")


SECOND_MS, MINUTE_MS = 1000, 60_000
SHORT_MS = 100
"""Below that a time is shown in milliseconds."""


def took(milliseconds: float) -> str:
    """Return what a test took: `12 ms`, `0.42 s`, `4.8 s`, `3 min`, `1 h 5 min`."""
    if milliseconds < SHORT_MS:
        return f"{milliseconds:.0f} ms"
    if milliseconds < MINUTE_MS:
        return f"{float(f'{milliseconds / SECOND_MS:.2g}'):g} s"
    return times.duration(timedelta(milliseconds=milliseconds))


class Series(NamedTuple):
    """Values with their name and a color of `static/pages.css`; None: there is no value.

    `links` are the addresses of what each value counts; empty: there is nothing to show.
    """

    name: str
    color: str
    values: Sequence[float | None]
    links: Sequence[str] = ()


class Cell(NamedTuple):
    """A value in the table of a chart, with the address of what it counts."""

    text: str
    link: str


class Hit(NamedTuple):
    """A place of a chart that leads to what is drawn there, in percent of the picture."""

    label: str
    link: str
    x: float
    y: float
    width: float
    height: float


class Drawn(NamedTuple):
    """A series with the path that draws it."""

    series: Series
    path: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: stacked bars, or lines. `title` has the unit, `hint` says how to read it.

    With `is_time` the values are seconds.
    """

    title: str
    hint: str
    labels: Sequence[str]
    series: Sequence[Series]
    is_lines: bool = False
    is_time: bool = False

    @property
    def top(self) -> float:
        """The value at the upper end of the axis."""
        highest = self._highest()
        if self.is_time:
            fitting = (step for step in TIME_STEPS_S if TICKS * step >= highest)
            return TICKS * next(fitting, TIME_STEPS_S[-1])
        scale = 1
        while TICKS * STEPS[-1] * scale < highest:
            scale *= 10
        return TICKS * scale * next(step for step in STEPS if TICKS * step * scale >= highest)

    def text(self, value: float) -> str:
        """Return a value as the axis and the table show it."""
        return duration(value) if self.is_time else plain(value)

    def _highest(self) -> float:
        columns = zip(*(each.values for each in self.series), strict=True)
        known = [[value or 0 for value in column] for column in columns]
        return max((max(each) if self.is_lines else sum(each) for each in known), default=0)

    @property
    def ticks(self) -> list[str]:
        """The texts of the axis, the highest first."""
        return [self.text(self.top * place / TICKS) for place in range(TICKS, -1, -1)]

    @property
    def ends(self) -> list[str]:
        """At most five labels of the horizontal axis, evenly spread."""
        last = len(self.labels) - 1
        if last < LABELS_MAX:
            return list(self.labels)
        places = (round(last * part / (LABELS_MAX - 1)) for part in range(LABELS_MAX))
        return [self.labels[place] for place in places]

    @property
    def rows(self) -> list[tuple[str, list[Cell]]]:
        """The values as a table: a row for each label."""
        return [
            (label, [self._cell(each, nth) for each in self.series])
            for nth, label in enumerate(self.labels)
        ]

    def _cell(self, series: Series, nth: int) -> Cell:
        value = series.values[nth]
        text = "-" if value is None else self.text(value)
        return Cell(text, series.links[nth] if value and series.links else "")

    @property
    def hits(self) -> list[Hit]:
        """The places that lead somewhere: parts of bars, or the whole height above a label."""
        place = 100 / max(1, len(self.labels))
        found = []
        for nth, (label, cells) in enumerate(self.rows):
            links = {cell.link for cell in cells if cell.link}
            if self.is_lines or len(links) == 1:
                named = zip(self.series, cells, strict=True)
                words = ", ".join(f"{each.name} {cell.text}" for each, cell in named)
                first = next((cell.link for cell in cells if cell.link), "")
                found.append(Hit(f"{label}: {words}", first, nth * place, 0, place, 100))
                continue
            low = 0.0
            for each, cell in zip(self.series, cells, strict=True):
                height = (each.values[nth] or 0) * 100 / self.top
                low += height
                words = f"{label}: {each.name} {cell.text}"
                found.append(Hit(words, cell.link, nth * place, 100 - low, place, height))
        return [hit for hit in found if hit.link]

    @property
    def summary(self) -> str:
        """Return the text for people who cannot see the picture."""
        highest = self.text(self._highest())
        return f"{self.title}; at most {highest}. The table below has the values."

    @property
    def drawn(self) -> list[Drawn]:
        """The series with their paths, the lowest of a stack first."""
        if self.is_lines:
            return [Drawn(each, self._line(each.values)) for each in self.series]
        below = [0.0] * len(self.labels)
        drawn = []
        for each in self.series:
            drawn.append(Drawn(each, self._bars(each.values, below)))
            below = [low + (value or 0) for low, value in zip(below, each.values, strict=True)]
        return drawn

    def _bars(self, values: Sequence[float | None], below: Sequence[float]) -> str:
        place = 100 / len(values)
        width = place * (1 - GAP)
        scale = 100 / self.top
        return "".join(
            f"M{nth * place + place * GAP / 2:.2f} {100 - low * scale:.2f}"
            f"v{-value * scale:.2f}h{width:.2f}v{value * scale:.2f}z"
            for nth, (value, low) in enumerate(zip(values, below, strict=True))
            if value
        )

    def _line(self, values: Sequence[float | None]) -> str:
        """A line with a gap where values are missing; a single value is a short stroke."""
        place = 100 / len(values)
        path, is_open = [], False
        for nth, (value, after) in enumerate(zip_longest(values, values[1:])):
            if value is None:
                is_open = False
                continue
            x, y = nth * place + place / 2, 100 - value * 100 / self.top
            if not is_open and after is None:
                width = min(place, SINGLE_WIDTH)
                path.append(f"M{x - width / 2:.2f} {y:.2f}h{width:.2f}")
            else:
                path.append(f"{'L' if is_open else 'M'}{x:.2f} {y:.2f}")
            is_open = True
        return "".join(path)


@dataclass(frozen=True, slots=True)
class Strip:
    """The newest runs of a test, the newest right, as paths in a box of 120 by 20."""

    label: str
    passed: str
    retried: str
    failed: str
    excused: str
    skipped: str


def trend(page: PageOfTest) -> Chart:
    """Draw the days of a test."""
    days = page.days
    return Chart(
        title="Attempts per day, 30 days",
        hint="Red growing while green does not: the test fails more often. Days are UTC.",
        labels=[day_label(each.day) for each in days],
        series=[
            Series("passed", "good", [each.passed for each in days]),
            Series("failed", "bad", [each.failed for each in days]),
            Series("failed, excused", "shield", [each.excused for each in days]),
        ],
    )


def day_label(day: date) -> str:
    """Return `4 Nov`."""
    return f"{day.day} {day:%b}"


NAMES = {".": "passed", "r": "passed on a retry", "X": "failed", "x": "excused", "-": "skipped"}


def strip(letters: str) -> Strip:
    """Draw runs that come newest first, as `all_tests.letters_of` writes them.

    The shape carries the meaning, and the color repeats it.
    """
    paths: dict[str, list[str]] = {letter: [] for letter in NAMES}
    for nth, letter in enumerate(letters):
        x = (RUNS_MAX - nth) * 2 - 1
        shapes = {
            ".": f"M{x} 12v8",
            "r": f"M{x} 12v8M{x} 4v4",
            "X": f"M{x} 0v20",
            "x": f"M{x - 0.6:.1f} 3h1.2v16h-1.2z",
            "-": f"M{x} 18v2",
        }
        paths[letter].append(shapes[letter])
    counts = ", ".join(f"{len(paths[each])} {name}" for each, name in NAMES.items() if paths[each])
    label = f"The last {len(letters)} runs: {counts}" if letters else "No run is stored"
    return Strip(label, *("".join(paths[each]) for each in NAMES))


class Bar(NamedTuple):
    """A bar of a small chart, in percent of its picture."""

    x: float
    y: float
    height: float


def spark(values: Sequence[int]) -> list[Bar]:
    """Return a bar for each value; the highest fills the picture, and zero is a line."""
    top = max(*values, 1)
    heights = [max(100 * value / top, 1) for value in values]
    width = 100 / len(values)
    return [
        Bar(round(nth * width, 1), round(100 - height, 1), round(height, 1))
        for nth, height in enumerate(heights)
    ]
