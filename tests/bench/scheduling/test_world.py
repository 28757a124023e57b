"""Worlds of CI: what each switch changes, that it changes nothing else, and that truth stays."""

import csv
import hashlib
import io
from collections import Counter, defaultdict
from dataclasses import fields, replace
from statistics import median

import pytest

from tests.bench.scheduling import arrivals, chance, world
from tests.bench.scheduling.audit import Ledger, Run
from tests.bench.scheduling.cells import Scenario
from tests.bench.scheduling.ci import Times, own_slots
from tests.bench.scheduling.engine_strategy import engines
from tests.bench.scheduling.ideal import alone, ideal, yardstick
from tests.bench.scheduling.interface import PrSubmitted, RunFinished, StartRun
from tests.bench.scheduling.scenarios import monorepo, team
from tests.bench.scheduling.simulator import ORACLE, Options, simulate
from tests.bench.scheduling.strategies.registry import BASELINES, oracle_of
from tests.bench.scheduling.workload import generate
from tests.bench.scheduling.world import BELIEVABLE, EARLY, NAMED, PLAIN, World

SWITCHES = {
    field.name: World(**{field.name: getattr(BELIEVABLE, field.name)})
    for field in fields(World)
    if getattr(BELIEVABLE, field.name) != getattr(PLAIN, field.name)
}
SWITCHES["slow_share"] = replace(PLAIN, slow_share=0.5, slow_start_s=180.0)
del SWITCHES["slow_start_s"]
del SWITCHES["flakes_last_s"]
"""The plain world with one property of the believable one."""

OF_RUNS = {"first_failure", "time", "built_before", "second_look", "slow_share"}
"""What changes how long a run takes."""

BEFORE = {
    ("F", "proto"): "3b1cfba8d141",
    ("F", "submitqueue"): "ddcfa09bec5e",
    ("F results", "batch-chain"): "aa88b829b010",
    ("S", "proto"): "ade5003f7da6",
}
"""Digests of what these decided before there were other worlds, with times in milliseconds.

The last digits of an exponential differ between kinds of processors.
"""

CONFIGS = {
    "F": (team(60, n=120), 24),
    "F results": (team(60, n=120, sends_results=True, flake=0.1, outage=1200.0), 8),
    "S": (monorepo(100, n=100, p_all=0.02), 50),
}


def in_world(config, of):
    """The workload of this configuration in a world."""
    return generate(replace(config, world=of))


class Alone:
    """Tests each pull request alone `times` times, one after the other, and decides nothing."""

    name = "alone"

    def __init__(self, times=1):
        self.times = times
        self.ended = {}
        self.failed_tests = {}

    def answer(self, event):
        if isinstance(event, PrSubmitted):
            return [StartRun(event.pr.id * self.times, (), (event.pr.id,))]
        if isinstance(event, RunFinished):
            self.ended[event.run] = event.t
            self.failed_tests[event.run] = event.failed_tests
            if (event.run + 1) % self.times:
                return [StartRun(event.run + 1, (), (event.run // self.times,))]
        return []


def seconds(workload, workers=10_000, times=1):
    """How long after its submission, or after the run before, each run alone ends."""
    strategy = Alone(times)
    simulate(workload, lambda _: strategy, workers)
    return {
        run: end - strategy.ended.get(run - 1, 0.0)
        if run % times
        else end - workload.arrive[run // times]
        for run, end in strategy.ended.items()
    }


@pytest.mark.parametrize(("case", "name"), BEFORE)
def test_in_the_plain_world_all_is_as_before(case, name):
    config, workers = CONFIGS[case]
    result = simulate(generate(config), BASELINES[name], workers)
    decided, busy = [round(at, 3) for at in result.decided], round(result.busy, 3)
    said = (decided, [int(state) for state in result.state], busy, result.runs_doomed)
    assert hashlib.sha256(repr(said).encode()).hexdigest()[:12] == BEFORE[case, name]


@pytest.mark.parametrize("name", ["headgate", "proto", "evi"])
def test_the_same_seed_gives_the_same_result_in_the_believable_world(name):
    config = team(60, n=60)
    every = {**BASELINES, **engines()}
    first, second = (
        simulate(in_world(config, BELIEVABLE), every[name], 12, Options()) for _ in range(2)
    )
    assert (first.state, first.decided, first.busy) == (second.state, second.decided, second.busy)


@pytest.mark.parametrize("name", [*BASELINES, *engines()])
def test_every_strategy_keeps_main_green_and_decides_everybody(name):
    every = {**BASELINES, **engines()}
    workload = in_world(team(30, n=50, flake=0.1, p_broken=0.1, conflict_rate=0.1), BELIEVABLE)
    result = simulate(workload, every[name], 12, Options(max_cpu_s=60))
    found = result.findings
    assert (found.red_main, found.unproven, result.stuck) == (0, 0, 0)


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_draws_the_same_pull_requests(name):
    config = team(60, n=300)
    plain, other = in_world(config, PLAIN), in_world(config, SWITCHES[name])
    assert (plain.broken, plain.conflicts) == (other.broken, other.conflicts)
    assert (plain.duration, plain.targets) == (other.duration, other.targets)
    assert [view.p_ok for view in plain.views] == [view.p_ok for view in other.views]
    assert (plain.arrive == other.arrive) == (name != "hours")
    assert bool(other.own_runs) == (name == "own_runs")


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_changes_times_of_runs_only_if_it_says_so(name):
    config = team(10, n=80, flake=0.1, p_broken=0.1)
    as_plain, other = (
        seconds(in_world(config, of), workers=3, times=2) for of in (PLAIN, SWITCHES[name])
    )
    if name in OF_RUNS:
        assert as_plain != pytest.approx(other)
    elif name == "flakes":
        assert as_plain == other
    else:
        assert name in ("own_runs", "hours")


@pytest.mark.parametrize("name", NAMED)
def test_truth_does_not_depend_on_what_ran_before(name):
    workload = in_world(team(60, n=60, flake=0.2, conflict_rate=0.3), NAMED[name])
    runs = [(1, (pr, pr + 1), (pr + 2,)) for pr in range(40)]

    def found(earlier):
        ledger = Ledger(workload)
        times = Times(workload, ledger, is_oracle=False)
        for number, pr in enumerate(earlier):
            other = Run(1000 + number, (), (pr, pr + 1), 0)
            times.begin(other, 10.0)
            times.end(other, 5000.0, has_failed=True)
        answers = []
        for number, base, prs in runs:
            run = Run(number, base, prs, 0)
            times.begin(run, 7200.0)
            answers.append((run.passed, ledger.passes(run), run.known_tests))
        return answers

    assert found([]) == found([3, 9, 27, 50])


def test_a_failing_run_ends_when_its_first_failure_is_known():
    quarter = World(first_failure=((0.0, 0.25), (1.0, 0.25)))
    config = team(30, n=200, flake=0.0, conflict_rate=0.0, p_broken=0.2)
    plain, early = (in_world(config, of) for of in (PLAIN, quarter))
    whole, shorter = seconds(plain), seconds(early)
    for pr, is_broken in enumerate(plain.broken):
        assert shorter[pr] == pytest.approx(whole[pr] * (0.25 if is_broken else 1.0))


def test_a_failure_of_a_pull_request_is_known_after_the_same_share_each_time():
    config = team(30, n=200, flake=0.0, conflict_rate=0.0, p_broken=0.2)
    early = World(first_failure=world.UNIFORM)
    whole, shorter = (seconds(in_world(config, of), times=2) for of in (PLAIN, early))
    shares = {run: shorter[run] / whole[run] for run in whole}
    broken = [pr for pr, is_broken in enumerate(generate(config).broken) if is_broken]
    assert all(shares[2 * pr] == pytest.approx(shares[2 * pr + 1]) for pr in broken)
    assert min(shares.values()) < 0.3
    by_run = seconds(in_world(config, EARLY), times=2)
    assert any(
        by_run[2 * pr] / whole[2 * pr] != pytest.approx(by_run[2 * pr + 1] / whole[2 * pr + 1])
        for pr in broken
    )


def test_only_the_first_failure_is_reported_and_the_earliest_of_several_counts():
    config = team(30, n=60, flake=0.0, conflict_rate=0.0, p_broken=0.5, sends_results=True)
    plain, early = (in_world(config, of) for of in (PLAIN, World(first_failure=world.UNIFORM)))
    both = tuple(pr for pr, is_broken in enumerate(plain.broken) if is_broken)[:2]

    def known(*prs):
        """After what share of its time a run of these ends, and what it reports."""
        run, as_plain = (Run(1, (), prs, 0) for _ in range(2))
        whole = Times(plain, Ledger(plain), is_oracle=False).begin(as_plain, 0.0)
        times = Times(early, Ledger(early), is_oracle=False)
        share = times.begin(run, 0.0) / whole
        return round(share, 9), times.failed_tests(run, is_flake=False, is_hit=False)

    first, second = (known(pr) for pr in both)
    assert first != second
    assert known(*both) in (first, second)
    assert len(known(*both)[1]) == 1


def test_times_have_a_long_tail_and_the_same_mean():
    factors = sorted(BELIEVABLE.time_factor(chance.mix(number)) for number in range(20_000))
    assert sum(factors) / len(factors) == pytest.approx(1.0, abs=0.02)
    assert factors[10_000] < 0.9
    assert 1.8 < factors[19_000] < 2.4
    assert PLAIN.time_factor(1) == 1.0


@pytest.mark.skipif(
    not arrivals.read_table(), reason=f"{arrivals.VARIABLE} has no {arrivals.TABLE}"
)
def test_times_and_hours_are_those_of_the_table():
    runs = list(csv.DictReader(io.StringIO(arrivals.read_table())))
    of_month: dict[tuple[str, str], list[float]] = defaultdict(list)
    hours: dict[str, Counter[int]] = defaultdict(Counter)
    for run in runs:
        hours[run["repo"]][int(run["started_at"][11:13])] += 1
        if run["minutes_start_to_land"]:
            of_month[run["repo"], run["started_at"][:7]].append(float(run["minutes_start_to_land"]))
    usual = {month: median(each) for month, each in of_month.items() if len(each) >= 20}
    ratios = sorted(m / mid for key, mid in usual.items() if mid > 5 for m in of_month[key])
    assert len(ratios) == 429
    for share, value in world.TAIL[1:-1]:
        assert ratios[int(share * (len(ratios) - 1))] == pytest.approx(value, abs=0.01)
    known = [each for each in hours.values() if each.total() > 100]
    for hour, value in enumerate(world.BY_HOUR):
        share = sum(each[hour] / each.total() for each in known) / len(known)
        assert share == pytest.approx(value, abs=0.0011)


def test_a_second_look_at_the_same_tree_takes_the_failed_jobs_only():
    config = team(30, n=150, flake=0.0, conflict_rate=0.0, p_broken=0.2)
    plain, cheaper = (in_world(config, of) for of in (PLAIN, SWITCHES["second_look"]))
    whole, less = (seconds(workload, times=2) for workload in (plain, cheaper))
    for pr, is_broken in enumerate(plain.broken):
        share = world.SECOND_LOOK if is_broken else 1.0
        assert less[2 * pr] == pytest.approx(whole[2 * pr])
        assert less[2 * pr + 1] == pytest.approx(whole[2 * pr + 1] * share)


def test_what_was_built_before_is_tested_faster():
    config = team(30, n=100, flake=0.0, conflict_rate=0.0, p_broken=0.0)
    whole, less = (
        seconds(in_world(config, of), times=2) for of in (PLAIN, SWITCHES["built_before"])
    )
    for run, takes in whole.items():
        assert less[run] == pytest.approx(takes * (world.BUILT_BEFORE if run % 2 else 1.0))


def test_a_run_that_is_cancelled_while_it_builds_leaves_nothing_built():
    workload = in_world(team(30, n=10), SWITCHES["built_before"])
    times = Times(workload, Ledger(workload), is_oracle=False)
    whole = times.begin(first := Run(1, (), (3,), 0), 0.0)
    times.end(first, whole * 0.1, has_failed=False)
    assert not times.built
    times.end(first, whole * 0.3, has_failed=False)
    assert times.built == {3}


def test_flakes_come_in_episodes_at_the_same_mean_rate():
    periods = [BELIEVABLE.flake_rate(0.02, 5, at * world.EPISODE_S + 1) for at in range(4000)]
    assert sum(periods) / len(periods) == pytest.approx(0.02, rel=0.05)
    assert {round(rate, 4) for rate in periods} == {
        round(0.02 * rate * 7 / sum(world.FALSE_REJECTIONS), 4) for rate in world.FALSE_REJECTIONS
    }
    within = {BELIEVABLE.flake_rate(0.02, 5, at * world.EPISODE_S / 50) for at in range(50)}
    assert len(within) == 1
    assert PLAIN.flake_rate(0.02, 5, 1.0) == 0.02


def test_the_last_slots_are_started_when_they_are_needed():
    config = team(1, n=4, p_broken=0.0, conflict_rate=0.0, flake=0.0, d_noise=0.0)
    as_plain, slow = (in_world(config, of) for of in (PLAIN, SWITCHES["slow_share"]))
    for workload in (as_plain, slow):
        workload.arrive[:] = [0.0] * 4
    whole, later = seconds(as_plain, workers=4), seconds(slow, workers=4)
    added = [later[run] - whole[run] for run in range(4)]
    assert added == pytest.approx([0.0, 0.0, 180.0, 180.0])


def test_the_own_runs_of_pull_requests_take_slots_of_the_account():
    config = team(1, n=3, p_broken=0.0, conflict_rate=0.0, flake=0.0, d_noise=0.0)
    workload = in_world(config, World(own_runs=1.0))
    assert own_slots(workload) == 1
    workload.arrive[:] = [60.0, 60.0, 60.0]
    workload.duration[:] = [600.0] * 3
    workload.own_runs[:] = [(0.0, 300.0), (1.0, 900.0), (100.0, 50.0)]
    assert seconds(workload, workers=2) == pytest.approx({0: 600.0, 1: 840.0, 2: 1200.0})
    workload.own_runs.clear()
    assert seconds(workload, workers=2) == pytest.approx({0: 600.0, 1: 600.0, 2: 1200.0})


def test_at_most_the_slots_of_the_queue_are_its_own_though_more_of_the_account_are_free():
    workload = in_world(team(60, n=60), World(own_runs=3.0))
    assert own_slots(workload) == 60
    result = simulate(workload, BASELINES["proto"], 4)
    assert result.busy <= 4 * (max(result.decided) - workload.arrive[0])


def test_arrivals_follow_the_hours_and_keep_the_rate_of_the_busiest():
    config = team(60, n=4000)
    plain, by_hour = (in_world(config, of) for of in (PLAIN, SWITCHES["hours"]))
    hours = [(int(at / 3600) + world.FIRST_HOUR) % 24 for at in by_hour.arrive]
    counts = sorted((hours.count(hour) for hour in range(24)), reverse=True)
    days = by_hour.arrive[-1] / 86400
    assert sum(counts[:8]) / (8 * days) == pytest.approx(60, rel=0.1)
    assert sum(counts[:8]) > 0.7 * len(hours)
    assert sorted(by_hour.arrive) == by_hour.arrive
    assert len(plain.arrive) == len(by_hour.arrive)


def test_the_yardstick_is_one_run_each_where_times_have_a_long_tail():
    plain, tailed = (in_world(team(30, n=80), of) for of in (PLAIN, SWITCHES["time"]))
    assert yardstick(plain).decided == ideal(plain).decided
    assert yardstick(tailed).decided == alone(tailed).decided
    assert all(a <= b for a, b in zip(alone(plain).decided, ideal(plain).decided, strict=True))


def test_an_oracle_merges_what_order_alone_says_in_the_believable_world():
    workload = in_world(team(30, n=100), BELIEVABLE)
    result = simulate(workload, oracle_of("oracle-batch", workload), 24, ORACLE)
    assert (result.wrong_ejects, result.findings.red_main, result.stuck) == (0, 0, 0)


def test_a_cell_names_its_world():
    scenario = Scenario.named("F 60x24, conflicts 10%; believable")
    assert scenario.title == "F 60/h x 24, conflicts 10%; believable"
    with pytest.raises(ValueError, match='no world "unheard of"; there are plain; early failures'):
        Scenario.named("F 60x24; unheard of")
