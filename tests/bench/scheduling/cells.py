"""Cells of the tables: a scenario, measured with every strategy over some seeds."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice

from tests.bench.scheduling import arrivals, world
from tests.bench.scheduling.engine_strategy import engines
from tests.bench.scheduling.ideal import yardstick
from tests.bench.scheduling.interface import MakeStrategy
from tests.bench.scheduling.metrics import Summary, mean, summary, worst
from tests.bench.scheduling.scenarios import (
    CELLS_OF_WORLDS,
    FAMILIES,
    GRID,
    MIDDLE,
    OVERLOADED,
    REAL_ARRIVALS,
    VARIATIONS,
    WORLDS,
)
from tests.bench.scheduling.simulator import ORACLE, Options, simulate
from tests.bench.scheduling.strategies.registry import (
    BASELINES,
    ORACLES,
    RELAXED,
    WITH_RETRY,
    hidden,
    oracle_of,
)
from tests.bench.scheduling.workload import Workload, WorkloadConfig, generate

STRATEGIES: dict[str, MakeStrategy] = {**BASELINES, **WITH_RETRY, **engines()}
"""Everything that can be measured, but for the oracles, which are always."""

PUBLISHED = (*engines(), *BASELINES)
"""The rows of the published tables, in their order."""


@dataclass(frozen=True)
class Scenario:
    """Family, pull requests an hour, CI workers, and the names of a variation and a world."""

    family: str
    rate: float
    workers: int
    variation: str = "base"
    world: str = "plain"

    @classmethod
    def named(cls, words: str) -> "Scenario":
        """The cell that is written `F 30x24` or `F 30x24, conflicts 10%`. Raises ValueError.

        The name of its world follows after a semicolon.
        """
        cell, _, of_world = words.partition(";")
        cell, _, variation = cell.partition(",")
        of_world = of_world.strip() or "plain"
        if of_world not in world.NAMED:
            raise ValueError(f'no world "{of_world}"; there are {"; ".join(world.NAMED)}')
        found = re.fullmatch(r"(\w+) (\d+)x(\d+)", cell.strip())
        variation = variation.strip() or "base"
        if found is None or found[1] not in FAMILIES or variation not in {**VARIATIONS, **WORLDS}:
            raise ValueError(
                f'no cell "{words}"; there are "F 30x24" and "F 30x24, conflicts 10%", with '
                f"families {', '.join(FAMILIES)} and variations {'; '.join([*VARIATIONS, *WORLDS])}"
            )
        if variation.startswith(REAL_ARRIVALS) and not arrivals.gaps():
            raise ValueError(f"there is no {arrivals.TABLE}; {arrivals.VARIABLE} names its folder")
        return cls(found[1], float(found[2]), int(found[3]), variation, of_world)

    @property
    def title(self) -> str:
        """How the tables call it."""
        cell = f"{self.family} {self.rate:g}/h x {self.workers}"
        changed = cell if self.variation == "base" else f"{cell}, {self.variation}"
        return changed if self.world == "plain" else f"{changed}; {self.world}"

    def config(self, seed: int, effort: "Effort") -> WorkloadConfig:
        """What to draw."""
        changes = {**VARIATIONS, **WORLDS}[self.variation]
        whole = FAMILIES[self.family](self.rate, seed=seed, **changes)
        is_overloaded = (self.family, self.rate, self.workers) in OVERLOADED
        share = 1.0 if is_overloaded else effort.share
        count = effort.count or max(1, round(whole.n * share))
        return replace(whole, n=count, world=world.NAMED[self.world])


@dataclass(frozen=True)
class Effort:
    """How much to measure.

    `share` of the published number of pull requests (of all where CI is overloaded), or `count` of
    them if it is not 0. A
    simulation is cut off after `max_cpu_s` seconds of CPU time; `procs` run at the same time.
    """

    seeds: tuple[int, ...] = (1, 2, 3)
    share: float = 1.0
    count: int = 0
    strategies: tuple[str, ...] = PUBLISHED
    procs: int = 2
    max_cpu_s: float = 300.0


@dataclass(frozen=True)
class Cell:
    """Figures by strategy in the order of the table; `ideal` is the yardstick.

    `rows` are the means over the seeds, `worst` each figure of the seed in which it is worst.
    `count` is the number of pull requests.
    """

    scenario: Scenario
    seeds: tuple[int, ...]
    rows: dict[str, Summary]
    worst: dict[str, Summary]
    ideal: Summary
    count: int


CELLS_IN_WORLDS = tuple(
    Scenario("F", *cell)
    for cell in (
        (10, 8),
        (30, 24),
        (60, 24),
        (60, 24, "test results"),
        (60, 8),
        (60, 64),
        (30, 24, "flaky 10%"),
        (30, 24, "weak predictor, broken 8%"),
        (30, 24, "no predictor"),
        (30, 24, "conflicts 10%"),
    )
)
"""What is compared in several worlds."""

SENSITIVE = (Scenario("F", 60, 24), Scenario("F", 60, 8))
"""Where it is shown how much each property of the believable world matters."""

STRATEGIES_IN_WORLDS = ("headgate", "proto", "evi", "batch-chain", "zuul", "submitqueue")


@dataclass(frozen=True)
class _Job:
    scenario: Scenario
    seed: int
    effort: Effort


@dataclass(frozen=True)
class _OfSeed:
    rows: dict[str, Summary]
    ideal: Summary


def grid(family: str) -> tuple[Scenario, ...]:
    """The published loads and numbers of workers."""
    return tuple(Scenario(family, rate, workers) for rate, workers in GRID[family])


def variations(family: str, rate: float, workers: int) -> tuple[Scenario, ...]:
    """One cell with one factor changed at a time."""
    return tuple(Scenario(family, rate, workers, name) for name in VARIATIONS)


def worlds() -> tuple[Scenario, ...]:
    """The cells of further worlds, for which there is data."""
    every = (Scenario(*cell) for cell in CELLS_OF_WORLDS)
    has_arrivals = bool(arrivals.gaps())
    return tuple(
        one for one in every if has_arrivals or not one.variation.startswith(REAL_ARRIVALS)
    )


def published() -> tuple[Scenario, ...]:
    """Every cell, variation and world of both families, none twice."""
    every = [
        scenario
        for family, (rate, workers) in MIDDLE.items()
        for scenario in (*grid(family), *variations(family, rate, workers))
    ]
    return tuple(dict.fromkeys([*every, *worlds()]))


def in_worlds() -> tuple[Scenario, ...]:
    """These cells in each world of the columns, and two of them in every believable world."""
    columns = [replace(one, world=of) for one in CELLS_IN_WORLDS for of in world.COLUMNS]
    named = [replace(one, world=of) for one in SENSITIVE for of in world.NAMED]
    return tuple(dict.fromkeys([*columns, *named]))


def measured(scenarios: Sequence[Scenario], effort: Effort) -> Iterator[Cell]:
    """The cells in order, each as soon as it is there."""
    jobs = [_Job(scenario, seed, effort) for scenario in scenarios for seed in effort.seeds]
    if effort.procs == 1:
        yield from _joined(scenarios, effort, map(_of_seed, jobs))
        return
    with ProcessPoolExecutor(effort.procs) as pool:
        yield from _joined(scenarios, effort, pool.map(_of_seed, jobs))


def _joined(
    scenarios: Sequence[Scenario], effort: Effort, results: Iterator[_OfSeed]
) -> Iterator[Cell]:
    for scenario in scenarios:
        of_seeds = list(islice(results, len(effort.seeds)))
        of_names = {name: [each.rows[name] for each in of_seeds] for name in of_seeds[0].rows}
        yield Cell(
            scenario,
            effort.seeds,
            rows={name: mean(each) for name, each in of_names.items()},
            worst={name: worst(each) for name, each in of_names.items()},
            ideal=mean([each.ideal for each in of_seeds]),
            count=scenario.config(effort.seeds[0], effort).n,
        )


def _of_seed(job: _Job) -> _OfSeed:
    workload = generate(job.scenario.config(job.seed, job.effort))
    measure = yardstick(workload)
    rows: dict[str, Summary] = {}
    for name in _names(job, workload):
        make, options = _strategy(name, workload, job.effort)
        result = simulate(workload, make, job.scenario.workers, options)
        rows[name] = summary(result, measure)
    return _OfSeed(rows, summary(measure, measure))


def _names(job: _Job, workload: Workload) -> list[str]:
    # The oracles know nothing of withdrawals.
    oracles = () if workload.cancel_at else ORACLES
    shown = (name for name in job.effort.strategies if name not in hidden(workload))
    return [*oracles, *shown]


def _strategy(name: str, workload: Workload, effort: Effort) -> tuple[MakeStrategy, Options]:
    if name in ORACLES:
        return oracle_of(name, workload), ORACLE
    if name in RELAXED:
        return RELAXED[name](workload), Options(max_cpu_s=effort.max_cpu_s)
    return STRATEGIES[name], Options(max_cpu_s=effort.max_cpu_s)
