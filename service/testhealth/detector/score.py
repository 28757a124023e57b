"""Compute how much better flakiness explains the evidence than noise (docs/design/detector.md 5).

Beta functions in logarithms; no history, no settings of a repository.
"""

from dataclasses import dataclass
from math import ceil, exp, lgamma, log, log1p

RATE_A, RATE_B = 0.3, 8.0
"""The prior of an unknown rate of disagreement, Beta(0.3, 8): mostly small."""

THRESHOLDS = {"strict": 1000.0, "normal": 100.0, "eager": 30.0}
"""K by the setting `sensitivity`: a sound test reaches K with a probability of about 1 / K."""

PUSHES_FROM = 10.0

PLAN_NOISE, PLAN_NOISE_FACTOR = 5e-3, 10.0
"""Probability that a sound test disagrees in one plan of repeats; or so many times noise A."""

LONG_FROM = 3.0
"""So many times K is needed in the long window: one more look makes few more tests flaky."""

RATE_LONG = (0.5, 100.0)
"""The prior of the long window, Beta(0.5, 100): it looks for tests that fail seldom."""

SCORE_MAX = 1e9
"""Scores are shown and stored up to here; decisions compare logarithms, which have no bound."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The contents of one stream: the events' total weight, and results among which they fell."""

    weight: float
    results: int


NOTHING = Tally(0.0, 0)


@dataclass(frozen=True, slots=True)
class RepeatTally:
    """The contents of stream R: weight, rounds and plans.

    `log_rounds` is the mean logarithm of the rounds of the plans that disagreed.
    """

    weight: float = 0.0
    results: int = 0
    plans: int = 0
    log_rounds: float = 0.0


NO_REPEATS = RepeatTally()


@dataclass(frozen=True, slots=True)
class Tallies:
    """The contents of the streams."""

    a: Tally = NOTHING
    b: Tally = NOTHING
    c: Tally = NOTHING
    r: RepeatTally = NO_REPEATS

    @property
    def weight(self) -> float:
        """All of it together."""
        return self.a.weight + self.b.weight + self.c.weight + self.r.weight


@dataclass(frozen=True, slots=True)
class Noise:
    """Probability that a sound test disagrees: by stream B per verdict, else per passing result."""

    a: float
    b: float
    c: float = 5e-4


def log_ratio(tally: Tally, eps: float, prior: tuple[float, float] = (RATE_A, RATE_B)) -> float:
    """LR(D, N, eps) as a logarithm; at most 0 if noise alone would bring as much."""
    weight, results = tally.weight, max(tally.results, ceil(tally.weight))
    rate_a, rate_b = prior
    flaky = _log_beta(rate_a + weight, rate_b + results - weight) - _log_beta(rate_a, rate_b)
    noise = weight * log(eps) + (results - weight) * log1p(-eps)
    ratio = flaky - noise
    return min(ratio, 0.0) if weight <= results * eps else ratio


def log_score(
    tallies: Tallies, noise: Noise, prior: tuple[float, float] = (RATE_A, RATE_B)
) -> float:
    """S of all streams together, as a logarithm.

    Stream C is weak: its ratio counts from PUSHES_FROM on, and divided by it. So it makes a sound
    test reach K hardly more often, and a repository without its events loses nothing.
    """
    both_ways = log_ratio(tallies.a, noise.a, prior)
    if tallies.r.weight:
        both_ways = max(both_ways, _log_ratio_repeated(tallies, noise.a, prior))
    strong = both_ways + log_ratio(tallies.b, noise.b, prior)
    if not tallies.c.weight:
        return strong
    return strong + max(0.0, log_ratio(tallies.c, noise.c, prior) - log(PUSHES_FROM))


def _log_ratio_repeated(tallies: Tallies, eps: float, prior: tuple[float, float]) -> float:
    """LR of streams A and R together, which show the same rate, as a logarithm.

    A plan disagrees by noise with a probability of its own, however many rounds it has: they share
    a machine and a minute. Of a flaky test the chance of exactly one failed round counts, which is
    less than that of any.
    """
    a, r, (rate_a, rate_b) = tallies.a, tallies.r, prior
    weight, results = a.weight + r.weight, a.results + r.results
    results = max(results, ceil(weight))
    flaky = _log_beta(rate_a + weight, rate_b + results - weight) - _log_beta(rate_a, rate_b)
    flaky += r.weight * r.log_rounds
    by_plan = max(PLAN_NOISE, PLAN_NOISE_FACTOR * eps)
    noise = a.weight * log(eps) + max(0.0, a.results - a.weight) * log1p(-eps)
    noise += r.weight * log(by_plan) + max(0.0, r.plans - r.weight) * log1p(-by_plan)
    return flaky - noise


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
