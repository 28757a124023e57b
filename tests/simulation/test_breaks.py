"""200 breaks of a target branch, and as many flakes, in virtual time: the pure search alone.

A delayed check runs on the newest commit whenever it is free, so each of its runs has a few
landings behind it. Its probes run side by side and each takes about one CI time, as does the test
of the revert in the queue.
"""

import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from service.mergequeue.breaks import search
from service.mergequeue.breaks.search import (
    Blame,
    Break,
    Decision,
    End,
    Result,
    Stop,
    TargetCommit,
    Test,
)
from service.mergequeue.engine.config import QueueConfig
from service.vocabulary import RequiredName, Sha

SEEDS = int(os.environ.get("HEADGATE_BREAK_SEEDS", "200"))
FLAKES = (0.0, 0.02, 0.05, 0.1)
"""How often a run of the check fails without a reason; drawn for each history."""

LANDINGS_A_RUN = (1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 8, 12)
"""How many commits landed between two runs of the delayed check; drawn for each history."""

SLOWEST = 1.1
"""A run takes from .9 to 1.1 CI times."""

Ran = Callable[[int], bool]


@dataclass
class Played:
    """The end of a search, its time in CI times, and the probes it used."""

    decision: Decision
    rounds: int
    runs: int
    landings: int


def commits(count: int) -> tuple[TargetCommit, ...]:
    return tuple(TargetCommit(Sha(f"c{each}"), Sha(f"t{each}"), each) for each in range(count))


def opened(landings: int) -> Break:
    runs_max = QueueConfig().red_target_runs
    return Break("b", RequiredName("slow"), "", commits(landings + 1), runs_max, True)


def play(one: Break, fails: Ran) -> Played:
    """Play a search to its end; the probes of a round end together."""
    rounds = 0
    while True:
        decision = search.decide(one)
        if not isinstance(decision, Test):
            assert decision is not None, "no probe runs, and it waits"
            return Played(decision, rounds, len(one.probes), one.last)
        rounds += 1
        ids = tuple(f"p{len(one.probes) + each}" for each in range(len(decision.places)))
        one = search.with_probes(one, ids, decision.places)
        done = (
            replace(each, result=Result.RED if fails(each.place) else Result.GREEN)
            if each.result is None
            else each
            for each in one.probes
        )
        one = replace(one, probes=tuple(done))
        assert len(one.probes) <= one.runs_max


def test_the_culprits_of_200_breaks_are_found_within_two_ci_times() -> None:
    right = wrong = in_time = small = 0
    ends: Counter[str] = Counter()
    for seed in range(SEEDS):
        chance = random.Random(seed)
        flake, landings = chance.choice(FLAKES), chance.choice(LANDINGS_A_RUN)
        culprit = chance.randrange(1, landings + 1)

        def fails(place: int, culprit: int = culprit, flake: float = flake) -> bool:
            return place >= culprit or chance.random() < flake  # noqa: B023 - played at once

        played = play(opened(landings), fails)
        if isinstance(played.decision, Blame):
            right += played.decision.place == culprit
            wrong += played.decision.place != culprit
        else:
            assert isinstance(played.decision, Stop)
            ends[played.decision.end.value] += 1
        if 2 * landings + 2 <= QueueConfig().red_target_runs:
            small += 1
            # One CI time for the search, and one for the queue's test of the revert.
            in_time += played.rounds == 1
    # Two flakes of the commit before the culprit.
    assert wrong <= 0.01 * SEEDS, ends
    assert right >= 0.98 * SEEDS, ends
    assert in_time >= 0.9 * small, (in_time, small)


def test_no_flake_is_blamed_on_a_landing() -> None:
    ends: Counter[str] = Counter()
    runs = 0
    for seed in range(SEEDS):
        chance = random.Random(seed)
        flake, landings = chance.choice(FLAKES[1:]), chance.choice(LANDINGS_A_RUN)

        def fails(_place: int, flake: float = flake) -> bool:
            return chance.random() < flake  # noqa: B023 - played at once

        played = play(opened(landings), fails)
        assert isinstance(played.decision, Stop), (seed, played)
        ends[played.decision.end.value] += 1
        runs += played.runs
    assert ends[End.FLAKE.value] >= 0.95 * SEEDS, ends
