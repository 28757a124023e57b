"""The simulator's judge, its yardstick, and every baseline on small workloads."""

import math
from collections import Counter
from dataclasses import replace

import pytest

from tests.bench.scheduling import arrivals
from tests.bench.scheduling.audit import ProtocolError, PrState
from tests.bench.scheduling.cells import Effort, Scenario
from tests.bench.scheduling.ideal import fifo_outcome, ideal
from tests.bench.scheduling.interface import (
    NO_PROOF,
    URGENT,
    CancelRun,
    Merge,
    PrSubmitted,
    StartRun,
)
from tests.bench.scheduling.metrics import mean, summary, worst
from tests.bench.scheduling.scenarios import REAL_ARRIVALS, monorepo, team
from tests.bench.scheduling.simulator import ORACLE, Options, simulate
from tests.bench.scheduling.strategies.oracle import make_oracle
from tests.bench.scheduling.strategies.registry import BASELINES, ORACLES, WITH_RETRY, oracle_of
from tests.bench.scheduling.workload import generate

EVERY = {**BASELINES, **WITH_RETRY}

CASES = {
    "F": (team(30, n=60), 24),
    "F scarce": (team(60, n=50), 8),
    "F cancel": (team(30, n=60, p_cancel=0.2), 16),
    "F flaky": (team(20, n=50, flake=0.15, p_broken=0.15, conflict_rate=0.2), 16),
    "F bursts": (team(30, n=60, burst=8.0, diurnal=True), 16),
    "S": (monorepo(100, n=100), 50),
    "S cancel": (monorepo(100, n=100, p_cancel=0.2, p_all=0.02), 30),
    "S dense": (monorepo(100, n=60, n_targets=50, p_all=0.05), 20),
}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("case", CASES)
def test_every_baseline_keeps_main_green_and_decides_everybody(case, name):
    config, workers = CASES[case]
    result = simulate(generate(config), EVERY[name], workers, Options(max_cpu_s=60))
    found = result.findings
    assert (found.red_main, found.unproven, found.cancelled_merged, result.stuck) == (0, 0, 0, 0)
    assert not result.is_truncated


@pytest.mark.parametrize("name", EVERY)
def test_the_same_seed_gives_the_same_result(name):
    config = monorepo(100, n=60)
    first, second = (simulate(generate(config), EVERY[name], 50) for _ in range(2))
    assert (first.state, first.decided) == (second.state, second.decided)
    assert first.runs_started == second.runs_started


@pytest.mark.parametrize("name", ["serial", "zuul", "prefix", "submitqueue", "speculate-all"])
def test_without_flakes_a_queue_merges_what_order_alone_says(name):
    workload = generate(team(20, n=200, flake=0.0))
    result = simulate(workload, EVERY[name], 24)
    assert [state is PrState.MERGED for state in result.state] == fifo_outcome(workload)
    assert result.wrong_ejects == 0


@pytest.mark.parametrize("config", [team(30, n=200), monorepo(100, n=200, p_all=0.02)])
def test_the_oracle_with_workers_for_all_equals_the_closed_form(config):
    workload = generate(config)
    result = simulate(workload, make_oracle(workload), 10_000, ORACLE)
    assert result.decided == pytest.approx(ideal(workload).decided)


@pytest.mark.parametrize("name", ORACLES)
def test_an_oracle_rejects_nobody_good(name):
    workload = generate(team(30, n=200))
    result = simulate(workload, oracle_of(name, workload), 24, ORACLE)
    assert result.merged == sum(fifo_outcome(workload))
    assert (result.wrong_ejects, result.findings.red_main) == (0, 0)


def test_the_ideal_divided_by_itself_is_one():
    yardstick = ideal(generate(team(30, n=200)))
    own = summary(yardstick, yardstick)
    assert (own.n50, own.n95, own.n99, own.wrong_eject_pct) == (1, 1, 1, 0)


def test_the_rate_changes_when_and_not_what():
    slow, fast = generate(team(10, n=200)), generate(team(100, n=200))
    assert slow.broken == fast.broken
    assert slow.conflicts == fast.conflicts
    assert slow.duration == fast.duration
    assert slow.arrive == pytest.approx([10 * t for t in fast.arrive])


def test_the_worst_seed_has_most_runs_and_fewest_merges():
    of_seeds = [
        summary(simulate(workload, EVERY["prefix"], 8), ideal(workload))
        for workload in (generate(team(30, seed=seed, n=100)) for seed in (1, 2))
    ]
    found = worst(of_seeds)
    assert found.runs_per_merge == max(one.runs_per_merge for one in of_seeds)
    assert found.merged_per_h == min(one.merged_per_h for one in of_seeds)
    assert found.verdict95 == max(one.verdict95 for one in of_seeds)


def test_a_workload_without_broken_ones_has_no_time_to_a_verdict():
    workload = generate(team(30, n=50, p_broken=0.0, conflict_rate=0.0, flake=0.0))
    one = summary(simulate(workload, EVERY["prefix"], 24), ideal(workload))
    assert math.isnan(one.verdict50)
    assert one.merged50 == one.n50
    assert math.isnan(mean([one, one]).verdict95)


def test_urgent_ones_are_drawn_beside_the_others():
    plain, urgent = generate(team(30, n=500)), generate(team(30, n=500, p_urgent=0.05))
    assert [view.priority for view in urgent.views].count(URGENT) > 5
    as_plain = [view._replace(priority=plain.views[0].priority) for view in urgent.views]
    assert as_plain == plain.views
    assert (plain.broken, plain.conflicts) == (urgent.broken, urgent.conflicts)


def world(rate, name):
    """A published world as it is drawn."""
    return Scenario("F", rate, 24, name).config(1, Effort())


def test_short_runs_are_mixed_in_and_change_nothing_else():
    plain, mixed = generate(team(30, n=500)), generate(team(30, n=500, short_share=0.5))
    shrunk = [a / b for a, b in zip(mixed.duration, plain.duration, strict=True)]
    assert {round(each, 9) for each in shrunk} == {0.25, 1.0}
    assert 200 < shrunk.count(1.0) < 300
    assert (plain.broken, plain.conflicts) == (mixed.broken, mixed.conflicts)
    assert (plain.config.minutes, mixed.config.minutes) == (20.0, 12.5)


def test_nine_bots_send_half_of_all_pull_requests():
    sent = Counter(view.author for view in generate(world(1000, "99 authors")).views)
    assert sent.total() == 1000
    assert 450 < sum(sent[bot] for bot in range(9)) < 550
    assert max(sent) < 99


def test_arrivals_follow_given_gaps_over_and_over():
    arrive = generate(team(30, n=5, gaps=(0.0, 2.0))).arrive
    assert arrive == [0.0, 240.0, 240.0, 480.0, 480.0]


@pytest.mark.skipif(not arrivals.gaps(), reason=f"{arrivals.VARIABLE} has no {arrivals.TABLE}")
def test_arrivals_of_real_queues_keep_the_rate():
    config = world(30, REAL_ARRIVALS)
    assert generate(config).arrive[-1] == pytest.approx(config.n * 120.0)


def test_fairness_is_one_only_where_all_authors_wait_alike():
    yardstick = ideal(generate(team(30, n=4, authors=3, bots=1)))
    yardstick.workload.views[:] = [
        view._replace(author=author)
        for view, author in zip(yardstick.workload.views, (0, 0, 1, 2), strict=True)
    ]
    arrive = yardstick.workload.arrive

    def taking(*seconds):
        decided = [at + takes for at, takes in zip(arrive, seconds, strict=True)]
        return summary(replace(yardstick, decided=decided), yardstick).fairness

    assert taking(50, 150, 100, 100) == pytest.approx(1.0)
    assert taking(100, 300, 200, 500) == pytest.approx(0.81 / 0.99)


class Cheat:
    """Answers every submission with the actions it was made with."""

    name = "cheat"

    def __init__(self, actions):
        self.actions = actions

    def answer(self, event):
        return self.actions(event.pr.id) if isinstance(event, PrSubmitted) else []


def cheated(actions):
    """The result of a small workload under a cheat."""
    return simulate(generate(team(30, n=300)), lambda _: Cheat(actions), 4)


def test_the_audit_catches_merges_without_a_run():
    found = cheated(lambda pr: [Merge((pr,), NO_PROOF)]).findings
    assert found.unproven == 300
    assert found.red_main > 5


def test_the_audit_catches_merges_before_their_run_has_ended():
    found = cheated(lambda pr: [StartRun(pr, (), (pr,)), Merge((pr,), pr)]).findings
    assert found.unproven == 300


def test_a_run_that_holds_two_which_conflict_is_doomed():
    config = team(30, n=300)
    conflicts = generate(config).conflicts
    second = next(pr for pr in range(300) if any(other < pr for other in conflicts[pr]))
    alone = simulate(generate(config), lambda _: Cheat(lambda pr: [StartRun(pr, (), (pr,))]), 300)
    on_all = simulate(
        generate(config),
        lambda _: Cheat(lambda pr: [StartRun(pr, tuple(range(pr)), (pr,))]),
        300,
    )
    assert (alone.runs_doomed, on_all.runs_doomed) == (0, 300 - second)


@pytest.mark.parametrize(
    "actions",
    [
        lambda pr: [Merge((pr,), NO_PROOF), Merge((pr,), NO_PROOF)],
        lambda pr: [StartRun(1, (), (pr,))],
        lambda pr: [StartRun(pr, (), ())],
        lambda pr: [CancelRun(pr)],
        lambda pr: [pr],
    ],
    ids=["merged twice", "run used again", "empty run", "unknown run", "no action"],
)
def test_senseless_actions_are_refused(actions):
    with pytest.raises(ProtocolError):
        cheated(actions)
