"""Faults planted into the belief: each rejects more good pull requests than its budget."""

import functools
import random

import pytest

from service.mergequeue.engine import records
from service.mergequeue.engine.policy import constants
from service.mergequeue.engine.policy.belief import Belief
from service.mergequeue.engine.records import Record, Suspect
from service.mergequeue.engine.reported import Rates
from tests.planted.planting import Fault, replaced

PULL_REQUESTS = 10_000
BROKEN, RISK_OF_OTHERS, BATCHES = 0.04, 0.2, 6
WRONG_MAX = 0.001
"""Of the good ones, the error budget of rejections."""


def _twice(kept: tuple[Record, ...], newest: Record) -> tuple[Record, ...]:
    return (*kept, newest, newest)


FAULTS: dict[str, tuple[Fault, float, float]] = {
    "a failure counts twice": (replaced(records, "with_failure", _twice), 0.02, 0.02),
    "what one was charged with before it passed still counts": (
        replaced(records, "cleared", lambda kept, entries: kept),
        0.02,
        0.02,
    ),
    "a measured flake rate of 0 is taken as it is": (
        replaced(constants, "FLAKE_MIN", 1e-9),
        0.005,
        0.0,
    ),
}
"""By name: the fault, the true chance of a flake and the measured one."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_belief_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault, flake, measured = FAULTS[name]
    assert _wrong_share_when_sound(flake, measured) <= WRONG_MAX
    fault.plant(monkeypatch)
    assert _wrong_share(flake, measured) > WRONG_MAX


@functools.cache
def _wrong_share_when_sound(flake: float, measured: float) -> float:
    """The share without a fault, which two of the faults have in common."""
    return _wrong_share(flake, measured)


def _wrong_share(flake: float, measured: float) -> float:
    """The share of the good ones that are rejected."""
    chance = random.Random(11)
    good = wrong = 0
    for _ in range(PULL_REQUESTS):
        is_bad = chance.random() < BROKEN
        is_rejected = _Case(chance, is_bad, flake, measured).is_rejected()
        good += not is_bad
        wrong += is_rejected and not is_bad
    return wrong / good


class _Case:
    """One pull request: in some batches with others, and alone whenever a batch fails."""

    def __init__(self, chance: random.Random, is_bad: bool, flake: float, measured: float) -> None:
        self.chance = chance
        self.is_bad = is_bad
        self.flake = flake
        self.rates = Rates(flake=measured)
        self.records: tuple[Record, ...] = ()
        self.runs = 0

    def is_rejected(self) -> bool:
        """Whether it is convicted in the end."""
        for _ in range(BATCHES):
            is_other_bad = self.chance.random() < RISK_OF_OTHERS
            if self._fails(self.is_bad or is_other_bad):
                self._note(one=BROKEN, other=RISK_OF_OTHERS)
                if self._fails_alone():
                    return True
        return False

    def _fails_alone(self) -> bool:
        while self._fails(self.is_bad):
            self._note(one=BROKEN)
            if Belief(self.records, self.rates).failing("one", BROKEN) >= constants.CONVICTED_MIN:
                return True
        self.records = records.cleared(self.records, ["one"])
        return False

    def _fails(self, is_bad: bool) -> bool:
        return is_bad or self.chance.random() < self.flake

    def _note(self, **priors: float) -> None:
        self.runs += 1
        suspects = tuple(
            Suspect(entry, 1, prior, is_tested=True) for entry, prior in priors.items()
        )
        newest = Record(f"run {self.runs}", suspects, ("unit",))
        self.records = records.with_failure(self.records, newest)
