"""A service that has lived long keeps of each pull request what is kept for ever, and no more.

The calendar moves on between the waves by more than anything else is kept.
"""

from pathlib import Path

import pytest

from tests.age import life
from tests.age.life import SIZE, Census
from tests.harness.effort import IS_SOAK
from tests.harness.world import living

FOR_EVER = {
    "landing": 1,
    "landing_evidence": 1,
    "audit": 2,
    "notice": 1,
    "pull_request": 0.4,
}
"""Rows of each pull request that stay (docs/design/transactions.md 11), at most so many.

Three of ten do not land: their comment stays, and their head, because they may come back.
"""
OBJECTS_MAX = 12
"""Objects of the service's classes that a pull request may leave in caches that are not full."""
DATABASE_MAX = 30_000
"""Bytes of the database that a pull request may leave."""
DAYS = 401.0
"""Between two waves: more than anything is kept that is not kept for ever."""
WAVES = 1000 if IS_SOAK else 2
FIRST = 200 if IS_SOAK else 1
"""Waves of the half that fills caches and the pages of the database."""


SPARE = 4
"""Rows of a whole table, or descriptors, that come and go."""


@pytest.mark.jumping
@pytest.mark.parametrize("method", ["rest", pytest.param("git", marks=pytest.mark.soak)])
@pytest.mark.fault(
    "a service that lives long",
    holds="rows, refs, mirror, descriptors and caches grow by no more than what is kept for ever",
    within="the bounds of each table, of each pull request",
)
async def test_each_pull_request_leaves_only_what_is_kept_for_ever(
    tmp_path: Path, method: str
) -> None:
    async with living(tmp_path, life.options(method)) as world:
        await life.prepare(world)
        lived = [each async for each in life.lived(world, tmp_path, WAVES + FIRST, DAYS)]
    first, last = lived[FIRST - 1], lived[-1]
    count = last.cycles - first.cycles
    assert count == WAVES * SIZE
    assert grown_rows(first, last) == {}
    assert last.heads <= first.heads
    assert last.mirror_refs <= first.mirror_refs
    assert last.descriptors <= first.descriptors + SPARE
    assert last.objects["service"] - first.objects["service"] <= OBJECTS_MAX * count
    assert last.database - first.database <= DATABASE_MAX * count


def grown_rows(first: Census, last: Census) -> dict[str, float]:
    """Tables with more new rows of each pull request than are kept for ever."""
    count = last.cycles - first.cycles
    new = {name: (last.rows[name] - rows) / count for name, rows in first.rows.items()}
    return {name: rows for name, rows in new.items() if rows > FOR_EVER.get(name, SPARE / count)}
