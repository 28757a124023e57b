"""Each fault that is planted in the shell is shown by a history."""

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet

from tests.whole_service.plan import drawn
from tests.whole_service.planted import DEAR, FAULTS
from tests.whole_service.play import Broken, play
from tests.whole_service.test_histories import SEEDS

OF_OTHERS = {(drawn, seed) for seed in range(SEEDS)}
"""The plans of the histories that are played anyway."""
PLAYED = {
    (fault.plan, fault.shown_by): name
    for name, fault in FAULTS.items()
    if (fault.plan, fault.shown_by) not in OF_OTHERS
}
"""The other plans, each with one of its faults."""


def _marked(names: Iterable[str]) -> list[ParameterSet]:
    """Return the names; those that cost most are played by `make soak` only."""
    return [pytest.param(one, marks=[pytest.mark.soak] if one in DEAR else []) for one in names]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", _marked(FAULTS))
def test_a_planted_fault_of_the_shell_is_found(name: str) -> None:
    fault = FAULTS[name]
    with pytest.MonkeyPatch.context() as patch:
        fault.plant(patch)
        with pytest.raises(Broken):
            play(fault.plan(fault.shown_by))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", _marked(PLAYED.values()))
def test_the_history_that_shows_it_is_sound_otherwise(name: str) -> None:
    fault = FAULTS[name]
    play(fault.plan(fault.shown_by))
