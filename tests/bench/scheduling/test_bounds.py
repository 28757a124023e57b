"""Relaxed queues: what they decide in a tiny world, and that they bound every strategy."""

from dataclasses import replace
from functools import partial

import pytest

from tests.bench.scheduling import __main__ as command
from tests.bench.scheduling import bounds
from tests.bench.scheduling.audit import PrState
from tests.bench.scheduling.cells import Effort, Scenario, measured
from tests.bench.scheduling.engine_strategy import engines
from tests.bench.scheduling.goals import OURS, Bound, Goal
from tests.bench.scheduling.scenarios import monorepo, team
from tests.bench.scheduling.simulator import simulate
from tests.bench.scheduling.strategies.informed import Failing, Gifts, Informed, Policy, relaxed
from tests.bench.scheduling.strategies.registry import BASELINES, LANES, RELAXED, hidden
from tests.bench.scheduling.workload import generate

SAFE, RISKY = 0.02, 0.8
"""Chances of being broken, below and above the law of leaving out in the tiny world (1 / 2)."""

FLAKES_ONCE = 28
"""With this seed the first run of the second pull request is flaky, and no other."""

CASES = {
    "F": (team(30, n=100), 24),
    "F scarce": (team(60, n=80), 8),
    "F flaky": (team(20, n=80, flake=0.15, p_broken=0.15, conflict_rate=0.2), 16),
    "F bursts": (team(30, n=80, burst=8.0), 16),
}


def tiny(*, second_fails, conflict=False):
    """Three pull requests, a minute apart, each run takes ten; the second one is bad.

    2 % of the runs are flaky, but none of these few.
    """
    workload = generate(team(3, n=3, p_broken=0.0, conflict_rate=0.0, flake=0.02, d_noise=0.0))
    workload.arrive[:] = [0.0, 60.0, 120.0]
    workload.duration[:] = [600.0] * 3
    workload.broken[:] = [False, not conflict, False]
    if conflict:
        workload.conflicts[0].append(1)
        workload.conflicts[1].append(0)
    chances = (SAFE, second_fails, SAFE)
    workload.views[:] = [
        view._replace(t=t, p_ok=1 - chance)
        for view, t, chance in zip(workload.views, workload.arrive, chances, strict=True)
    ]
    return workload


def played(workload, gifts, policy=None, workers=10):
    """What becomes of the tiny world."""
    make = partial(Informed, workload=workload, gifts=gifts, policy=policy or Policy())
    return simulate(workload, make, workers)


@pytest.mark.parametrize("conflict", [False, True])
def test_what_is_built_on_a_bad_one_restarts_when_the_run_names_it(conflict):
    result = played(tiny(second_fails=SAFE, conflict=conflict), Gifts.BLAME)
    assert result.state == [PrState.MERGED, PrState.EJECTED, PrState.MERGED]
    assert result.decided == [600.0, 660.0, 1260.0]
    assert result.runs_started == 4


def test_with_free_hedges_a_bad_one_that_is_left_out_disturbs_none():
    result = played(tiny(second_fails=RISKY), Gifts.HEDGES)
    assert result.decided == [600.0, 660.0, 720.0]
    assert result.runs_started == 3


def test_nothing_is_built_on_one_that_is_left_out():
    result = played(tiny(second_fails=RISKY), Gifts.BLAME)
    assert result.decided == [600.0, 660.0, 720.0]


def test_a_good_one_that_is_left_out_needs_a_second_run_while_others_run_behind_it():
    workload = tiny(second_fails=RISKY)
    workload.broken[1] = False
    result = played(workload, Gifts.BLAME)
    assert result.decided == [600.0, 1260.0, 720.0]
    assert result.runs_started == 4


def test_a_good_one_that_is_left_out_merges_in_place_if_nothing_runs_behind_it():
    workload = tiny(second_fails=RISKY)
    workload.broken[1] = False
    workload.arrive[2] = 700.0
    result = played(workload, Gifts.BLAME)
    assert result.decided == [600.0, 660.0, 1300.0]
    assert result.runs_started == 3


@pytest.mark.parametrize("failing", [Failing.OUT, Failing.OUT_AT_ONCE])
def test_an_isolating_run_takes_its_time_and_no_slot(failing):
    workload = tiny(second_fails=SAFE)
    result = played(workload, Gifts.ISOLATION, Policy(failing=failing), workers=3)
    assert result.decided == [600.0, 660.0 + 600.0, 1260.0]
    assert result.runs_started == 4


@pytest.mark.parametrize("conflict", [False, True])
def test_one_that_alone_can_have_broken_a_test_is_rejected_at_once(conflict):
    result = played(tiny(second_fails=SAFE, conflict=conflict), Gifts.NAMES)
    assert result.state == [PrState.MERGED, PrState.EJECTED, PrState.MERGED]
    assert result.decided == [600.0, 660.0, 1260.0]


def test_a_failed_test_with_two_suspects_waits_until_one_of_them_is_cleared():
    workload = tiny(second_fails=SAFE)
    workload.duration[0] = 900.0
    result = played(workload, Gifts.NAMES)
    assert result.decided == [900.0, 900.0, 1500.0]


def test_a_group_whose_members_all_are_suspects_is_isolated():
    workload = tiny(second_fails=SAFE)
    workload.arrive[:] = [0.0, 0.0, 0.0]
    result = played(workload, Gifts.NAMES, Policy(is_thrifty=True), workers=1)
    assert result.decided[1] == 1800.0


@pytest.mark.parametrize(
    ("gifts", "decided"),
    [(Gifts.NAMES, [600.0, 720.0, 720.0]), (Gifts.ISOLATION, [600.0, 1860.0, 1260.0])],
)
def test_what_failed_by_a_flake_stays_in_the_line_only_if_the_failed_test_is_known(gifts, decided):
    workload = tiny(second_fails=SAFE)
    workload.broken[1] = False
    workload.config = replace(workload.config, seed=FLAKES_ONCE)
    assert played(workload, gifts).decided == decided


def test_a_search_takes_a_slot_and_is_counted():
    result = played(tiny(second_fails=SAFE), Gifts.SEARCH, workers=2)
    assert result.state == [PrState.MERGED, PrState.EJECTED, PrState.MERGED]
    assert result.decided == [600.0, 1260.0, 1260.0]
    assert result.runs_started == 5


def test_a_second_run_that_fails_the_same_test_rejects_like_a_search():
    result = played(tiny(second_fails=SAFE), Gifts.SEARCH, Policy(failing=Failing.STAYS))
    assert result.decided == [600.0, 720.0, 1320.0]


def test_a_flake_looks_like_a_broken_test_until_the_search_has_passed():
    workload = tiny(second_fails=SAFE)
    workload.broken[1] = False
    workload.config = replace(workload.config, seed=FLAKES_ONCE)
    assert played(workload, Gifts.SEARCH).decided == [600.0, 1860.0, 1260.0]


def four_together(*, broken):
    """A pull request, and four that wait for the one worker and so are tested together."""
    workload = generate(team(3, n=5, p_broken=0.0, conflict_rate=0.0, flake=0.02, d_noise=0.0))
    workload.arrive[:] = [0.0, 1.0, 1.0, 1.0, 1.0]
    workload.duration[:] = [600.0] * 5
    for place in broken:
        workload.broken[place] = True
    workload.views[:] = [
        view._replace(t=t, p_ok=0.8)
        for view, t in zip(workload.views, workload.arrive, strict=True)
    ]
    return workload


@pytest.mark.parametrize("gifts", [Gifts.SEARCH, Gifts.EACH, Gifts.UNNAMED])
@pytest.mark.parametrize(("place", "runs"), [(1, 2), (2, 3), (3, 2), (4, 3)])
def test_a_search_halves_the_group_until_the_culprit_has_failed_alone(gifts, place, runs):
    result = played(four_together(broken=[place]), gifts, Policy(is_thrifty=True), workers=1)
    assert result.decided[place] == 1200.0 + 600.0 * runs


@pytest.mark.parametrize(
    ("gifts", "decided"),
    [
        (Gifts.SEARCH, [600.0, 3600.0, 3000.0, 3600.0, 3000.0]),
        (Gifts.EACH, [600.0, 4800.0, 3000.0, 4800.0, 4200.0]),
        (Gifts.UNNAMED, [600.0, 6600.0, 3000.0, 6600.0, 6000.0]),
    ],
)
def test_a_second_culprit_is_found_for_nothing_or_by_another_search(gifts, decided):
    """The search for #2 takes three runs, and two are left.

    If it is known that a test is unexplained, they are searched, which takes two runs; #1 waits for
    the worker. Else they are tested with #1 and fail, the next search takes three runs, and the
    verdict one more: nothing has passed for so long that CI may be what fails.
    """
    result = played(four_together(broken=[2, 4]), gifts, Policy(is_thrifty=True), workers=1)
    assert [result.state[place] for place in (2, 4)] == [PrState.EJECTED] * 2
    assert result.decided == decided


def test_a_verdict_needs_one_more_run_while_ci_itself_may_be_what_fails():
    workload = tiny(second_fails=SAFE)
    workload.broken[0] = True
    assert played(workload, Gifts.SEARCH, workers=3).decided[0] == 1800.0


def test_what_stays_while_it_is_isolated_costs_those_behind_it_more():
    result = played(tiny(second_fails=SAFE), Gifts.ISOLATION, Policy(failing=Failing.STAYS))
    assert result.decided[2] > 1260.0


def test_one_failure_rejects_what_was_nearly_certain_to_fail():
    result = played(tiny(second_fails=0.99), Gifts.ISOLATION)
    assert result.decided == [600.0, 660.0, 720.0]


def test_the_thrifty_one_restarts_in_one_run():
    workload = tiny(second_fails=SAFE)
    workload.broken[:] = [True, False, False]
    spread, thrifty = (
        played(workload, Gifts.BLAME, Policy(is_thrifty=is_thrifty)) for is_thrifty in (False, True)
    )
    assert (spread.runs_started, thrifty.runs_started) == (5, 4)
    assert spread.decided == thrifty.decided == [600.0, 1200.0, 1200.0]


@pytest.mark.parametrize("name", RELAXED)
@pytest.mark.parametrize("case", CASES)
def test_a_relaxed_queue_keeps_the_rules_of_every_queue(case, name):
    config, workers = CASES[case]
    workload = generate(config)
    result = simulate(workload, RELAXED[name](workload), workers)
    found = result.findings
    assert (found.red_main, found.unproven, result.stuck) == (0, 0, 0)
    assert result.strategy == name


def test_relaxed_queues_are_left_out_where_they_know_too_little():
    withdrawn, graph = generate(team(30, n=80, p_cancel=0.2)), generate(monorepo(100, n=50))
    assert hidden(withdrawn) >= RELAXED.keys()
    assert hidden(graph) >= RELAXED.keys()
    assert not hidden(generate(team(30, n=20))) & RELAXED.keys()


def test_no_strategy_comes_nearer_to_a_goal_than_the_one_with_all_gifts():
    others = [name for name in (*BASELINES, *engines()) if name not in LANES]
    strategies = (*others, *relaxed(Gifts.HEDGES))
    effort = Effort(seeds=(1,), count=30, strategies=strategies, procs=1)
    for cell in measured(bounds.scenarios(), effort):
        for goal in (goal for goal in bounds.goals() if goal.scenario == cell.scenario):
            best = bounds.nearest(goal, cell.rows, list(relaxed(Gifts.HEDGES)))
            rival = bounds.nearest(goal, cell.rows, others)
            assert best.factor <= rival.factor, (goal, best, rival)


def test_a_goal_is_impossible_only_if_no_gift_is_enough():
    effort = Effort(seeds=(1,), count=30, strategies=bounds.strategies(), procs=1)
    scenario = Scenario("F", 30, 24)
    (cell,) = measured([scenario], effort)

    def judged(limit):
        return bounds.judged(Goal("P4", scenario, (Bound("P50", "n50", limit),)), cell.rows)

    assert judged(0.1) == "impossible"
    assert judged(10.0) == "with a search for each culprit"
    (row,) = bounds.rows_of({scenario: cell})
    assert row["goal"] == "P4"
    assert str(row["queue"]).startswith(f"{cell.rows[OURS].n50:.2f} · ")


def test_the_command_shows_the_bounds_of_a_cell(capsys):
    command.main(["bounds", "F 10x8", "--seeds", "1", "--n", "15", "--procs", "1"])
    assert (
        "| P6 | F 10/h x 8 | P50 ≤ 1 · P95 ≤ 1.45 · runs/merge ≤ 1.3 |" in capsys.readouterr().out
    )
