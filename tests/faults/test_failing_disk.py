"""The disk under a SQLite file fails: it is named, the stop ends well, and nothing is lost."""

from pathlib import Path

import pytest
from sqlalchemy import Connection

from service.database.database import Store
from service.errors import DatabaseUnavailable
from service.troubles import TroubleName
from tests.harness import failing_disk, needs
from tests.harness.databases import opened_at, sqlite_at

COUNTED = "SELECT count(*) FROM kept"


async def keep(store: Store) -> None:
    """Write one more row."""
    await store.run(lambda session: session.exec_driver_sql("INSERT INTO kept VALUES (1)"))


async def count(store: Store) -> int:
    """Count the rows."""

    def read(session: Connection) -> int:
        found: int = session.exec_driver_sql(COUNTED).scalar_one()
        return found

    return await store.read(read)


@pytest.mark.fault(
    "the disk of SQLite fails and takes no more writes",
    holds="reads are answered, writes are refused and name the disk, a stop ends well, and what"
    " was acknowledged is there once the disk is mended",
    within="-",
)
async def test_a_disk_that_fails_is_named_and_loses_nothing(tmp_path: Path) -> None:
    needs.needs("failing disk")
    with failing_disk.mounted(tmp_path / "disk") as disk:
        url = sqlite_at(disk.folder / "headgate.db")
        store = await opened_at(url)
        await store.run(lambda session: session.exec_driver_sql("CREATE TABLE kept (x INTEGER)"))
        await keep(store)
        disk.fail()
        with pytest.raises(DatabaseUnavailable):
            await keep(store)
        assert [one.name for one in store.troubles.all()] == [TroubleName.DATABASE_DISK_FAILS]
        assert await count(store) == 1
        await store.close()
        disk.mend()
        again = await opened_at(url)
        await keep(again)
        assert await count(again) == 2
        await again.close()
