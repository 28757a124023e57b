"""`python -m tests.bench.scheduling`: tables of the published scenarios.

grid F                 every load and number of workers of a family
vary F 30 24           one cell, one factor changed at a time
cells "F 30x24" "F 30x24, conflicts 10%; believable"
                       these cells, one of them in another world of CI
goals                  P1 to P23 of their own cells
worlds                 cells in other worlds of CI, written to docs/reference/scheduling.md
bounds                 how near those of chains are to what is possible, in all their cells
                       or in those that are named
speed                  events a second, 100,000 pull requests
document               everything else, written to docs/reference/scheduling.md

Rules are tried on any seeds but those of the document (`HELD_OUT` in scenarios.py).
"""

import argparse
import json
import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.scheduling import bounds, document, goals, worlds_page
from tests.bench.scheduling.cells import (
    PUBLISHED,
    STRATEGIES,
    STRATEGIES_IN_WORLDS,
    Cell,
    Effort,
    Scenario,
    grid,
    in_worlds,
    measured,
    published,
    variations,
)
from tests.bench.scheduling.scenarios import GRID, HELD_OUT
from tests.bench.scheduling.strategies.registry import RELAXED
from tests.bench.scheduling.tables import cell_table

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "scheduling.md"
SPEED_PRS = 100_000
SEEDS = (1, 2, 3)


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The command line; exits on what makes no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.scheduling",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    words = ("grid", "vary", "cells", "goals", "bounds", "worlds", "speed", "document")
    parser.add_argument("what", choices=words)
    parser.add_argument("where", nargs="*", help="family; for vary rate and workers too; cells")
    parser.add_argument("--seeds", type=_seeds, help="901,902 or 901-905")
    parser.add_argument("--share", type=float, default=1.0, help="of the published numbers")
    parser.add_argument("--n", type=int, default=0, help="pull requests, in place of --share")
    parser.add_argument("--strategies", default=",".join(PUBLISHED))
    parser.add_argument("--procs", type=int, default=2)
    parser.add_argument(
        "--max-cpu", type=float, default=300.0, help="CPU seconds of one simulation"
    )
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    asked = parser.parse_args(argv)
    names = [*STRATEGIES, *RELAXED]
    unknown = set(asked.strategies.split(",")).difference(names)
    if unknown:
        parser.error(f"no strategy {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if asked.what == "bounds":
        asked.strategies = ",".join(bounds.strategies())
    if asked.what == "worlds" and asked.strategies == ",".join(PUBLISHED):
        asked.strategies = ",".join(STRATEGIES_IN_WORLDS)
    try:
        asked.scenarios = scenarios_of(asked.what, asked.where)
    except ValueError as error:
        parser.error(str(error))
    return asked


def main(argv: Sequence[str]) -> None:
    """Measure what was asked for and print it."""
    asked = arguments(argv)
    effort = Effort(
        seeds=asked.seeds or (HELD_OUT if asked.what in ("bounds", "document") else SEEDS),
        share=asked.share,
        count=asked.n,
        strategies=tuple(asked.strategies.split(",")),
        procs=asked.procs,
        max_cpu_s=asked.max_cpu,
    )
    if asked.what == "speed":
        _say(document.SPEED_HEAD)
        for line in document.speed_rows(effort, asked.n or SPEED_PRS):
            _say(line)
        return
    cells: list[Cell] = []
    for cell in measured(asked.scenarios, effort):
        cells.append(cell)
        if asked.what not in ("bounds", "goals", "worlds"):
            _say(f"\n{cell_table(cell)}")
    by_scenario = {cell.scenario: cell for cell in cells}
    if asked.what == "goals":
        _say(document.table(goals.rows_of(by_scenario)))
    elif asked.what == "bounds":
        _say(document.table(list(bounds.rows_of(by_scenario))))
    elif asked.what in ("worlds", "document"):
        command = shlex.join(["python", "-m", "tests.bench.scheduling", *argv])
        PAGE.write_text(_page(asked.what, cells, command), "utf-8")
    if asked.json:
        asked.json.write_text(json.dumps([asdict(cell) for cell in cells], indent=1) + "\n")


def _page(what: str, cells: Sequence[Cell], command: str) -> str:
    """The page with one of its two parts measured anew."""
    before = PAGE.read_text("utf-8")
    if what == "worlds":
        return worlds_page.replaced(before, worlds_page.section(cells, command, _about()))
    return document.page(cells, command, _about()) + worlds_page.kept(before)


def scenarios_of(what: str, where: Sequence[str]) -> tuple[Scenario, ...]:
    """The cells that the words ask for. Raises ValueError for what there is not."""
    if what == "cells" or (what == "bounds" and where):
        return tuple(map(Scenario.named, where))
    family = where[0] if where else "F"
    if family not in GRID:
        raise ValueError(f"no family {family}; there are {', '.join(GRID)}")
    if what == "worlds":
        return in_worlds()
    if what == "grid":
        return grid(family)
    if what == "vary":
        return variations(family, float(where[1]), int(where[2]))
    if what == "bounds":
        return bounds.scenarios()
    return (*goals.needed(), *goals.needed_in_worlds()) if what == "goals" else published()


def _seeds(words: str) -> tuple[int, ...]:
    """The seeds of `901,902` or `901-905`."""
    first, _, last = words.partition("-")
    return tuple(range(int(first), int(last) + 1)) if last else tuple(map(int, words.split(",")))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _about() -> str:
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    return f"{today}, Python {platform.python_version()}, {platform.machine()}"


if __name__ == "__main__":
    main(sys.argv[1:])
