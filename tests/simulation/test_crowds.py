"""Histories in which a pull request that impacts every target waits, and lets one other follow."""

from dataclasses import replace

import pytest

from service.mergequeue.engine.policy import constants
from tests.simulation import settings
from tests.simulation.world import World

SEEDS = 30
LANES = replace(settings.EVERYTHING, parallel=1.0, batch=1.0, adaptive=1.0, impacts_all=0.4)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_history_breaks_a_property_where_those_that_impact_all_wait(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "RUNS_BEFORE_ALL_MAX", 1)
    monkeypatch.setattr(constants, "FOLLOWERS_OF_ALL_MAX", 1)
    World(seed, LANES).play()
