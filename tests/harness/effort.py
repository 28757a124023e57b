"""How much a run tries, and in which order.

In `make test` a property gets few random examples, what knows no SQL gets one kind of database,
and a story that has many variants gets the telling ones; in `make soak` they get all.
"""

import os
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests.harness.databases import DIALECTS

IS_SOAK = os.environ.get("HEADGATE_SOAK") == "1"
SHARE = 4
"""`make test` tries one example in so many."""
IN_TURN = (*DIALECTS, *reversed(DIALECTS))
"""Names that come in pairs, such as before and after, meet each kind of database in both places."""

TESTS = Path(__file__).parents[1]
ABOVE_STORES = (TESTS / "operations", TESTS / "contract", TESTS / "dashboard")
"""Folders of tests of code above the stores, whose statements tests/store plays on each kind."""


def examples(number: int) -> int:
    """Return how many of `number` examples to try in this run."""
    return number if IS_SOAK else max(1, number // SHARE)


def spread(crash_points: Iterable[str]) -> list[tuple[str, str]]:
    """Pair each crash point with one kind of database; in `make soak` with every kind.

    Those around a transaction take turns. Elsewhere a kill does not meet the database at work, and
    a story over PostgreSQL takes twice as long.
    """
    return [
        (name, kind)
        for place, name in enumerate(crash_points)
        for kind in (DIALECTS if IS_SOAK else (_kind_at(place, name),))
    ]


def _kind_at(place: int, crash_point: str) -> str:
    return IN_TURN[place % len(IN_TURN)] if crash_point.startswith("tx.") else DIALECTS[0]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out further variants and twins on the other kind of database; none in `make soak`.

    What `-k` and ids on the command line name is played. Long tests come first, so that no worker
    begins one when the others are done.
    """
    left_out = [] if IS_SOAK else [*variants_in(items, config), *twins_in(items)]
    gone = set(left_out)
    config.hook.pytest_deselected(items=list(gone))
    played = [item for item in items if item not in gone]
    items[:] = sorted(played, key=lambda item: item.get_closest_marker("first") is None)


def variants_in(items: Sequence[pytest.Item], config: pytest.Config) -> list[pytest.Item]:
    """Return the tests marked `soak`, unless the command line names tests."""
    is_named = config.getoption("keyword") or any("::" in argument for argument in config.args)
    return [] if is_named else [item for item in items if item.get_closest_marker("soak")]


def twins_in(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return one of each two tests that differ only in the kind of database.

    Which one follows from its name. Tests and modules whose subject is concurrency or a lock are
    marked `each_database`.
    """
    twins: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        kind = _kind_of(item)
        if kind and not item.get_closest_marker("each_database"):
            twins[item.nodeid.replace(kind, "")].append(item)
    return [
        sorted(pair, key=_kind_of)[zlib.crc32(name.encode()) % len(DIALECTS)]
        for name, pair in twins.items()
        if len(pair) == len(DIALECTS)
    ]


def _kind_of(item: pytest.Item) -> str:
    """Return the kind of database of a test above the stores; empty: it has none."""
    called = getattr(item, "callspec", None)
    kind = str(called.params.get("database_url", "")) if called else ""
    is_above = kind and any(item.path.is_relative_to(folder) for folder in ABOVE_STORES)
    return kind if is_above else ""
