"""The published scenarios: they change only together with the tables."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.bench.scheduling import arrivals
from tests.bench.scheduling.workload import WorkloadConfig

Change = float | tuple[float, ...]
Changes = Mapping[str, Change]
"""Fields of a WorkloadConfig with other values."""


def team(rate: float, seed: int = 1, **changes: Change) -> WorkloadConfig:
    """F: one repository, every run the full suite, no impacted targets: a chain."""
    base = WorkloadConfig(
        n=1500,
        rate=rate,
        seed=seed,
        use_targets=False,
        full_suite=True,
        d_median=1200.0,
        d_sigma=0.15,
    )
    return _changed(base, changes)


def monorepo(rate: float, seed: int = 1, **changes: Change) -> WorkloadConfig:
    """S: a monorepo with selective CI and known impacted targets: a graph.

    The number of targets grows with the rate, so that one clashes with about one other in
    flight (0.9 to 1.3) at every load.
    """
    base = WorkloadConfig(
        n=3000, rate=rate, seed=seed, n_targets=int(20 * rate), zipf=0.6, p_all=0.0
    )
    return _changed(base, changes)


FAMILIES: dict[str, Callable[..., WorkloadConfig]] = {"F": team, "S": monorepo}

GRID: dict[str, tuple[tuple[float, int], ...]] = {
    "F": tuple((rate, workers) for rate in (10, 30, 60) for workers in (8, 24, 64)),
    "S": tuple((rate, workers) for rate in (100, 300, 500) for workers in (100, 300, 500)),
}
"""(pull requests an hour, CI workers) of each cell."""

MIDDLE: dict[str, tuple[float, int]] = {"F": (30, 24), "S": (300, 300)}
"""The cell that is varied."""

VARIATIONS: dict[str, Changes] = {
    "base": {},
    "no flakes": {"flake": 0.0},
    "flaky 5%": {"flake": 0.05},
    "broken 10%": {"p_broken": 0.10},
    "conflicts 10%": {"conflict_rate": 0.10},
    "no predictor": {"risk_conc": 50.0},
    "bursts of 8": {"burst": 8.0},
    "cancel 5%": {"p_cancel": 0.05},
    "ALL 1%": {"p_all": 0.01},
    "denser graph": {"n_targets": 2500, "zipf": 0.7},
    "urgent 1%": {"p_urgent": 0.01},
    "outage 20 min": {"outage": 1200.0},
}
"""One factor at a time."""

REAL_ARRIVALS = "real arrivals"
ONE_HOUR = "99 authors"

WORLDS: dict[str, Changes] = {
    "flaky 10%": {"flake": 0.10},
    "weak predictor, broken 8%": {"risk_conc": 50.0, "p_broken": 0.08},
    "mixed runs": {"short_share": 0.5},
    "test results": {"sends_results": True},
    "flaky 10%, test results": {"flake": 0.10, "sends_results": True},
    "conflicts 10%, test results": {"conflict_rate": 0.10, "sends_results": True},
    "weak predictor, broken 8%, test results": {
        "risk_conc": 50.0,
        "p_broken": 0.08,
        "sends_results": True,
    },
    "outage 20 min, test results": {"outage": 1200.0, "sends_results": True},
    "flaky tests quarantined": {"flake": 0.0, "sends_results": True},
    "bursts of 8, test results": {"burst": 8.0, "sends_results": True},
    ONE_HOUR: {"n": 1000, "authors": 99, "bots": 9},
    f"{ONE_HOUR}, test results": {"n": 1000, "authors": 99, "bots": 9, "sends_results": True},
    REAL_ARRIVALS: {"gaps": arrivals.gaps(), "n": len(arrivals.gaps())},
    f"{REAL_ARRIVALS}, test results": {
        "gaps": arrivals.gaps(),
        "n": len(arrivals.gaps()),
        "sends_results": True,
    },
}
"""Further worlds. 99 authors, of whom nine are bots, send 1,000 in one hour.

With test results a queue is told which tests failed in a run: one of its own for each broken pull
request and for each pair that conflicts, and one of ten flaky tests. Where those are quarantined,
no run is flaky.
"""

CELLS_OF_WORLDS: tuple[tuple[str, float, int, str], ...] = (
    *(("F", 30, 24, name) for name in WORLDS if not name.startswith(ONE_HOUR)),
    ("F", 1000, 100, ONE_HOUR),
    ("F", 1000, 100, f"{ONE_HOUR}, test results"),
    ("F", 10, 8, "test results"),
    ("F", 60, 8, "test results"),
    ("F", 60, 24, "test results"),
    ("F", 60, 64, "test results"),
)

OVERLOADED: frozenset[tuple[str, float, int]] = frozenset(
    {("F", 30, 8), ("F", 60, 8), ("F", 60, 24)}
)
"""More arrives than can be tested one by one, so waiting grows with the number of pull requests.

A part of them would flatter every strategy: these cells are always measured whole.
"""

HELD_OUT = (7301, 7302, 7303, 7304, 7305)
"""The seeds of the published figures. No rule and no number may be tuned on them."""


def _changed(base: WorkloadConfig, changes: Changes) -> WorkloadConfig:
    return replace(base, **changes)  # type: ignore[arg-type]
