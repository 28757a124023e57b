"""The worlds with one hidden law each: they can be played, and the detector keeps some promises."""

from dataclasses import replace

import pytest

from tests.bench.worlds import ci, measured
from tests.bench.worlds.catalogue import BY_NAME, WORLDS


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_every_world_can_be_played_and_the_same_seed_is_the_same_world(world):
    shape = replace(world.shape, tests=60, days=12, pushes=4, main=1)
    played = ci.played(shape, 3, world.name)
    assert played == ci.played(shape, 3, world.name)
    assert {truth.number for truth in played.truths} == {life.test for life in played.lives}
    assert played.uploads


@pytest.mark.parametrize(
    ("name", "precision", "recall"),
    [("Base", 0.9, 0.8), ("PrOnlyNoRerun", 0.9, 0.2), ("BadMachineNamed", 0.8, 0.6)],
)
def test_flags_hit_flaky_tests(name, precision, recall):
    world = BY_NAME[name]
    found = measured.outcome_of(
        replace(world, shape=replace(world.shape, tests=200, days=24, pushes=20, main=6)), 5
    )
    assert found.precision >= precision
    assert found.recall >= recall
