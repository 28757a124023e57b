"""A backup is put in place of the database: what is read from the provider again, what is lost.

docs/how-to/operate.md says the same to operators.
"""

import shutil
from pathlib import Path

import pytest

from service.database import database
from service.errors import NotFound
from tests.harness.databases import sqlite_at
from tests.harness.world import World, WorldOptions, hosting, serving


async def is_tested(world: World) -> bool:
    """Whether a run has its test commit."""
    return any(run.sha for run in (await world.value()).runs.values())


def restore(copy: Path, path: Path) -> None:
    """Put a backup in place, as the page says."""
    shutil.move(copy, path)
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


async def test_a_restored_queue_goes_on_from_what_the_provider_has(tmp_path: Path) -> None:
    path, copy = tmp_path / "headgate.db", tmp_path / "copy.db"
    options = WorldOptions(database_url=sqlite_at(path))
    async with hosting(options) as host:
        async with serving(tmp_path, options, *host) as world:
            await world.make_queue()
            queued, later, unfinished = [await world.open() for _ in range(3)]
            await world.settle()
            await world.comment("/merge", on=queued)
            await world.until(lambda: is_tested(world))
            await database.back_up(sqlite_at(path), copy)
            await world.settle()
            await world.comment("/merge", on=later)
            await world.settle()
            assert [await world.state(each) for each in (queued, later)] == ["MERGED", "MERGED"]
            await world.comment("/merge", on=unfinished)
            await world.until(lambda: is_tested(world))
            (left,) = [each for each in world.repository.git.branches() if "headgate/" in each]
        restore(copy, path)
        async with serving(tmp_path, options, *host) as world:
            await world.settle()
            assert (await world.value()).holds == ()
            entry = await world.entry(queued)
            assert (entry.state, entry.reason) == ("MERGED", "merged_by_hand")
            with pytest.raises(NotFound, match="was never submitted"):
                await world.entry(later)
            entry = await world.entry(unfinished)
            assert (entry.state, entry.reason) == ("MERGED", "landed")
            assert left in world.repository.git.branches()
