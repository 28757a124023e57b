"""What a planted fault is: one function of the engine replaced, and where it can show."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from service.mergequeue.engine.applying import apply
from tests.exhaustive.scopes import Scope
from tests.simulation import settings

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Fault:
    """A fault and the histories that can show it, or the small world that does."""

    plant: Callable[[Patch], None]
    weights: settings.Weights = settings.SINGLE_ONLY
    scope: Scope | None = None


def replaced(one: object, name: str, new: object) -> Fault:
    """A function of a module that answers wrongly."""
    return Fault(lambda patch: patch.setattr(one, name, new))


def applied(kind: type, applier: Callable) -> Fault:
    """An input that is taken in wrongly."""
    return Fault(lambda patch: patch.setitem(apply.APPLIERS, kind, applier))
