"""Many histories of a hostile world; none may break a property.

HEADGATE_SIM_SEEDS is the number of histories, split over the tests so that workers share them.
The default is a queue-year, 36,500 pull requests (RELIABILITY.md 12).
"""

import os
from collections.abc import Callable

import pytest

from tests.simulation.world import World

SEEDS = int(os.environ.get("HEADGATE_SIM_SEEDS", "5500"))
SHARES = 40


@pytest.mark.first
@pytest.mark.timeout(0)
@pytest.mark.parametrize("share", range(SHARES))
def test_no_history_breaks_a_property(
    share: int, record_property: Callable[[str, object], None]
) -> None:
    prs = steps = 0
    for seed in range(share, SEEDS, SHARES):
        world = World(seed)
        try:
            world.play()
        except Exception as broken:
            broken.add_note(f"in the history of World({seed})")
            raise
        prs += len(world.facts)
        steps += world.steps
    record_property("histories", len(range(share, SEEDS, SHARES)))
    record_property("pull requests", prs)
    record_property("inputs", steps)


def test_a_seed_is_one_history() -> None:
    first, second = World(7), World(7)
    first.play()
    second.play()
    assert first.queue == second.queue
    assert first.steps == second.steps
