"""Pull requests drawn from a seed, with the truth about them.

The order of the draws is part of the published figures: a new kind of draw gets its own stream.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.mergequeue.engine.explaining import rates
from tests.bench.scheduling.interface import NORMAL, URGENT, PrView
from tests.bench.scheduling.world import PLAIN, World

Floats = NDArray[np.float64]
Targets = frozenset[int] | None
Rng = np.random.Generator

MAIN_STREAM, URGENT_STREAM, SHORT_STREAM, AUTHOR_STREAM = 0x5EED, 0x0461, 0x5407, 0xA074
OWN_STREAM = 0x0337
MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0
RISK_MIN, RISK_MAX = 1e-4, 0.98
OWN_BEFORE_S = 2 * HOUR_S
"""Assumption: how long before its submission a pull request runs its own CI, on average."""

SAMPLED_EVERY = 20
"""Each so manieth pull request is looked at to measure how many pairs may conflict."""


@dataclass(frozen=True)
class WorkloadConfig:
    """What to draw. Seconds, except `rate` (arrivals an hour).

    Durations are log-normal (`d_median`, `d_sigma`) with noise from run to run (`d_noise`) and
    an error of the estimate (`d_hat_err`). `conflict_rate` is the mean number of real conflicts
    of one with earlier ones among the last `conflict_window` arrivals. Numbers of targets are
    geometric, their popularity falls with `zipf`; `p_all` touch all of them. `burst` > 1:
    arrivals in bursts of that mean size; `diurnal`: 0.2 to 1.8 times the rate over 24 hours.
    `outage`: so long CI fails every run that it touches, from the middle arrival on. `gaps`: times
    between arrivals with a mean of 1, over and over, in place of drawn ones. `short_share`: share
    of pull requests whose CI takes `short_median`. Of the `authors`, if any, the first `bots` are
    programs; they send half of the pull requests. `sends_results`: CI sends which tests failed.
    `world`: what CI is like (world.py).
    """

    n: int = 2000
    rate: float = 100.0
    seed: int = 1
    d_median: float = 1800.0
    d_sigma: float = 0.5
    d_noise: float = 0.10
    d_hat_err: float = 0.25
    p_broken: float = 0.04
    risk_conc: float = 1.0
    conflict_rate: float = 0.03
    conflict_window: int = 50
    flake: float = 0.02
    full_suite: bool = False
    n_targets: int = 400
    targets_mean: float = 3.0
    zipf: float = 0.8
    p_all: float = 0.02
    use_targets: bool = True
    p_cancel: float = 0.0
    cancel_mean: float = 1800.0
    burst: float = 1.0
    diurnal: bool = False
    p_urgent: float = 0.0
    outage: float = 0.0
    gaps: tuple[float, ...] = ()
    short_share: float = 0.0
    short_median: float = 300.0
    authors: int = 0
    bots: int = 0
    sends_results: bool = False
    world: World = PLAIN

    @property
    def minutes(self) -> float:
        """How long a run usually takes."""
        short = self.short_share * self.short_median
        return (short + (1 - self.short_share) * self.d_median) / MINUTE_S


@dataclass
class Workload:
    """Pull requests and their truth, by number from 0.

    `conflicts` lists real ones in both directions; `potential_rate` is the measured chance that
    two close arrivals share a target, `pair_prior` that such a pair really conflicts. `own_runs`
    are those on the branches of pull requests: (second at which it is asked for, seconds it takes).
    """

    config: WorkloadConfig
    arrive: list[float]
    duration: list[float]
    broken: list[bool]
    conflicts: list[list[int]]
    views: list[PrView]
    cancel_at: dict[int, float]
    targets: list[Targets]
    potential_rate: float
    pair_prior: float
    own_runs: list[tuple[float, float]]

    @property
    def foreseen(self) -> float:
        """The share of the expected failures that the estimates foresee, as a queue measures it.

        1 if nothing will fail.
        """
        risks = [1.0 - view.p_ok for view in self.views]
        return rates.foreseen_of(risks) / sum(risks) if any(risks) else 1.0

    def may_conflict(self, a: int, b: int) -> bool:
        """Whether the two share a target."""
        return _meet(self.targets[a], self.targets[b])

    def is_hit(self, start: float, end: float) -> bool:
        """Whether a run between these moments meets the outage of CI."""
        begins = self.arrive[len(self.arrive) // 2]
        return self.config.outage > 0 and start < begins + self.config.outage and end > begins


@dataclass
class _Conflicts:
    """Real conflicts, and what was counted while they were drawn."""

    of: list[list[int]]
    potential_rate: float
    pair_prior: float


def generate(config: WorkloadConfig) -> Workload:
    """Draw a workload; the same configuration gives the same one."""
    rng = _stream(config, MAIN_STREAM)
    t = _arrivals(config, rng)
    d = config.d_median * np.exp(rng.normal(0.0, config.d_sigma, config.n))
    d *= _shortening(config)
    d_hat = d * np.exp(rng.normal(0.0, config.d_hat_err, config.n))
    risk = _risks(config, rng)
    broken = rng.random(config.n) < risk
    targets = _targets(config, rng)
    conflicts = _conflicts(config, rng, targets)
    cancel_at = _cancellations(config, rng, t)
    urgent = _urgent(config)
    authors = _authors(config)
    views = [
        PrView(
            id=i,
            t=float(t[i]),
            targets=targets[i] if config.use_targets else None,
            p_ok=float(1.0 - risk[i]),
            d_hat=float(d_hat[i]),
            priority=URGENT if urgent[i] else NORMAL,
            author=int(authors[i]),
        )
        for i in range(config.n)
    ]
    return Workload(
        config=config,
        arrive=t.tolist(),
        duration=d.tolist(),
        broken=broken.tolist(),
        conflicts=conflicts.of,
        views=views,
        cancel_at=cancel_at,
        targets=targets,
        potential_rate=conflicts.potential_rate,
        pair_prior=conflicts.pair_prior,
        own_runs=_own_runs(config, t, d),
    )


def _arrivals(config: WorkloadConfig, rng: Rng) -> Floats:
    """Seconds of arrival: drawn at unit rate, stretched afterwards."""
    gaps = rng.exponential(1.0, config.n)
    if config.gaps:
        gaps = np.resize(np.asarray(config.gaps), config.n)
    if config.burst > 1.0:
        # Most gaps shrink to nearly nothing, the rest grow so that the mean stays.
        leads = rng.random(config.n) < 1.0 / config.burst
        gaps = np.where(leads, gaps * config.burst, 1e-6)
    t: Floats = np.cumsum(gaps) * (HOUR_S / config.rate)
    if config.diurnal:
        # Time runs so that the local rate follows 1 + 0.8 sin(2 pi t / 24 h).
        grid = np.linspace(0.0, t[-1] * 1.2 + DAY_S, 20000)
        cum = grid - 0.8 * DAY_S / (2 * np.pi) * (np.cos(2 * np.pi * grid / DAY_S) - 1.0)
        t = np.interp(t, cum, grid)
    return np.asarray(config.world.time_of_day(t.tolist()))


def _risks(config: WorkloadConfig, rng: Rng) -> Floats:
    """The chance of each to be broken; their mean is `p_broken`."""
    p = config.p_broken
    if not 0.0 < p < 1.0:
        return np.full(config.n, min(max(p, 0.0), 1.0))
    drawn = rng.beta(p * config.risk_conc, (1.0 - p) * config.risk_conc, config.n)
    risk = np.clip(drawn, RISK_MIN, RISK_MAX)
    risk *= p / max(risk.mean(), 1e-12)
    return np.clip(risk, RISK_MIN, RISK_MAX)


def _targets(config: WorkloadConfig, rng: Rng) -> list[Targets]:
    weights = 1.0 / np.arange(1, config.n_targets + 1) ** config.zipf
    weights /= weights.sum()
    counts = rng.geometric(1.0 / config.targets_mean, config.n)
    picks = rng.choice(config.n_targets, size=int(counts.sum()), p=weights)
    touches_all = rng.random(config.n) < config.p_all
    ends = np.cumsum(counts)
    return [
        None if is_all else frozenset(int(x) for x in picks[end - count : end])
        for is_all, end, count in zip(touches_all, ends, counts, strict=True)
    ]


def _conflicts(config: WorkloadConfig, rng: Rng, targets: list[Targets]) -> _Conflicts:
    """Real conflicts, only between those that share a target and arrive close together."""
    n = config.n
    found: list[list[int]] = [[] for _ in range(n)]
    counts = rng.poisson(config.conflict_rate, n)
    u = rng.random(n)
    may_pairs = real_pairs = seen_pairs = 0
    for i in range(n):
        first = max(0, i - config.conflict_window)
        is_sampled = i % SAMPLED_EVERY == 0
        if not is_sampled and not counts[i]:
            continue
        candidates = [j for j in range(first, i) if _meet(targets[i], targets[j])]
        if is_sampled:
            may_pairs += len(candidates)
            seen_pairs += i - first
        for c in range(min(int(counts[i]), len(candidates))):
            j = candidates.pop(int(u[i] * 7919 * (c + 1)) % len(candidates))
            found[i].append(j)
            found[j].append(i)
            real_pairs += 1
    potential_rate = may_pairs / seen_pairs if seen_pairs else 0.0
    pairs = potential_rate * min(config.conflict_window, max(n - 1, 1)) * n
    return _Conflicts(found, potential_rate, real_pairs / pairs if pairs else 0.0)


def _cancellations(config: WorkloadConfig, rng: Rng, t: Floats) -> dict[int, float]:
    if not config.p_cancel:
        return {}
    who = np.nonzero(rng.random(config.n) < config.p_cancel)[0]
    after = rng.exponential(config.cancel_mean, len(who))
    return {int(i): float(t[int(i)] + x) for i, x in zip(who, after, strict=True)}


def _urgent(config: WorkloadConfig) -> NDArray[np.bool_]:
    return _stream(config, URGENT_STREAM).random(config.n) < config.p_urgent


def _shortening(config: WorkloadConfig) -> Floats:
    """What the time of each one's CI is multiplied by."""
    is_short = _stream(config, SHORT_STREAM).random(config.n) < config.short_share
    return np.where(is_short, config.short_median / config.d_median, 1.0)


def _authors(config: WorkloadConfig) -> NDArray[np.int64]:
    if not config.authors:
        return np.zeros(config.n, dtype=np.int64)
    rng = _stream(config, AUTHOR_STREAM)
    is_by_bot = rng.random(config.n) < 0.5
    bot, person = (
        rng.integers(0, config.bots, config.n),
        rng.integers(config.bots, config.authors, config.n),
    )
    return np.where(is_by_bot, bot, person)


def _own_runs(config: WorkloadConfig, t: Floats, d: Floats) -> list[tuple[float, float]]:
    """Runs of CI before the pull requests are submitted, in order of time."""
    world = config.world
    if not world.own_runs:
        return []
    rng = _stream(config, OWN_STREAM)
    counts = rng.geometric(1.0 / world.own_runs, config.n)
    of = np.repeat(np.arange(config.n), counts)
    at = t[of] - rng.exponential(OWN_BEFORE_S, len(of))
    takes = d[of] * [world.time_factor(key) for key in rng.integers(1 << 62, size=len(of)).tolist()]
    return sorted(own for own in zip(at.tolist(), takes.tolist(), strict=True) if own[0] >= 0)


def _stream(config: WorkloadConfig, name: int) -> Rng:
    return np.random.default_rng(np.random.SeedSequence([config.seed, name]))


def _meet(a: Targets, b: Targets) -> bool:
    return a is None or b is None or not a.isdisjoint(b)
