"""A made-up stream of submissions: one seed is one stream."""

import math
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from service.mergequeue.engine import targets
from service.mergequeue.engine.targets import ALL, Targets
from service.mergequeue.simulation.history import Arrival, Fate, History, history_of
from service.mergequeue.simulation.world import sha_of

SUBMISSIONS = 400
PER_HOUR = 10.0
"""A team's day: submissions come at random instants."""

BREAKS = 0.04
BREAKS_WITH_ANOTHER = 0.03
NEIGHBORS = 10
"""Changes that break each other come close together: within so many submissions."""

FLAKES = 0.02
CI_MEDIAN_S = 20 * 60.0
CI_SPREAD = 0.15
"""Standard deviation of the logarithm of a test's duration."""

AREAS = 24
EVERYTHING = 0.01
"""Areas of the repository, two of which a change touches; some touch everything."""

AUTHORS = 12
BEGIN = datetime(2026, 1, 5, 8, tzinfo=UTC)


def made_up(seed: int) -> History:
    """400 submissions of a team over two days: 4 % break, 3 % with another, 2 % of tests flake."""
    chance = random.Random(seed)
    at = BEGIN
    arrivals: list[Arrival] = []
    for pr in range(1, SUBMISSIONS + 1):
        at += timedelta(seconds=chance.expovariate(PER_HOUR / 3600))
        touched = _targets(chance)
        arrivals.append(
            Arrival(
                at=at,
                pr=pr,
                head=sha_of("head", str(pr)),
                author=f"author-{chance.randrange(AUTHORS)}",
                targets=touched,
                fate=_fate(chance, touched, arrivals[-NEIGHBORS:]),
                ci_s=CI_MEDIAN_S * math.exp(chance.gauss(0, CI_SPREAD)),
            )
        )
    return history_of(arrivals, (), FLAKES)


def _targets(chance: random.Random) -> Targets:
    if chance.random() < EVERYTHING:
        return ALL
    return targets.of(f"//area-{number}" for number in chance.sample(range(AREAS), 2))


def _fate(chance: random.Random, touched: Targets, neighbors: Sequence[Arrival]) -> Fate:
    """Only changes that share a target break each other."""
    breaks = chance.random() < BREAKS
    with_another = chance.random() < BREAKS_WITH_ANOTHER
    meets = [one.pr for one in neighbors if targets.meet(touched, one.targets)]
    partners = [chance.choice(meets)] if with_another and meets else []
    return Fate(breaks, frozenset(partners))
