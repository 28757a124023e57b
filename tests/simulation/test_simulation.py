"""Many histories of a hostile world; none may break a property.

HEADGATE_SIM_SEEDS is the number of histories, split over the tests so that workers share them.
The default has about 1,100 submissions; `make soak` has 200,000 histories.
"""

import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.simulation import settings
from tests.simulation.world import World

SEEDS = int(os.environ.get("HEADGATE_SIM_SEEDS", "160"))
SHARES = 20


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


NAMED = replace(settings.DRAWN, batch=1.0, adaptive=1.0, sends_results=1.0)
"""Failed runs are believed and explained, and half of the answers name the failed tests."""


@pytest.mark.parametrize("share", range(4))
def test_no_history_in_which_failed_tests_are_named_breaks_a_property(share: int) -> None:
    for seed in range(share + 100, 160, 4):
        World(seed, NAMED).play()


WITNESSED = replace(NAMED, optimistic=1.0, parallel=0.1, slots=8)
"""The same with optimistic merging, and with slots in which followers of a suspect may run on."""


@pytest.mark.parametrize("share", range(4))
def test_no_history_with_witnesses_breaks_a_property(share: int) -> None:
    for seed in range(share + 200, 260, 4):
        World(seed, WITNESSED).play()


FORESEEN = replace(settings.DRAWN, dooms=1.0)
"""Failures are foreseen: rightly, wrongly, and taken back."""


@pytest.mark.parametrize("share", range(4))
def test_no_history_in_which_failures_are_foreseen_breaks_a_property(share: int) -> None:
    for seed in range(share + 300, 360, 4):
        World(seed, FORESEEN).play()


ONCE_BROKEN = {
    85: "one that waits to be tried alone is passed over unseen",
    205: "half of a batch lands and its follower restarts",
    317: "targets grow while the landing is in flight",
    386: "a run begins before somebody whom it meets through others",
    480: "a hedge keeps the queue from changing its mode",
    490: "a hedge that passed takes over from a run that passed",
    598: "a failure on top of what others merged unproved is blamed",
    1633: "a hedge begins on top of one that waits to be built",
    2715: "what passed waits in a mode change for one that cannot start",
    3636: "targets grow between the asking for a landing and its permit",
    4129: "one that brings nothing is merged by hand below a unit",
    4181: "a lane lands into a unit that has begun to land",
    4991: "the same move of the branch, told twice, is kept twice",
    5056: "a failure above one that brings nothing is never decided",
    5854: "a batch that is half landed is read with its landed half",
    9988: "the rest of a unit lands beside what meets its landed part",
    201883: "a broken one lands by the pass of another App than CI, and the next one fails",
}
"""Histories that showed a fault of the engine, by seed; they stay sound."""


@pytest.mark.parametrize("seed", ONCE_BROKEN)
def test_a_history_that_once_broke_is_sound(seed: int) -> None:
    World(seed).play()


ONCE_BROKEN_NAMED = {
    30: "one joins a batch past a risky one that waits because of it, unseen",
    1101: "one leaves half way through a landing during which it was not ready",
    1461: "a risky one starts before an older one that waited for the same entry",
    2098: "one lands directly past a risky one, unseen",
    7066: "one that has become urgent gets a place in the line and a second look",
    10059: "a pass of a longer run is taken back, and the tree below it still counts",
    12756: "an urgent one fails and goes back to its place in the step in which a run begins on it",
    12958: "one that the target contained is submitted again, and a hedge begins for ever",
}
"""The same for histories in which failed tests are named."""


@pytest.mark.parametrize("seed", ONCE_BROKEN_NAMED)
def test_a_history_with_named_tests_that_once_broke_is_sound(seed: int) -> None:
    World(seed, NAMED).play()


ONCE_BROKEN_WITNESSED = {
    56: "a run is built when what was ahead of it has left, for the target contained it",
}
"""The same for histories with witnesses."""


@pytest.mark.parametrize("seed", ONCE_BROKEN_WITNESSED)
def test_a_history_with_witnesses_that_once_broke_is_sound(seed: int) -> None:
    World(seed, WITNESSED).play()


def test_a_seed_is_one_history() -> None:
    first, second = World(7), World(7)
    first.play()
    second.play()
    assert first.queue == second.queue
    assert first.steps == second.steps
