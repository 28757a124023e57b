"""Many histories of a hostile world; none may break a property.

HEADGATE_SIM_SEEDS is the number of histories, split over the tests so that workers share them.
"""

import os

import pytest

from tests.simulation.world import World

SEEDS = int(os.environ.get("HEADGATE_SIM_SEEDS", "2000"))
SHARES = 20


@pytest.mark.first
@pytest.mark.parametrize("share", range(SHARES))
def test_no_history_breaks_a_property(share: int) -> None:
    for seed in range(share, SEEDS, SHARES):
        try:
            World(seed).play()
        except Exception as broken:
            broken.add_note(f"in the history of World({seed})")
            raise


def test_a_seed_is_one_history() -> None:
    first, second = World(7), World(7)
    first.play()
    second.play()
    assert first.queue == second.queue
    assert first.steps == second.steps
