"""The chance of failing agrees with how often pull requests of that chance do fail."""

import math
import random
from collections import defaultdict

import pytest

from service.mergequeue.engine.explaining import estimates
from service.mergequeue.engine.explaining.estimates import PRIOR, OwnCi, Signs, Track

SUBMISSIONS = 6000
LEARNING = 500
"""Submissions of a world that are counted and not yet predicted."""

TOLERANCE = 0.03
"""Between predicted and observed failure rate of a bucket, beside three standard errors."""

EDGES = (0.03, 0.06, 0.12, 0.25, 0.5)
BUCKET_MIN = 50

WORLDS = {
    # seed: base rate, then by how much (in log odds) a bad author, each earlier failure,
    # failing own checks and a large change move it
    1: (0.05, 1.0, 0.6, 1.2, 0.8),
    2: (0.10, 0.0, 1.0, 0.0, 0.0),
    3: (0.02, 1.5, 0.3, 2.0, 0.0),
    4: (0.20, 0.5, 0.0, 0.5, 1.0),
    5: (0.05, 0.0, 0.0, 0.0, 0.0),
}


def samples(seed):
    """(signs, true risk, whether it failed) of a world's submissions, in order."""
    base, author_is_bad, per_failure, ci_is_red, is_large = WORLDS[seed]
    chance = random.Random(seed)
    failed_before: defaultdict[int, int] = defaultdict(int)
    for _ in range(SUBMISSIONS):
        author = chance.randrange(10)
        pr = chance.randrange(1500)
        own_ci = chance.choices(list(OwnCi), [8, 1, 1])[0]
        size = int(math.exp(chance.gauss(4, 1.5)))
        signs = Signs(f"author-{author}", failed_before[pr], own_ci, None, size)
        odds = math.log(base / (1 - base)) + author_is_bad * (author < 2)
        odds += per_failure * min(failed_before[pr], 3) + ci_is_red * (own_ci is OwnCi.FAILING)
        odds += is_large * (size > 1000)
        risk = 1 / (1 + math.exp(-odds))
        failed = chance.random() < risk
        yield signs, risk, failed
        failed_before[pr] = failed_before[pr] + 1 if failed else 0


@pytest.mark.parametrize("seed", WORLDS)
def test_predicted_and_observed_rates_agree_in_every_bucket(seed):
    track = Track()
    buckets = defaultdict(list)
    errors, errors_of_base, failures = 0.0, 0.0, 0
    for number, (signs, _, failed) in enumerate(samples(seed)):
        if number >= LEARNING:
            p_fail = track.p_fail(signs)
            buckets[sum(p_fail > edge for edge in EDGES)].append((p_fail, failed))
            errors += (p_fail - failed) ** 2
            errors_of_base += (failures / number - failed) ** 2
        track.count(signs, failed=failed)
        failures += failed
    for found in buckets.values():
        if len(found) < BUCKET_MIN:
            continue
        predicted = sum(p_fail for p_fail, _ in found) / len(found)
        observed = sum(failed for _, failed in found) / len(found)
        error = 3 * math.sqrt(predicted * (1 - predicted) / len(found))
        assert abs(predicted - observed) <= TOLERANCE + error, (predicted, observed, len(found))
    is_even = not any(WORLDS[seed][1:])
    # Where nobody differs, signs can only add noise: very little of it.
    assert errors < errors_of_base * (1.01 if is_even else 1.0)


@pytest.mark.parametrize("seed", [1, 3])
def test_who_is_more_at_risk_is_told_to_be_so(seed):
    track = Track()
    told = []
    for signs, risk, failed in samples(seed):
        told.append((risk, track.p_fail(signs)))
        track.count(signs, failed=failed)
    told = told[LEARNING:]
    told.sort()
    tenth = len(told) // 10
    low = sum(p_fail for _, p_fail in told[:tenth]) / tenth
    high = sum(p_fail for _, p_fail in told[-tenth:]) / tenth
    assert high > 2 * low


def test_nothing_known_is_the_prior_and_little_known_stays_near_it():
    track = Track()
    nobody = Signs("alice")
    assert track.p_fail(nobody) == pytest.approx(PRIOR)
    track.count(nobody, failed=True)
    assert PRIOR < track.p_fail(nobody) < 4 * PRIOR
    assert track.p_fail(Signs("bob", 1)) < track.p_fail(nobody)


def test_a_sign_moves_the_chance_of_those_that_share_it():
    track = Track()
    old, young = Signs("alice", age_s=40 * estimates.DAY_S), Signs("alice", age_s=60.0)
    for _ in range(200):
        track.count(old, failed=True)
        track.count(young, failed=False)
    assert track.p_fail(young) < track.p_fail(Signs("alice")) < track.p_fail(old)
    assert track.p_fail(Signs("alice", age_s=31 * estimates.DAY_S)) == track.p_fail(old)


def test_a_chance_is_never_certain():
    track = Track()
    for _ in range(500):
        track.count(Signs("always", 3), failed=True)
        track.count(Signs("never"), failed=False)
    assert track.p_fail(Signs("always", 3)) == estimates.P_FAIL_MAX
    assert track.p_fail(Signs("never")) == estimates.P_FAIL_MIN


def test_a_percentile_lies_between_the_two_nearest():
    assert estimates.percentile([10.0], 0.9) == 10.0
    assert estimates.percentile([0.0, 10.0, 20.0], 0.25) == 5.0
