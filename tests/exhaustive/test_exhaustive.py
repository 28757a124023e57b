"""Every scope is searched to its bound; HEADGATE_EXHAUSTIVE=long takes the longer ones."""

import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from service.mergequeue.engine import model
from tests.exhaustive import canonical
from tests.exhaustive.scopes import SCOPES, Scope
from tests.exhaustive.search import Search

IS_LONG = os.environ.get("HEADGATE_EXHAUSTIVE") == "long"


@pytest.mark.first
@pytest.mark.timeout(0 if IS_LONG else 300)
@pytest.mark.parametrize(
    "scope", [scope for scope in SCOPES if scope.is_on], ids=lambda scope: scope.name
)
def test_no_state_breaks_a_property(
    scope: Scope, record_property: Callable[[str, object], None]
) -> None:
    found = Search(scope, scope.inputs_long if IS_LONG else scope.inputs).run()
    record_property("found", str(found))
    record_property("states", found.states)
    record_property("edges", found.edges)


def test_every_field_of_a_queue_is_in_the_key_or_left_out_for_a_reason() -> None:
    source = Path(canonical.__file__).read_text("utf-8")
    for name, left_out in canonical.LEFT_OUT.items():
        known = {field.name for field in fields(getattr(model, name))}
        assert left_out.keys() <= known, name
        missing = {one for one in known - left_out.keys() if f".{one}" not in source}
        assert not missing, f"{name}: {missing} neither in the key nor left out"
