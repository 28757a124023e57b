"""What the real engine does with submissions whose outcome is known."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from service.mergequeue.engine.config import ConfirmFailures, Hedging, QueueConfig, Toggle
from service.mergequeue.engine.reported import Rates
from service.mergequeue.simulation import stream
from service.mergequeue.simulation.figures import Measured, figures_of
from service.mergequeue.simulation.history import Arrival, Fate, History, history_of
from service.mergequeue.simulation.replay import rates_of, replay
from service.mergequeue.simulation.world import sha_of

START = datetime(2026, 3, 2, 14, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TWO = QueueConfig(concurrency=2)
BREAKS = Fate(breaks=True)


def arrives(pr: int, minute: float = 0, **differences) -> Arrival:
    """A good pull request whose tests take ten minutes."""
    plain = Arrival(START + minute * MINUTE, pr, sha_of("head", str(pr)), ci_s=600.0)
    return replace(plain, **differences)


def a_history(*arrivals: Arrival, **differences) -> History:
    return replace(history_of(arrivals, (), 0.0), **differences)


def played(*arrivals: Arrival, config: QueueConfig = TWO, **differences) -> Measured:
    return replay(a_history(*arrivals, **differences), config, 1)


def test_good_ones_land_in_order_after_their_tests():
    found = played(arrives(1), arrives(2), arrives(3, 5))
    assert found == Measured(
        merged=(1, 2, 3),
        waits_s=(600.0, 600.0, 900.0),
        ci_runs=3,
        ci_s=1800.0,
        restarts=0,
        failed=0,
        failed_good=0,
        cancelled=0,
        unfinished=0,
    )


def test_what_was_let_in_is_not_refused_for_a_budget():
    limited = replace(TWO, open_entries_per_submitter=1)
    assert played(arrives(1), arrives(2), config=limited).merged == (1, 2)


def test_the_worked_example_of_the_package():
    found = played(arrives(1, fate=BREAKS), arrives(2))
    assert (found.merged, found.ci_runs, found.restarts, found.failed) == ((2,), 4, 1, 1)
    assert found.failed_good == 0


def test_who_breaks_with_another_fails_when_it_comes_second():
    second = Fate(breaks_with=frozenset({1}))
    assert played(arrives(1), arrives(2, fate=second)).merged == (1,)
    # Told by the second, true for both: whoever comes later fails.
    swapped = played(arrives(2, fate=second), arrives(1, 30))
    assert (swapped.merged, swapped.failed) == ((2,), 1)


def test_two_that_have_landed_stop_nobody_behind_them():
    pair = [arrives(1), arrives(2, fate=Fate(breaks_with=frozenset({9})))]
    assert played(*pair, arrives(3, 60)).merged == (1, 2, 3)


def test_what_cannot_be_built_fails_without_a_test():
    found = played(arrives(1, fate=Fate(conflicts=True)))
    assert (found.failed, found.failed_good, found.ci_runs) == (1, 0, 0)


def test_ci_with_few_workers_makes_tests_wait():
    found = played(arrives(1), arrives(2), workers=1)
    assert found.waits_s == (600.0, 1200.0)
    assert found.ci_s == 1200.0


def test_a_test_that_is_stopped_costs_what_it_ran():
    """2 is taken out while its test runs: the test ends there."""
    leaves = arrives(2, cancelled_at=START + 4 * MINUTE)
    found = played(arrives(1), leaves)
    assert (found.merged, found.cancelled, found.ci_s) == ((1,), 1, 600.0 + 240.0)


def test_who_has_merged_is_neither_cancelled_nor_submitted_again():
    late = arrives(1, cancelled_at=START + 60 * MINUTE)
    again = arrives(1, 120)
    found = played(late, again)
    assert (found.merged, found.cancelled, found.ci_runs) == ((1,), 0, 1)


def test_a_new_head_takes_the_place_of_the_old_one():
    fixed = arrives(1, 3, head=sha_of("fixed"))
    found = played(arrives(1, fate=BREAKS), fixed)
    assert (found.merged, found.cancelled, found.failed) == ((1,), 1, 0)
    assert found.waits_s == (600.0,)


def test_the_time_to_merge_counts_from_the_first_submission_of_the_head():
    always = QueueConfig(concurrency=1, confirm_failures=ConfirmFailures.OFF)
    history = a_history(arrives(1), arrives(1, 30), flake_rate=0.5)
    waits = {replay(history, always, seed).waits_s for seed in range(20)}
    assert {(600.0,), (2400.0,), ()} == waits


def test_flakes_fail_good_ones_and_confirmation_saves_them():
    history = replace(stream.made_up(1), flake_rate=0.05)
    bare = replay(history, QueueConfig(concurrency=5, confirm_failures=ConfirmFailures.OFF), 1)
    confirmed = QueueConfig(
        concurrency=5, bisection_concurrency=5, confirm_failures=ConfirmFailures.ALWAYS
    )
    careful = replay(history, confirmed, 1)
    assert bare.failed_good > 10
    assert careful.failed_good < bare.failed_good / 4
    assert careful.ci_runs > bare.ci_runs


def test_a_head_that_contained_the_tip_lands_at_once_where_that_is_allowed():
    direct = QueueConfig(concurrency=2, direct_merge_mode=Toggle.ALWAYS)
    fresh = arrives(1, contains_tip=True)
    assert played(fresh, config=direct).waits_s == (0.0,)
    assert played(fresh).waits_s == (600.0,)


def test_a_queue_that_hedges_by_chances_ends():
    hedged = QueueConfig(concurrency=5, bisection_concurrency=5, hedging=Hedging.SPARE_SLOTS)
    assert replay(stream.made_up(2), hedged, 2).unfinished == 0


def test_the_engine_is_told_the_rates_that_the_service_would_have_measured():
    arrivals = [arrives(number) for number in range(99)]
    pair = arrives(99, fate=Fate(breaks_with=frozenset({1})))
    history = history_of([*arrivals, pair], [600.0] * 50 + [1200.0] * 50, 0.1)
    assert rates_of(history) == Rates(flake=0.06, conflict=0.02, minutes={"ci": 15.0})
    assert rates_of(history_of(arrivals, [], 0.0)).flake == Rates().flake


def test_failures_are_foreseen_as_far_as_authors_tell_who_fails():
    told = [arrives(n, author="eve", fate=BREAKS) if n % 5 == 0 else arrives(n) for n in range(200)]
    untold = [replace(one, author="") for one in told]
    assert rates_of(history_of(told, [600.0], 0.0)).foreseen > 0.6
    assert rates_of(history_of(untold, [600.0], 0.0)).foreseen < 0.1


def test_a_test_longer_than_the_timeout_fails():
    config = replace(TWO, testing_timeout_minutes=60, confirm_failures=ConfirmFailures.OFF)
    found = played(arrives(1, ci_s=7200.0), config=config)
    assert (found.failed, found.waits_s) == (1, ())


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.soak) for n in (2, 3))])
def test_one_seed_is_one_answer_and_everybody_ends(seed):
    history = stream.made_up(seed)
    config = QueueConfig(concurrency=5, bisection_concurrency=5)
    heard: list[int] = []
    found = replay(history, config, seed, heard.append)
    assert found == replay(history, config, seed)
    assert found.unfinished == 0
    assert len(found.merged) + found.failed + found.cancelled == len(history.arrivals)
    assert heard == list(range(1, len(history.arrivals) + 1))
    bad = {one.pr for one in history.arrivals if one.fate.breaks}
    assert not bad & set(found.merged)


def test_more_slots_merge_sooner():
    history = stream.made_up(4)
    few, many = (
        figures_of([replay(history, QueueConfig(concurrency=slots), 4)]) for slots in (3, 10)
    )
    assert few.time_to_merge_p50_s is not None
    assert many.time_to_merge_p50_s is not None
    assert many.time_to_merge_p50_s < few.time_to_merge_p50_s


def test_nobody_comes_and_nothing_happens():
    found = figures_of([played()])
    assert (found.merged, found.time_to_merge_p50_s, found.ci_runs_per_merge) == (0, None, None)


def test_figures_of_several_queues_are_told_as_one():
    one = played(arrives(1))
    two = played(arrives(1, ci_s=1200.0), arrives(2, fate=BREAKS))
    found = figures_of([one, two])
    assert (found.merged, found.time_to_merge_p50_s, found.failed) == (2, 900.0, 1)
    # The failure of the second one is confirmed by another run.
    assert found.ci_minutes == 10 + 20 + 10 + 10
    assert found.ci_runs_per_merge == 2.0
