"""No head of a fork is tested that a person with the right has not let in, on exactly this base.

HEADGATE_HOSTILE_SEEDS is the number of histories. One history again: `forks.play(SEED)`.
"""

from collections.abc import Callable, Mapping

import pytest

from service.provenance import FactKind
from tests.hostile import forks
from tests.hostile.fork_faults import FAULTS
from tests.hostile.test_hostile import SEEDS, SHARES
from tests.hostile.world import Violation

TESTED_SHARE_MIN = 0.02
"""A world in which no fork is let in would show nothing."""

PLANTED_SEEDS = range(600)
"""Histories of which one must show each fault."""

SHOWN: Mapping[str, int] = {
    "a label lets a fork in": 45,
    "a box lets a fork in": 190,
    "a button lets a fork in": 47,
    "a consent never ends": 73,
    "a lost right is kept": 851,
    "no file is sensitive": 153,
    "the present base is the one that was seen": 346,
    "a head that came back has always been there": 132,
    "the same second is before": 61,
}
"""Seeds that showed a fault, which are tried before the others.

When the product changes, others may show it: the run ends with a line that says which.
"""
LATE = 25

EVERY = [(kind, name) for kind, faults in FAULTS.items() for name in faults]


@pytest.mark.timeout(0)
@pytest.mark.parametrize("share", range(SHARES))
def test_no_head_is_tested_that_nobody_let_in(
    share: int, record_property: Callable[[str, object], None]
) -> None:
    tested = 0
    seeds = range(share, SEEDS, SHARES)
    for seed in seeds:
        try:
            tested += forks.play(seed).tested
        except Exception as broken:
            broken.add_note(f"in the history of forks.play({seed})")
            raise
    record_property("histories", len(seeds))
    record_property("tested", tested)
    assert tested > len(seeds) * TESTED_SHARE_MIN


def shows(seed: int) -> bool:
    """Whether a history shows that something is wrong."""
    try:
        forks.play(seed)
    except Violation:
        return True
    return False


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "name"), EVERY, ids=[name for _, name in EVERY])
def test_a_planted_fault_is_found(
    kind: FactKind, name: str, record_property: Callable[[str, object], None]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        FAULTS[kind][name](patch)
        first = [SHOWN[name]] if name in SHOWN else []
        seed = next((seed for seed in (*first, *PLANTED_SEEDS) if shows(seed)), None)
    assert seed is not None, f"no history of {len(PLANTED_SEEDS)} shows it"
    assert not shows(seed)
    if seed > LATE and seed not in first:
        record_property("found", f"SHOWN may have the history {seed} of: {name}")
