"""The reference page of all figures, and how fast strategies themselves are."""

import time
from collections.abc import Iterator, Sequence

from tests.bench.scheduling import goals
from tests.bench.scheduling.cells import STRATEGIES, Cell, Effort
from tests.bench.scheduling.scenarios import FAMILIES
from tests.bench.scheduling.simulator import ORACLE, Options, simulate
from tests.bench.scheduling.strategies.oracle import make_oracle
from tests.bench.scheduling.strategies.registry import hidden
from tests.bench.scheduling.tables import cell_table
from tests.bench.scheduling.workload import generate

SPEED_SCENARIOS: tuple[tuple[str, float, int], ...] = (("F", 30, 24), ("S", 100, 100))
SPEED_HEAD = "| strategy | scenario | PRs | events | CPU s | events/s |\n|---|---|---|---|---|---|"

HEAD = """# Scheduling

This page shows how soon good pull requests land and how much CI that takes. It compares the
engine with common strategies of merge queues, on simulated repositories.
`tests/bench/scheduling/__init__.py` describes the simulation, and [adaptive
batches](../explanation/scheduling.md) the engine's rules.
Written by `{command}` ({about}). Overloaded cells are measured whole, the
others in the part that `--share` names.

No rule and no number was tuned on these seeds.

A cell is named after its repository, the pull requests per hour and the CI workers: `F 60/h x 24`.

Columns:

- P50, P95, P99: turnaround (from submission to merge or rejection), divided by that of the ideal:
  an oracle with unlimited workers, which keeps the order and does not batch. So values below 1
  are possible. In brackets, here and in other columns: the worst seed
- rejected P50, P95: the same of those that end rejected, divided by the same ideal
- runs/merge, CI-h/merge: test runs started, and hours of CI, per merge
- aborted: the share of runs that were cancelled
- doomed: the share of runs that hold two pull requests which conflict, so they had to fail
- fairness, in the cell with 99 authors: Jain's index over the mean turnaround of each author
- wrong ejects: good pull requests that were rejected, in % of the good ones
- red main: merges that broke the branch
- unproven: merges of a tree that no passed run tested

Strategies:

- `headgate`: the recommended settings: batches sized by load
  (`tests/bench/scheduling/settings.py`)
- `headgate-fixed`, `headgate-plain`: batches of four; no batches. Where every run tests the
  whole tree, both hedge in spare slots and merge optimistically
- `oracle`: the ideal with as many workers as the cell has
- `oracle-batch`: the same; it may also batch and reorder
- `proto`: a prototype of what a queue can reach without knowing the truth
- `evi`: a prototype that also weighs evidence: one probability for each pull request (teams only)
- `zuul`: each pull request is tested on top of those ahead; those behind a failure restart
- `batch-chain`: the same with batches, as in commercial queues
- `submitqueue`: speculation: the most probable combinations are tested first
"""


def page(cells: Sequence[Cell], command: str, about: str) -> str:
    """The whole page, but for other worlds."""
    by_scenario = {cell.scenario: cell for cell in cells}
    parts = [
        HEAD.format(command=command, about=about),
        "## Goals\n",
        table(goals.rows_of(by_scenario)),
    ]
    for family, title in (("F", "Team repository"), ("S", "Monorepo")):
        parts.append(f"\n## {title}")
        parts += [f"\n{cell_table(cell)}" for cell in cells if cell.scenario.family == family]
    return "\n".join(parts) + "\n"


def table(rows: Sequence[goals.Row]) -> str:
    """Rows as Markdown."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    lines += [f"| {' | '.join(str(row.get(name, '')) for name in names)} |" for row in rows]
    return "\n".join(lines)


def speed_rows(effort: Effort, count: int) -> Iterator[str]:
    """How many events a second each strategy takes, simulator included; Markdown lines."""
    for family, rate, workers in SPEED_SCENARIOS:
        scenario = f"{family} {rate:g}/h x {workers}"
        begun = time.process_time()
        workload = generate(FAMILIES[family](rate, n=count))
        drawn = time.process_time() - begun
        yield f"| (drawing the workload) | {scenario} | {count} | - | {drawn:.1f} | - |"
        shown = [name for name in effort.strategies if name not in hidden(workload)]
        for name in ("oracle", *shown):
            is_oracle = name == "oracle"
            make = make_oracle(workload) if is_oracle else STRATEGIES[name]
            options = ORACLE if is_oracle else Options(max_cpu_s=effort.max_cpu_s)
            result = simulate(workload, make, workers, options)
            note = " (cut off)" if result.is_truncated else ""
            rate_of_events = result.events / max(result.cpu_s, 1e-9)
            yield (
                f"| {name} | {scenario} | {count} | {result.events} "
                f"| {result.cpu_s:.1f}{note} | {rate_of_events:,.0f} |"
            )
