"""The benchmark of a hundred agents: small scenarios, real decisions."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.bench.agents import comparison
from tests.bench.agents.comparison import ALL_ON, CONTENDERS
from tests.bench.agents.figures import fair_division, figures_of
from tests.bench.agents.gate import Answer, Gate
from tests.bench.agents.github_rules import GitHubRules
from tests.bench.agents.simulator import Rules, play
from tests.bench.agents.world import Head, Kind, Scenario, World, arrivals
from tests.bench.scheduling.interface import (
    NO_PROOF,
    CancelRun,
    Eject,
    Merge,
    PrSubmitted,
    PrView,
    RunFinished,
    StartRun,
    StrategyConfig,
)

SMALL = Scenario(
    agents=12,
    people=2,
    hours=3.0,
    agent_every_min=45.0,
    flood=15,
    flood_at_h=1.0,
    slots=6,
    files=60,
)
ALL_OFF, GITHUB = "Headgate, all off", "GitHub's rules"


def played(name, **changes):
    scenario = replace(SMALL, **changes)
    contender = CONTENDERS[name]
    return play(scenario, contender.queue(scenario), contender.rules)


# -- the queues ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONTENDERS)
def test_main_stays_green_and_what_is_good_lands(name):
    result = played(name, broken=0.1, flake=0.02)
    assert result.world.red_landings == 0
    assert len(result.landed) > 30
    assert len({head for _, head in result.landed}) == len(result.landed)


@pytest.mark.parametrize("name", [GITHUB, ALL_ON])
def test_the_same_seed_gives_the_same_figures(name):
    first, second = (figures_of(played(name)) for _ in range(2))
    assert first == second
    assert figures_of(played(name, seed=2)) != first


def test_the_engine_batches_and_github_builds_each_entry():
    sizes = {
        name: Counter(len(run.tested) for run in played(name, slots=3).runs)
        for name in (ALL_OFF, GITHUB)
    }
    assert set(sizes[GITHUB]) == {1}
    assert max(sizes[ALL_OFF]) > 1


def test_the_engine_spends_no_ci_on_a_tree_that_has_passed():
    one_by_one = {"agents": 1, "people": 0, "flood": 0, "flake": 0.0, "broken": 0.0, "stale": 0.0}
    slow = {"agent_every_min": 90.0, "hours": 48.0, "landed": 0.5}
    ours, theirs = (played(name, **one_by_one, **slow) for name in (ALL_OFF, GITHUB))
    empty = sum(head.kind is Kind.LANDED for head in ours.world.heads)
    assert empty > 5
    assert len(ours.runs) <= len(theirs.runs) - empty


# -- what each guard changes ---------------------------------------------------------------------


def test_without_the_guard_stale_work_takes_back_landings_and_with_it_almost_none():
    without, with_guard = (
        figures_of(played(name, stale=0.2, landed=0.2))
        for name in (ALL_OFF, "… with undone-work guard")
    )
    assert without.silent_reverts > 5
    assert without.empty_landings > 5
    assert with_guard.silent_reverts <= 1
    assert with_guard.empty_landings == 0


def test_the_attempt_budget_refuses_unchanged_heads_and_saves_their_ci():
    without, with_budget = (
        figures_of(played(name, broken=0.25)) for name in (ALL_OFF, "… with attempt budget")
    )
    assert without.attempts_refused == 0
    assert with_budget.attempts_refused > 0.1
    assert with_budget.ci_min_per_landing < without.ci_min_per_landing


def test_a_verdict_stops_agents_from_submitting_the_same_again():
    without, told = (
        figures_of(played(name, broken=0.25)) for name in (ALL_OFF, "… with one verdict")
    )
    assert told.attempts_wasted < without.attempts_wasted - 0.1


def test_the_radar_keeps_clashing_heads_out_of_the_queue():
    without, warned = (
        figures_of(played(name, files=12)) for name in (ALL_OFF, "… with conflict radar")
    )
    assert without.clashes > 5
    assert warned.clashes == 0


# -- GitHub's rules ------------------------------------------------------------------------------


class Line:
    """GitHub's queue with two builds at once, and a git in which heads clash as told."""

    def __init__(self, **scenario):
        self.world = World(Scenario(agents=0, flood=0, **scenario))
        self.queue = GitHubRules(StrategyConfig(2, False, 0.0, 0.0), self.world)

    def submit(self):
        head = self.world.push(self.world.open(0, 0.0, is_person=True))
        return self.queue.answer(PrSubmitted(0.0, PrView(head.id, 0.0, None, 1.0, 1200.0)))

    def finish(self, run, *, passed):
        return self.queue.answer(RunFinished(1.0, run, passed))


def test_github_builds_each_on_those_ahead_and_no_more_than_its_concurrency():
    line = Line()
    assert line.submit() == [StartRun(1, (), (0,))]
    assert line.submit() == [StartRun(2, (0,), (1,))]
    assert line.submit() == []
    assert line.finish(2, passed=True) == []
    assert line.finish(1, passed=True) == [Merge((0,), 1), Merge((1,), 2), StartRun(3, (), (2,))]


def test_github_removes_a_failing_one_and_builds_those_behind_it_again():
    line = Line()
    for _ in range(3):
        line.submit()
    assert line.finish(1, passed=False) == [
        CancelRun(2),
        Eject(0, 1),
        StartRun(3, (), (1,)),
        StartRun(4, (1,), (2,)),
    ]


def test_github_does_not_remove_one_for_what_one_ahead_of_it_broke():
    line = Line()
    for _ in range(2):
        line.submit()
    assert line.finish(2, passed=False) == []
    assert line.finish(1, passed=False) == [Eject(0, 1), StartRun(3, (), (1,))]


def test_github_removes_one_that_cannot_be_merged_behind_those_ahead():
    line = Line(files=1, clash=1.0)
    assert line.submit() == [StartRun(1, (), (0,))]
    assert line.submit() == [Eject(1, NO_PROOF)]


# -- the model -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "rate"), [(Kind.STALE, 0.96), (Kind.GOOD, 1 / 345)])
def test_the_guard_has_the_rates_that_were_measured(kind, rate):
    world, count = World(Scenario()), 20_000
    world.prs = [world.open(0, 0.0, is_person=True)] * count
    world.heads = [Head(number, number, 0, kind) for number in range(count)]
    gate = Gate(world, guards=True)
    answers = Counter(map(gate.answer, world.heads))
    assert answers[Answer.HELD] / count == pytest.approx(rate, abs=0.002)


def test_a_rebase_ends_a_clash_and_keeps_what_others_have_landed():
    world = World(Scenario(files=1, clash=1.0))
    first, second = (world.push(world.open(0, 0.0, is_person=True)) for _ in range(2))
    world.land(first.id)
    assert world.clash_of(second.id) is not None
    assert world.clash_of(world.push(world.prs[second.pr]).id) is None


def test_a_repaired_head_passes_where_the_broken_one_failed():
    world = World(Scenario(broken=1.0))
    pr = world.open(0, 0.0, is_person=True)
    assert not world.passes(0, [world.push(pr).id])
    assert not world.passes(0, [world.push(pr).id])
    assert world.passes(0, [world.push(pr, is_repaired=True).id])


def test_everybody_opens_at_the_same_moments_whatever_the_queue_does():
    assert arrivals(SMALL) == arrivals(SMALL)
    assert sum(who == 0 for _, who, _ in arrivals(SMALL)) >= SMALL.flood
    people = [each for each in arrivals(SMALL) if each[2]]
    alone = arrivals(replace(SMALL, agents=0, flood=0))
    assert [at for at, *_ in people] == [at for at, *_ in alone]


def test_a_fair_division_gives_nobody_more_than_he_wants_and_the_rest_evenly():
    assert fair_division({0: 100, 1: 1, 2: 4}, 11) == {1: 1, 2: 4, 0: 6}
    assert fair_division({0: 5, 1: 5}, 4) == {0: 2, 1: 2}


def test_the_table_has_a_row_for_each_queue_and_the_goals(monkeypatch):
    monkeypatch.setattr(comparison, "Scenario", lambda: SMALL)
    monkeypatch.setattr(comparison, "BUSIER", SMALL)
    rows = comparison.run(0.2)
    assert [row["queue"] for row in rows][: len(CONTENDERS)] == list(CONTENDERS)
    assert rows[-1].keys() >= {"jain_floor", "people_p95_by_alone_goal", "silent_reverts_goal"}
    assert CONTENDERS[GITHUB].rules == Rules()
