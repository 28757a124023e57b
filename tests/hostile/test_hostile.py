"""Nothing lands whose required checks did not pass, whoever says what.

HEADGATE_HOSTILE_SEEDS is the number of histories, split over the tests so that workers share them.
`make soak` has 100,000. One history again: `players.play(SEED)` (docs/reference/reliability.md).
"""

import os
from collections.abc import Callable

import pytest

from tests.hostile import players

SEEDS = int(os.environ.get("HEADGATE_HOSTILE_SEEDS", "1200"))
SHARES = 8
LANDED_SHARE_MIN = 0.1
"""A world in which nothing lands would show nothing."""


@pytest.mark.timeout(0)
@pytest.mark.parametrize("share", range(SHARES))
def test_nothing_lands_without_proof(
    share: int, record_property: Callable[[str, object], None]
) -> None:
    landed = opened = 0
    for seed in range(share, SEEDS, SHARES):
        try:
            world = players.play(seed)
        except Exception as broken:
            broken.add_note(f"in the history of players.play({seed})")
            raise
        landed += len(world.merged)
        opened += len(world.truths)
    record_property("histories", len(range(share, SEEDS, SHARES)))
    record_property("landed", landed)
    assert landed > opened * LANDED_SHARE_MIN


def test_a_seed_is_one_history() -> None:
    first, second = players.play(7), players.play(7)
    assert first.queue == second.queue
    assert first.merged == second.merged
