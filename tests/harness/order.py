"""Which tests run first: what takes long begins early, so that no worker is alone at the end."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

LONG_S = 240.0
"""A file with a test that may take longer than this begins early; 0 means no limit."""

Test = TypeVar("Test")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deal the long files to the workers; alone, a process keeps the order."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        long_files = {item.path for item in items if _may_take_long(item)}
        items[:] = dealt(items, lambda item: item.path, long_files, workers)


def dealt(
    tests: Sequence[Test],
    file_of: Callable[[Test], Path],
    long_files: set[Path],
    workers: int,
) -> list[Test]:
    """Return the tests in an order in which every worker's share begins with long files.

    A worker first gets an equal share of the list, in its order, and later takes what others have
    not begun (`--dist worksteal`).
    """
    rest = [test for test in tests if file_of(test) not in long_files]
    order: list[Test] = []
    for index in range(workers):
        mine = set(sorted(long_files)[index::workers])
        share = [test for test in tests if file_of(test) in mine]
        size = (len(tests) - len(order)) // (workers - index)
        taken = max(size - len(share), 0)
        order += [*share, *rest[:taken]]
        rest = rest[taken:]
    return order + rest


def _may_take_long(item: pytest.Item) -> bool:
    limit = item.get_closest_marker("timeout")
    return limit is not None and not 0 < limit.args[0] <= LONG_S
