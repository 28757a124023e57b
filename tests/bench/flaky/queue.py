"""What a queue makes of the detector's knowledge: one pull request after the other, tested once.

A failure is excused when all tests that failed are flagged (automatic quarantine of both
statuses). Without that knowledge every failure removes the pull request.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.testhealth.detector import evidence
from service.testhealth.detector.health import Health
from service.vocabulary import Health as Status
from tests.bench.flaky.figures import day_of
from tests.bench.flaky.uploads import Ci
from tests.bench.flaky.worlds import Run, World

BAD_SHARE, REGRESSIONS_MAX = 0.08, 5
MINUTES = 30
"""Of CI for one test of a pull request."""


@dataclass(frozen=True)
class QueueOutcome:
    """Counts of pull requests: (without knowledge, with it) where both can differ.

    `inexcusable`: bad ones that were merged although a regression hit a test that was not
    quarantined; that must never be. `shielded`: bad ones all of whose regressions hit
    quarantined tests.
    """

    good: int
    bad: int
    removed: tuple[int, int]
    merged_bad: int
    inexcusable: int
    shielded: int
    runs: tuple[int, int]


def played(world: World, judged: Mapping[int, Health]) -> QueueOutcome:
    """Every pull request of the world goes through the queue after its last push."""
    ci, chance = Ci(world), np.random.default_rng([world.seed, 3])
    good = bad = merged_bad = inexcusable = shielded = 0
    removed, runs = [0, 0], [0, 0]
    for number, last in enumerate(run for run in world.runs if run.is_last):
        own = frozenset[int]()
        if chance.random() < BAD_SHARE:
            count = int(chance.integers(1, REGRESSIONS_MAX + 1))
            own = frozenset(int(test) for test in chance.integers(0, world.shape.tests, count))
        run = Run(len(world.runs) + number, last.day, last.pr, own)
        quarantined = {no for no, health in judged.items() if _is_flagged(health, last.day)}
        failed, tries = _failed(ci, world, run)
        names = _names_at(world, last.day)
        own = frozenset(names.get(no, no) for no in own)
        is_excused = failed <= quarantined
        good, bad = good + (not own), bad + bool(own)
        is_removed = (bool(failed), not is_excused)
        for side in (0, 1):
            wrongly = not own and is_removed[side]
            removed[side] += wrongly
            # Whoever was removed for nothing comes again.
            runs[side] += (1, tries)[side] + wrongly
        if own:
            shielded += own <= quarantined
            merged_bad += is_excused
            inexcusable += is_excused and not own <= quarantined
    return QueueOutcome(
        good, bad, (removed[0], removed[1]), merged_bad, inexcusable, shielded, (runs[0], runs[1])
    )


def figures(outcomes: Sequence[QueueOutcome]) -> Iterator[tuple[str, float | None, float | None]]:
    """(name, value, gate) of each figure over several worlds."""
    good, bad = (sum(getattr(each, name) for each in outcomes) for name in ("good", "bad"))
    removed = [sum(each.removed[side] for each in outcomes) for side in (0, 1)]
    runs = [sum(each.runs[side] for each in outcomes) for side in (0, 1)]
    yield "queue: good removed without knowledge", removed[0] / good, None
    yield "queue: good removed with it", removed[1] / good, None
    yield "queue: bad merged", sum(each.merged_bad for each in outcomes) / bad, None
    yield "queue: bad merged, not shielded", sum(each.inexcusable for each in outcomes), 0
    yield "queue: CI minutes a PR without", MINUTES * runs[0] / (good + bad), None
    yield "queue: CI minutes a PR with", MINUTES * runs[1] / (good + bad), None


def _names_at(world: World, day: float) -> Mapping[int, int]:
    """The number of each test that has another one by then."""
    return {old: new for since, old, new in world.renames if since <= day}


def _failed(ci: Ci, world: World, run: Run) -> tuple[frozenset[int], int]:
    """What failed, by its present names, and after how many tries.

    Mass failures are of nobody, and tried again.
    """
    names = _names_at(world, run.day)
    for tries in (1, 2):
        found: set[int] = set()
        is_mass = False
        for job in range(world.shape.jobs):
            letters = ci.letters(run, job, run.day + (tries - 1) * 0.1)
            failed = {no for no, each in letters.items() if each[-1] == "F"}
            is_mass = is_mass or evidence.is_mass_failure(ci.tests_in(job), len(failed))
            found |= {names.get(no, no) for no in failed}
        if not is_mass:
            break
    return frozenset(found), tries


def _is_flagged(health: Health, day: float) -> bool:
    """Whether the status was flaky or broken then."""
    before = [change.value for change in health.history if day_of(change.at) <= day]
    return bool(before) and before[-1] is not Status.HEALTHY
