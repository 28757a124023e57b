"""Every planted fault of the engine is caught within its seeds."""

from collections.abc import Callable, Mapping
from inspect import isfunction, signature
from typing import cast

import pytest

from service.errors import InvariantBroken
from tests.exhaustive import properties as exhaustive
from tests.exhaustive.scopes import Scope
from tests.exhaustive.search import Search
from tests.planted import lane_faults, line_faults
from tests.planted.planting import Fault
from tests.simulation.order import Violation
from tests.simulation.world import World

FAULTS = {**line_faults.FAULTS, **lane_faults.FAULTS}

SEEDS = range(400)
"""Histories of which one must show the fault and be sound without it."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name: str) -> None:
    fault = FAULTS[name]
    if fault.scope is not None:
        assert not _is_complete(fault, fault.scope, planted=True)
        assert _is_complete(fault, fault.scope, planted=False)
        return
    for seed in SEEDS:
        if not _is_sound(seed, fault, planted=True) and _is_sound(seed, fault, planted=False):
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
