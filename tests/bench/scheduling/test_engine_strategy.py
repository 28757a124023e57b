"""The engine in the simulator: safe and live under each of its recommended settings."""

import pytest

from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.reported import Rates
from tests.bench.scheduling.audit import PrState
from tests.bench.scheduling.engine_strategy import UNIT, EngineStrategy, engines
from tests.bench.scheduling.ideal import fifo_outcome
from tests.bench.scheduling.interface import StrategyConfig
from tests.bench.scheduling.scenarios import monorepo, team
from tests.bench.scheduling.settings import RECOMMENDED, settings_of
from tests.bench.scheduling.simulator import simulate
from tests.bench.scheduling.workload import generate

CASES = {
    "F": (team(30, n=50), 24),
    "F scarce": (team(60, n=40), 4),
    "F cancel": (team(30, n=50, p_cancel=0.3), 8),
    "F flaky": (team(20, n=40, flake=0.15, p_broken=0.15, conflict_rate=0.2), 8),
    "F urgent": (team(30, n=50, p_urgent=0.1, p_cancel=0.1), 8),
    "S": (monorepo(100, n=60), 12),
    "S cancel": (monorepo(100, n=60, p_cancel=0.2, p_all=0.05), 8),
}


@pytest.mark.parametrize("name", RECOMMENDED)
@pytest.mark.parametrize("case", CASES)
def test_the_engine_keeps_main_green_and_decides_everybody(case, name):
    config, workers = CASES[case]
    result = simulate(generate(config), engines()[name], workers)
    found = result.findings
    assert (found.red_main, found.unproven, found.cancelled_merged, result.stuck) == (0, 0, 0, 0)


@pytest.mark.parametrize("name", RECOMMENDED)
def test_the_same_seed_gives_the_same_result(name):
    config = team(30, n=30)
    first, second = (simulate(generate(config), engines()[name], 8) for _ in range(2))
    assert (first.state, first.decided) == (second.state, second.decided)
    assert first.runs_started == second.runs_started


def test_without_flakes_it_merges_what_order_alone_says():
    workload = generate(team(30, n=100, flake=0.0))
    result = simulate(workload, engines()["headgate-plain"], 24)
    assert [state is PrState.MERGED for state in result.state] == fifo_outcome(workload)
    assert result.wrong_ejects == 0


def test_the_engine_is_told_the_rates_that_history_would_show():
    told = StrategyConfig(8, False, 0.001, 0.05, conflict_rate=0.1, minutes=40.0)
    queue = EngineStrategy(told, "headgate").queue
    assert queue.rates == Rates(flake=0.05, conflict=0.1, minutes={UNIT: 40.0})


@pytest.mark.parametrize("name", RECOMMENDED)
def test_settings_follow_what_is_known_of_the_world(name):
    team_world = StrategyConfig(8, False, 0.01, 0.02, full_suite=True)
    monorepo_world = StrategyConfig(300, True, 0.01, 0.02, full_suite=False)
    single, parallel = settings_of(name, team_world), settings_of(name, monorepo_world)
    assert (single.mode, single.concurrency) == (Mode.SINGLE, 8)
    assert (parallel.mode, parallel.concurrency) == (Mode.PARALLEL, 300)
    assert not parallel.can_optimistically_merge
    assert not parallel.result_reuse_enabled
