"""Every planted fault of the engine is caught within its seeds."""

from collections.abc import Callable, Mapping
from inspect import isfunction, signature
from typing import cast

import pytest

from service.errors import InvariantBroken
from tests.exhaustive import properties as exhaustive
from tests.exhaustive.scopes import SCOPES, Scope
from tests.exhaustive.search import Search
from tests.planted import lane_faults, line_faults
from tests.planted.planting import Fault
from tests.simulation.order import Violation
from tests.simulation.world import World

FAULTS = {**line_faults.FAULTS, **lane_faults.FAULTS}

SEEDS = range(400)
"""Histories of which one must show the fault and be sound without it."""

SHOWN_BY: Mapping[str, int] = {
    "a check may be skipped that ran on the own head": 29,
    "a check may be skipped that ran nowhere": 131,
    "an entry that is not ready keeps its place for days": 6,
    "B10 unreadable required statuses are none": 15,
    "B11 a status added before landing is not awaited": 36,
    "B16 a paused queue lands": 8,
    "runs start that the provider's limits delay": 10,
    "B19 a failure is judged before its base is sure": 9,
    "B21 a rebuilt entry goes to the tail": 14,
    "B28 an earlier event wins over what is read now": 18,
    "an entry leaves while its landing is in flight": 6,
    "B14 a run clears one that is not in it": 30,
    "B20 a search blames a part without a run of it": 6,
    "a batch is judged before its base is sure": 11,
    "a base takes part of a batch": 21,
    "a group pulls one over another that meets it": 9,
    "a proven member is judged by another search's probe": 8,
    "a cleared entry lands apart from its unit": 12,
    "a queue that switches modes starts runs": 3,
    "what is touched more than was said waits for the next run": 402,
    "the parts of a search begin one after another": 306,
    "a failed run is never decided": 24,
    "B12 another App's check of the same name counts": 37,
    "every member of a batch stands alone": 2,
    "the others of a batch go on when one left": 30,
    "a group waits for company for ever": 2,
}
"""One of them that shows a fault, for faults that the first ones do not show, or not soon.

It is played first. When the engine changes, others may show it: then all are played, and the run
ends with a line that says which one to write here.
"""
LATE = 25


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    fault = FAULTS[name]
    if fault.scope is not None:
        assert not _is_complete(fault, fault.scope, planted=True)
        # Without the fault, the scopes of tests/exhaustive are searched there.
        assert fault.scope in SCOPES or _is_complete(fault, fault.scope, planted=False)
        return
    for seed in (SHOWN_BY.get(name, SEEDS.start), *SEEDS):
        if not _is_sound(seed, fault, planted=True) and _is_sound(seed, fault, planted=False):
            if seed > LATE and seed != SHOWN_BY.get(name):
                record_property("found", f"SHOWN_BY may have the history {seed} of: {name}")
            return
    pytest.fail(f"not caught in {len(SEEDS)} histories: {name}")


class _Planting:
    """Plants nothing, and notes each function with the faulty one that would take its place."""

    def __init__(self) -> None:
        self.replaced: list[tuple[Callable, Callable]] = []

    def setattr(self, target: object, name: str, value: Callable) -> None:
        self.replaced.append((getattr(target, name), value))

    def setitem(self, mapping: Mapping, name: object, value: Callable) -> None:
        self.replaced.append((mapping[name], value))


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_takes_what_the_engine_gives_it(name: str) -> None:
    planting = _Planting()
    FAULTS[name].plant(cast(pytest.MonkeyPatch, planting))
    for sound, faulty in planting.replaced:
        if isfunction(sound):
            signature(faulty).bind(*signature(sound).parameters)


def test_only_faults_that_exist_have_a_history_that_is_played_first() -> None:
    assert SHOWN_BY.keys() <= FAULTS.keys()


def _is_complete(fault: Fault, scope: Scope, *, planted: bool) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        if planted:
            fault.plant(patch)
        try:
            Search(scope, scope.inputs).run()
        except (exhaustive.Violation, InvariantBroken):
            return False
    return True


def _is_sound(seed: int, fault: Fault, *, planted: bool) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        if planted:
            fault.plant(patch)
        try:
            World(seed, fault.weights).play()
        except (Violation, InvariantBroken):
            return False
        except Exception:
            # An engine that is wrong may also fall over; sound, it never does.
            if not planted:
                raise
            return False
    return True
