"""The schema: what the revisions make is what the tables say, on both databases."""

import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, make_url

from service.accounts.store import tables_access, tables_repeats
from service.clock import RandomIds, SystemClock
from service.crash_points import NoCrashes
from service.database import database, migrate, sqlite_file, tables_deliveries
from service.database.database import StoreOptions, open_store
from service.database.tables_base import METADATA
from service.errors import StartRefused
from service.mergequeue.store import breaks, queues
from service.notifications.store import tables_notifications
from service.testhealth.store import tables_costs, tables_evidence, tables_tests
from tests.harness import newer_schema
from tests.harness.databases import connected, opened_at
from tests.store.conftest import a_stored_queue, on_both

Shape = dict[str, dict[str, tuple[str, bool, bool]]]
Newer = Callable[..., AbstractContextManager[None]]

# Imported so that METADATA has all of them, as the store itself does.
KNOWN = (
    tables_access,
    tables_deliveries,
    tables_notifications,
    breaks,
    queues,
    tables_repeats,
    tables_costs,
    tables_evidence,
    tables_tests,
)
assert all(KNOWN)


@pytest.fixture
def newer(tmp_path: Path) -> Newer:
    """Make this process the newer version for a while."""

    @contextmanager
    def is_newer(does: str = newer_schema.ADDS) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in ("MIGRATIONS", "REVISIONS", "HEAD", "RUNS_FROM"):
                patch.setattr(migrate, name, getattr(migrate, name))
            newer_schema.use(newer_schema.write(tmp_path / "newer", does))
            yield

    return is_newer


OF_MIGRATIONS = ("alembic_version", "schema_compatibility")
"""Tables that the migration code makes by itself."""


def shape_of(connection: Connection) -> dict[str, object]:
    """Columns, keys and indexes of every table, in words that can be compared."""
    found = inspect(connection)
    shape: dict[str, object] = {}
    for table in found.get_table_names():
        if table in OF_MIGRATIONS:
            continue
        shape[table] = {
            "columns": {
                column["name"]: (str(column["type"]), column["nullable"])
                for column in found.get_columns(table)
            },
            "key": found.get_pk_constraint(table),
            "foreign": sorted(str(key) for key in found.get_foreign_keys(table)),
            "unique": sorted(str(unique) for unique in found.get_unique_constraints(table)),
        }
    shape["indexes"] = sorted(indexes_of(connection))
    return shape


def indexes_of(connection: Connection) -> list[str]:
    """Every index as the database itself would write it."""
    if connection.dialect.name == "sqlite":
        question = "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    else:
        question = """
            SELECT indexdef FROM pg_indexes
            WHERE schemaname = 'public' AND tablename <> 'alembic_version'
        """
    return list(connection.exec_driver_sql(question).scalars())


@on_both
def test_the_revisions_make_exactly_the_tables(empty_url: str, request: pytest.FixtureRequest):
    is_sqlite = make_url(empty_url).get_backend_name() == "sqlite"
    database_url = request.getfixturevalue("sqlite_url" if is_sqlite else "postgres_url")
    with connected(empty_url) as connection:
        METADATA.create_all(connection)
        connection.commit()
        wanted = shape_of(connection)
    with connected(database_url) as connection:
        assert shape_of(connection) == wanted


@on_both
async def test_an_empty_database_is_brought_up_to_date_when_opened(empty_url: str):
    assert await database.is_behind(empty_url)
    store = await opened_at(empty_url)
    assert (await store.run(a_stored_queue)).version == 1
    await store.close()
    assert not await database.is_behind(empty_url)


@on_both
async def test_a_migration_can_be_refused_instead(empty_url: str):
    with pytest.raises(StartRefused, match="headgate migrate"):
        await open_store(
            empty_url,
            clock=SystemClock(),
            ids=RandomIds(),
            crash_points=NoCrashes(),
            options=StoreOptions(migrate=False),
        )
    assert await database.is_behind(empty_url)


@pytest.mark.parametrize("said", ["UPDATE schema_compatibility SET runs_from = '9998'", "DROP"])
async def test_a_newer_schema_for_newer_programs_is_refused_and_named(database_url: str, said: str):
    statement = said if said != "DROP" else "DROP TABLE schema_compatibility"
    with connected(database_url) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        connection.exec_driver_sql(statement)
        connection.commit()
    for opening in (opened_at, database.is_behind):
        with pytest.raises(StartRefused, match=r"schema 9999.*Start the newer version again"):
            await opening(database_url)


async def test_a_newer_schema_that_this_program_runs_on_is_used_and_left_alone(
    database_url: str, newer: Newer
):
    with newer():
        store = await opened_at(database_url)
        await store.close()
    store = await opened_at(database_url)
    queue = await store.run(a_stored_queue)
    assert await store.read(queues.load, queue.id) == queue
    await store.close()
    assert not await database.is_behind(database_url)
    with connected(database_url) as connection:
        assert migrate.revision_of(connection) == newer_schema.NEWER
        assert "newer_text" in {each["name"] for each in inspect(connection).get_columns("entry")}


async def test_an_older_schema_is_refused_with_what_to_run(database_url: str, newer: Newer):
    with newer():
        assert await database.is_behind(database_url)
        with pytest.raises(StartRefused) as refused:
            await opened_at(database_url, StoreOptions(migrate=False))
    assert str(refused.value) == (
        f"The database has schema {newer_schema.PRESENT}; this version of Headgate needs schema "
        f"{newer_schema.NEWER}. A migration is pending: run headgate migrate."
    )


def lost_between(before: Shape, after: Shape) -> set[str]:
    """What programs of the older shape would miss, or could not write, in the newer one."""
    lost = set()
    for table, columns in before.items():
        for name, (kind, is_nullable, has_default) in columns.items():
            now = after.get(table, {}).get(name)
            if now is None or now[0] != kind or (now[1:] != (is_nullable, has_default)):
                lost.add(f"{table}.{name}")
        for name, (_, is_nullable, has_default) in after.get(table, {}).items():
            if name not in columns and not is_nullable and not has_default:
                lost.add(f"{table}.{name}")
    return lost


def columns_at(url: str, revision: str) -> Shape:
    """Bring an empty or older database to a revision; type, nullable and default of its columns."""
    with connected(url) as connection:
        migrate.upgrade_to(connection, revision)
        connection.commit()
        found = inspect(connection)
        return {
            table: {
                column["name"]: (
                    str(column["type"]),
                    column["nullable"],
                    column["default"] is not None,
                )
                for column in found.get_columns(table)
            }
            for table in found.get_table_names()
        }


@on_both
def test_revisions_keep_what_programs_use_that_run_on_them(empty_url: str):
    assert migrate.RUNS_FROM in migrate.REVISIONS
    before = columns_at(empty_url, migrate.RUNS_FROM)
    assert not lost_between(before, columns_at(empty_url, migrate.HEAD))


@pytest.mark.parametrize(
    ("does", "lost"),
    [
        (newer_schema.ADDS, set()),
        ('    op.drop_column("merge_queue", "check_history")', {"merge_queue.check_history"}),
        (
            '    op.add_column("journal", sa.Column("x", sa.Text(), nullable=False))',
            {"journal.x"},
        ),
        ('    op.drop_table("sweep_cursor")', {"sweep_cursor.at", "sweep_cursor.name"}),
    ],
)
def test_a_revision_that_takes_something_from_older_programs_is_found(
    request: pytest.FixtureRequest, newer: Newer, does: str, lost: set[str]
):
    url: str = request.getfixturevalue("postgres_url")
    before = columns_at(url, migrate.HEAD)
    with newer(does):
        assert lost_between(before, columns_at(url, migrate.HEAD)) == lost


def test_every_revision_is_known_in_order():
    scripts = ScriptDirectory(str(migrate.MIGRATIONS))
    known = [script.revision for script in scripts.walk_revisions()]
    assert tuple(reversed(known)) == migrate.REVISIONS
    assert scripts.get_heads() == [migrate.HEAD]


async def test_a_queue_from_before_check_histories_has_an_empty_one(database_url: str):
    store = await opened_at(database_url)
    queue = await store.run(a_stored_queue)
    await store.close()
    with connected(database_url) as connection:
        connection.exec_driver_sql("ALTER TABLE merge_queue DROP COLUMN check_history")
        connection.exec_driver_sql("ALTER TABLE test_settings DROP COLUMN report_issuers")
        connection.exec_driver_sql("ALTER TABLE endpoint DROP COLUMN format")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0007'")
        connection.commit()
        migrate.upgrade_to(connection, "0008")
        # Later revisions had been run before.
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{migrate.HEAD}'")
        connection.commit()
    again = await opened_at(database_url)
    assert await again.read(queues.load, queue.id) == queue
    await again.close()


async def test_who_this_is_stays_the_same(database_url: str):
    first = await opened_at(database_url)
    identity = await first.read(queues.deployment_id)
    await first.close()
    second = await opened_at(database_url)
    assert await second.read(queues.deployment_id) == identity
    await second.close()


def test_a_copy_is_kept_of_the_last_three_revisions(sqlite_url: str, tmp_path: Path):
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    with sqlite_file.engine_of(path).connect() as connection:
        for revision in ("0001", "0002", "0003", "0004"):
            migrate.keep_copy(connection, path, revision)
    copies = sorted(tmp_path.glob("headgate.db.before-*"))
    assert [each.name[-4:] for each in copies] == ["0002", "0003", "0004"]
    assert {stat.S_IMODE(each.stat().st_mode) for each in copies} == {0o600}
    with sqlite3.connect(copies[-1]) as copy:
        assert copy.execute("SELECT version_num FROM alembic_version").fetchall() == [
            (migrate.HEAD,)
        ]
    copy.close()


async def test_an_upgrade_keeps_a_copy_of_what_it_finds(tmp_path: Path, newer: Newer):
    url = f"sqlite:///{tmp_path}/headgate.db"
    await (await opened_at(url)).close()
    assert copies_in(tmp_path) == []
    with newer():
        await (await opened_at(url)).close()
    assert copies_in(tmp_path) == [f"headgate.db.before-{newer_schema.PRESENT}"]


def copies_in(folder: Path) -> list[str]:
    """The names of the copies that upgrades have left."""
    return sorted(each.name for each in folder.glob("*.before-*"))


def test_without_room_for_the_copy_nothing_starts(sqlite_url: str):
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    with (
        sqlite_file.engine_of(path).connect() as connection,
        pytest.raises(StartRefused, match="could not be copied"),
    ):
        migrate.keep_copy(connection, path / "nowhere", "0001")


async def test_a_backup_is_whole_while_somebody_writes(sqlite_url: str, tmp_path: Path):
    store = await opened_at(sqlite_url)
    queue = await store.run(a_stored_queue)
    copy = tmp_path / "backup.db"
    await database.back_up(sqlite_url, copy)
    await store.close()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    restored = await opened_at(f"sqlite:///{copy}")
    assert await restored.read(queues.load, queue.id) == queue
    await restored.close()


async def test_a_backup_overwrites_nothing(sqlite_url: str, tmp_path: Path):
    with pytest.raises(StartRefused, match="exists already"):
        await database.back_up(sqlite_url, tmp_path / "headgate.db")
    with pytest.raises(StartRefused, match="no database"):
        await database.back_up(f"sqlite:///{tmp_path}/none.db", tmp_path / "copy.db")
    with pytest.raises(StartRefused, match="pg_dump"):
        await database.back_up("postgresql://host/name", tmp_path / "copy.db")
