"""The part of the reference page about other worlds of CI."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.bench.scheduling import document, goals, world
from tests.bench.scheduling.cells import CELLS_IN_WORLDS, SENSITIVE, STRATEGIES_IN_WORLDS, Cell

TITLE = "## Worlds of CI\n"

HEAD = """
## Worlds of CI

In the tables above a failing run takes as long as a passing one, all runs of a team take about
20 minutes, and the slots belong to the queue. Here the same pull requests meet other worlds of CI.
Written by `{command}` ({about}):
{count} pull requests, seeds {seeds}, by which nothing was chosen.

- *plain*: the world of the tables above
- *early failures*: the first failure of a run is known after 15 to 100 % of its time, and it ends
  there
- *believable*: what was measured on public runs, and where no data was found, an assumption; the
  last table has the values

A cell has: P50 / P95, runs per merge, good pull requests that were rejected, doomed runs. Where
there are several seeds, the worst one follows in brackets. In the believable world P50 and P95 are
divided by those of one run for each pull request that waits for none: a queue decides sooner only
if it tests one in several runs and a shorter one is enough. `zuul` works like GitHub's own queue.
No pull request broke the branch or landed without proof{exception}.
"""

GOALS_HEAD = """
### Goals in other worlds

The goals of the early failures are what this queue reached when that world was tried first. Those
of the believable one come from `oracle-batch`, which has the same slots and is told what is bad:
at most a tenth slower, with half as many runs again. That is no proof of what is possible. No queue
decides a good pull request before the shortest run of it: {floor:.2f} of the median run.
"""

SENSITIVE_HEAD = """
### What the properties of the believable world are worth

`headgate`, P50 / P95, runs per merge.
"""

VALUES_HEAD = "\n### What the believable world contains\n"

SOURCES = """
*Queues* are 767 test runs of public merge queues, read from git. *Project* is the CI of one desktop
application from April to July 2026 (4,424 runs with the results of their browser tests,
`AOE-HQ/e2e-ci-metrics` on GitHub at `bfd47445`); the place of a test follows from the order of the
files and its mean time. *Chromium* is the report about its commit queue of January 5 to 11, 2015,
in the group hackability-cy. A second source about the first failure: in three quarters of 437
failed builds of 31 projects the first test failed in the first 18 % of the time (J. Rott, "Better
feedback times using test case prioritization?", 2020; the summary does not say in which order the
tests ran).
"""


def section(cells: Sequence[Cell], command: str, about: str) -> str:
    """The whole part; strategies and cells that were not measured are left empty."""
    of_scenario = {cell.scenario: cell for cell in cells}
    head = HEAD.format(
        command=command,
        about=about,
        count=cells[0].count,
        seeds=", ".join(map(str, cells[0].seeds)),
        exception=_exceptions(cells),
    )
    parts = [
        head,
        document.table(list(_compared(of_scenario))),
        GOALS_HEAD.format(floor=world.TAIL[0][1]),
        document.table(goals.rows_in_worlds(of_scenario)),
        SENSITIVE_HEAD,
        document.table(list(_sensitivity(of_scenario))),
        VALUES_HEAD,
        document.table(_values()),
        SOURCES,
    ]
    return "\n".join(parts)


def replaced(page: str, part: str) -> str:
    """The page with this part in place of the one that it has."""
    return page.split(TITLE, maxsplit=1)[0].rstrip("\n") + "\n" + part


def kept(page: str) -> str:
    """The part that the page has, empty if it has none."""
    _, title, rest = page.partition(TITLE)
    return f"\n{title}{rest}" if title else ""


def _exceptions(cells: Sequence[Cell]) -> str:
    bad = [
        f"{name} in {cell.scenario.title}"
        for cell in cells
        for name, row in cell.rows.items()
        if row.red_main or row.unproven
    ]
    return f", but in {'; '.join(bad)}" if bad else ""


def _compared(cells: goals.Cells) -> Iterator[goals.Row]:
    for scenario in CELLS_IN_WORLDS:
        for name in ("oracle-batch", *STRATEGIES_IN_WORLDS):
            of_worlds = {of: cells.get(replace(scenario, world=of)) for of in world.COLUMNS}
            figures = {of: _figures(cell, name) for of, cell in of_worlds.items()}
            if any(figures.values()):
                yield {"cell": scenario.title, "strategy": name, **figures}


def _figures(cell: Cell | None, name: str) -> str:
    if cell is None or name not in cell.rows:
        return ""
    one = cell.rows[name]
    if one.truncated or one.stuck:
        return "cut off"
    return (
        f"{_times(cell, name)}, {one.runs_per_merge:.2f}, {one.wrong_eject_pct:.2f} %, "
        f"{100 * one.doomed_share:.0f} %"
    )


def _times(cell: Cell, name: str) -> str:
    """P50 and P95, and the worst seed where there are several."""
    one, worst = cell.rows[name], cell.worst[name]
    mean = f"{one.n50:.2f} / {one.n95:.2f}"
    return f"{mean} ({worst.n50:.2f} / {worst.n95:.2f})" if len(cell.seeds) > 1 else mean


def _sensitivity(cells: goals.Cells) -> Iterator[goals.Row]:
    for of in world.NAMED:
        found = {one.title: cells.get(replace(one, world=of)) for one in SENSITIVE}
        figures = {
            title: f"{_times(cell, goals.OURS)}, {cell.rows[goals.OURS].runs_per_merge:.2f}"
            for title, cell in found.items()
            if cell is not None and of.startswith("believable")
        }
        if figures:
            yield {"world": of, **figures}


def _values() -> list[goals.Row]:
    """What the page says of the values in world.py."""
    return [
        {
            "property": "first failure",
            "value": f"{100 * world.SETUP:.0f} % of the time for setup, then by the place of the "
            "first failed test: half of them in the first 14 % of the tests, a tenth after 69 %",
            "source": "project: 635 runs with a failed test. Setup: assumption, 10 to 40 %",
        },
        {
            "property": "times",
            "value": "half of the runs take 0.87 to 1.14 times the median, 5 % more than 2.46 "
            "times, 2 % more than 3.9 times; the mean stays",
            "source": "queues: 429 runs that landed; they contain short waits. "
            "At most 5 times: assumption",
        },
        {
            "property": "shared slots",
            "value": f"{world.OWN_RUNS:g} runs of its own CI for each pull request. Beside the "
            "slots of the queue the account has as many as these need on average; "
            "who asks first gets the next one",
            "source": "project: 3,224 runs on 1,082 branches. Number of slots: assumption",
        },
        {
            "property": "cached builds",
            "value": "a run whose pull requests all were built before takes "
            f"{100 * world.BUILT_BEFORE:.0f} % of its time",
            "source": "assumption, 60 to 100 %",
        },
        {
            "property": "failed jobs again",
            "value": "a second run of a tree that has failed takes "
            f"{100 * world.SECOND_LOOK:.0f} % of its time",
            "source": "project: median of 57 later attempts",
        },
        {
            "property": "flake episodes",
            "value": "the same mean rate, 0 to 2.2 times of it for four hours at a time",
            "source": "Chromium: false rejections of seven days. Four hours: assumption, 1 to 24",
        },
        {
            "property": "autoscaling",
            "value": "the last half of the slots starts three minutes later",
            "source": "assumption, 0 to 2 / 3 of them and 1 to 5 minutes",
        },
        {
            "property": "time of day",
            "value": "the rate is that of the eight busiest hours; in the quietest hours a tenth",
            "source": "queues: the two with more than 100 runs",
        },
    ]
