"""Compute how much better flakiness explains the evidence than noise (docs/design/detector.md 5).

Beta functions in logarithms; no history, no settings of a repository.
"""

from dataclasses import dataclass
from math import ceil, exp, lgamma, log, log1p

RATE_A, RATE_B = 0.3, 8.0
"""The prior of an unknown rate of disagreement, Beta(0.3, 8): mostly small."""

THRESHOLDS = {"strict": 1000.0, "normal": 100.0, "eager": 30.0}
"""K by the setting `sensitivity`: a sound test reaches K with a probability of about 1 / K."""

SCORE_MAX = 1e9
"""Scores are shown and stored up to here; decisions compare logarithms, which have no bound."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The contents of one stream: the events' total weight, and results among which they fell."""

    weight: float
    results: int


NOTHING = Tally(0.0, 0)


@dataclass(frozen=True, slots=True)
class Noise:
    """Probability that a sound test disagrees: by stream A per passing result, by B per verdict."""

    a: float
    b: float


def log_ratio(tally: Tally, eps: float) -> float:
    """LR(D, N, eps) as a logarithm; at most 0 if noise alone would bring as much."""
    weight, results = tally.weight, max(tally.results, ceil(tally.weight))
    flaky = _log_beta(RATE_A + weight, RATE_B + results - weight) - _log_beta(RATE_A, RATE_B)
    noise = weight * log(eps) + (results - weight) * log1p(-eps)
    ratio = flaky - noise
    return min(ratio, 0.0) if weight <= results * eps else ratio


def log_score(a: Tally, b: Tally, noise: Noise) -> float:
    """S of both streams together, as a logarithm."""
    return log_ratio(a, noise.a) + log_ratio(b, noise.b)


def shown_score(log_of_score: float) -> float:
    """S itself, at most SCORE_MAX."""
    return min(SCORE_MAX, exp(min(log_of_score, log(SCORE_MAX) + 1)))


def streak_probability(failed: int, passed: int, streak: int) -> float:
    """The chance q of so many failures in a row at the rate of the verdicts before."""
    rate_a, rate_b = RATE_A + failed, RATE_B + passed
    return exp(_log_beta(rate_a + streak, rate_b) - _log_beta(rate_a, rate_b))


def _log_beta(a: float, b: float) -> float:
    """The Beta function B(a, b), as a logarithm."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)
