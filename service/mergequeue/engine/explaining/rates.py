"""The rates of a queue, from how its newest runs and submissions ended.

See docs/design/testing.md 12.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from service.mergequeue.engine.model import Run
from service.mergequeue.engine.policy import constants
from service.mergequeue.engine.reported import Rates

ASSUMED = Rates()
"""The rates of a queue of which nothing is known yet."""

ASSUMED_WEIGHT = 100
"""So many runs, or submissions, weigh as much as what is assumed without them.

A flake rate of 2 % is 1 % after 100 runs without a flake, and 4 % after 100 with six.
"""

SAMPLES_MIN = 5
"""Passed runs from which on the minutes of a check are known."""

FAILURES_ASSUMED = 5.0
"""So many expected failures weigh as much as the assumption that none is foreseen."""

FORESEEN_STEP = 0.05
"""The share of foreseen failures has changed if it differs by more. So not every submission turns
early looks on and off."""

NOTICEABLE = 0.2
"""A rate has changed if it is this share larger or smaller."""

RATE_DIGITS, MINUTES_DIGITS = 4, 2
MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The ends of the newest runs and submissions of a queue.

    Of runs in which everything was good: `passed`, and `flaked`, which failed all the same. Of
    `decided` submissions, which landed or failed, `interactions` failed only together with others.
    `minutes` are those of passed runs, by required check. The estimates of the decided submissions
    expect `expected` failures, `foreseen` of them of those that will probably fail.
    """

    passed: int = 0
    flaked: int = 0
    decided: int = 0
    interactions: int = 0
    minutes: Mapping[str, Sequence[float]] = field(default_factory=dict)
    expected: float = 0.0
    foreseen: float = 0.0


def measured(outcomes: Outcomes) -> Rates:
    """Return the rates that the outcomes show; those that are assumed without any.

    A rate is the mean of a Beta distribution that starts from the assumed rate.
    """
    runs = outcomes.passed + outcomes.flaked
    return Rates(
        flake=_smoothed(outcomes.flaked, runs, ASSUMED.flake),
        conflict=_smoothed(outcomes.interactions, outcomes.decided, ASSUMED.conflict),
        minutes={
            name: round(median(taken), MINUTES_DIGITS)
            for name, taken in sorted(outcomes.minutes.items())
            if len(taken) >= SAMPLES_MIN
        },
        foreseen=round(outcomes.foreseen / (outcomes.expected + FAILURES_ASSUMED), RATE_DIGITS),
    )


def foreseen_of(estimates: Sequence[float]) -> float:
    """Return how many failures are expected of those that fail with more than a chance of 20 %."""
    return sum(one for one in estimates if one > constants.EARLY_RISK_MAX)


def minutes_of(runs: Iterable[Run]) -> Mapping[str, Sequence[float]]:
    """Return the minutes of each required check from the test branch to its result, by name.

    A report without a time counts as ended with its run.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    for run in runs:
        if run.built_at is None or run.finished_at is None:
            continue
        for name in {required.name for required in run.required}:
            reports = [each for each in run.checks if each.name == name]
            ends = [each.completed_at or run.finished_at for each in reports]
            if ends:
                taken = (max(ends) - run.built_at).total_seconds() / MINUTE_S
                found[name].append(max(taken, 0.0))
    return found


def have_changed(before: Rates, after: Rates) -> bool:
    """Return whether any rate is noticeably larger or smaller, or another check is known."""
    pairs = [(before.flake, after.flake), (before.conflict, after.conflict)]
    if before.minutes.keys() != after.minutes.keys():
        return True
    if abs(after.foreseen - before.foreseen) > FORESEEN_STEP:
        return True
    pairs += [(before.minutes[name], after.minutes[name]) for name in after.minutes]
    return any(is_noticeable(old, new) for old, new in pairs)


def is_noticeable(before: float, after: float) -> bool:
    """Return whether a rate differs enough to plan anew."""
    return abs(after - before) > NOTICEABLE * before


def _smoothed(count: int, of: int, assumed: float) -> float:
    return round((count + assumed * ASSUMED_WEIGHT) / (of + ASSUMED_WEIGHT), RATE_DIGITS)
