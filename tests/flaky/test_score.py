"""The score and the noise (docs/design/detector.md 6), to four digits.

See docs/design/detector.md 5.
"""

from math import exp, log

import pytest

from service.testhealth.detector import noise, score
from service.testhealth.detector.score import Noise, Tallies, Tally

LIMIT = score.THRESHOLDS["normal"]


@pytest.mark.parametrize(
    ("weight", "results", "eps", "ratio"),
    [
        (1, 1, 1e-4, 361.4),
        (1, 14, 1e-4, 104.7),
        (2, 350, 1e-4, 100.3),
        (2, 40, 1e-3, 108.3),
        (3, 155, 1e-3, 100.04),
        (1, 48, 1e-4, 30.22),
        (0, 10, 1e-3, 0.7861),
        (1.05, 150, 1e-4, 9.567),
        (2.05, 203, 1e-4, 419.7),
        (0, 40, 1e-3, 0.6014),
    ],
)
def test_the_ratio_is_that_of_the_document(weight, results, eps, ratio):
    assert exp(score.log_ratio(Tally(weight, results), eps)) == pytest.approx(ratio, rel=5e-4)


@pytest.mark.parametrize(("weight", "results_max"), [(1, 14), (2, 350), (3, 1291)])
def test_so_many_events_flag_in_at_most_so_many_runs(weight, results_max):
    def flags(results):
        return score.log_score(Tallies(Tally(weight, results)), noise.FLOOR) >= log(LIMIT)

    assert flags(results_max)
    assert not flags(results_max + 1)


def test_more_weight_than_results_counts_as_so_many_results():
    assert score.log_ratio(Tally(2.5, 1), 1e-4) == score.log_ratio(Tally(2.5, 3), 1e-4)


def test_what_noise_explains_never_speaks_for_flakiness():
    assert score.log_ratio(Tally(1, 10_000), 1e-4) <= 0
    assert score.log_ratio(Tally(0, 0), 1e-4) == 0


def test_scores_without_bound_are_shown_with_one():
    assert score.shown_score(10_000.0) == score.SCORE_MAX
    assert score.shown_score(0.0) == 1


@pytest.mark.parametrize(
    ("failed", "passed", "streak", "chance"),
    [(0, 140, 3, 2.695e-7), (3, 140, 5, 4.086e-8), (0, 17, 3, 4.938e-5), (0, 16, 3, 5.548e-5)],
)
def test_the_chance_of_a_streak(failed, passed, streak, chance):
    assert score.streak_probability(failed, passed, streak) == pytest.approx(chance, rel=5e-4)


def test_a_repository_without_evidence_has_the_least_noise():
    assert noise.measure(0, 0, []) == noise.FLOOR


def test_noise_grows_with_the_events_of_sound_tests_alone():
    sound = [Tallies(Tally(1, 1000)), Tallies(b=Tally(1, 100))] * 60
    flaky = Tallies(Tally(30, 1000))
    found = noise.measure(100_000, 20_000, [*sound, flaky])
    assert found.a == pytest.approx(2 * 60.3 / (6000 + 100_000 - 1000))
    assert found.b == pytest.approx(2 * 62 / 24_000)


def test_noise_has_a_ceiling():
    seen_once = [
        Tallies(Tally(1, 300)),
        Tallies(b=Tally(1, 60)),
        *[Tallies(c=Tally(1, 9))] * 2,
    ] * 900
    assert noise.measure(150_000, 30_000, seen_once) == noise.CEILING


def test_the_first_days_borrow_the_noise_of_the_fourth():
    assert [noise.day_in_force(day, 100, 200) for day in (100, 102, 103, 150)] == [
        *(103, 103, 103, 150),
    ]
    assert noise.day_in_force(100, 100, 101) == 101
    assert noise.in_force(150, 100, 200, {150: Noise(1e-3, 2e-3)}) == Noise(1e-3, 2e-3)
    assert noise.in_force(151, 100, 200, {}) == noise.FLOOR
