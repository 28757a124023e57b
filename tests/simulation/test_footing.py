"""What is carried from step to step only saves work: without it the same follows."""

from dataclasses import replace

import pytest

from service.mergequeue.engine import engine
from service.mergequeue.engine.inputs import Input
from tests.simulation.world import World

SEEDS = 12


class Doubled(World):
    """A world in which each step is also taken from a value as it would have been loaded."""

    def tell(self, one: Input) -> None:
        carried = engine.step(self.queue, one, self.now)
        loaded = replace(self.queue, entries=dict(self.queue.entries))
        assert engine.step(loaded, one, self.now) == carried
        super().tell(one)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_loaded_value_goes_on_like_a_kept_one(seed: int) -> None:
    Doubled(seed).play()
