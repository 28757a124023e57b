"""A version of today beside one of tomorrow, and after it: `docs/design/transactions.md` 10."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import inspect

from service.database import migrate
from tests.end_to_end.test_two_processes import REPO, REPO_REF, comment, open_one, seed, token
from tests.harness import newer_schema
from tests.harness.databases import connected
from tests.harness.processes import Service, Stage, stage

QUEUE = {"repo": REPO_REF, "targetBranch": "main"}


@asynccontextmanager
async def staged(folder: Path, database_url: str | None = None) -> AsyncIterator[Stage]:
    async with stage(folder, database_url) as set_up:
        await seed(set_up)
        yield set_up


async def lands(set_up: Stage, service: Service, name: str) -> int:
    """Land a pull request whose deliveries go to this instance."""
    await set_up.ready(service)
    await set_up.control("webhook", {"url": f"{service.url}/webhooks/github"})
    number = await open_one(set_up, name)
    await comment(set_up, number, "/merge")
    await set_up.landed(number)
    return number


async def page(
    set_up: Stage, service: Service, secret: str, cursor: str | None = None
) -> tuple[int, str | None]:
    """Read a page of one pull request; its number, and where the next begins."""
    more = {} if cursor is None else {"cursor": cursor}
    status, listed = await set_up.api(service, "listPullRequests", secret, **QUEUE, take=1, **more)
    assert status == 200, listed
    (row,) = listed["pullRequests"]
    return row["prNumber"], listed.get("nextCursor")


def schema_of(url: str) -> tuple[str | None, bool]:
    """The stored revision, and whether the newer version's table is there."""
    with connected(url) as connection:
        return migrate.revision_of(connection), inspect(connection).has_table("newer")


@pytest.mark.fault(
    "a newer version migrates the database under a running one",
    holds="both work on",
    within="150 s",
)
async def test_an_instance_of_today_works_on_while_a_newer_one_migrates_and_joins(
    postgres_url: str, tmp_path: Path
) -> None:
    newer = str(newer_schema.write(tmp_path / "newer"))
    async with staged(tmp_path, postgres_url) as set_up, set_up.serving() as today:
        first = await lands(set_up, today, "before")
        assert schema_of(postgres_url) == (newer_schema.PRESENT, False)
        refused = await set_up.headgate("serve", "--no-migrate", **{newer_schema.FOLDER: newer})
        assert (refused[0] != 0, "run headgate migrate" in refused[2]) == (True, True)
        assert schema_of(postgres_url) == (newer_schema.PRESENT, False)
        secret = await token(set_up)
        async with set_up.serving(**{newer_schema.FOLDER: newer}) as tomorrow:
            await set_up.ready(tomorrow)
            assert schema_of(postgres_url) == (newer_schema.NEWER, True)
            second = await lands(set_up, today, "beside")
            third = await lands(set_up, tomorrow, "by_the_newer")
            # A list that one instance began the other reads on.
            assert (await page(set_up, tomorrow, secret))[0] == third
            found, cursor = await page(set_up, today, secret)
            assert found == third
            found, cursor = await page(set_up, tomorrow, secret, cursor)
            assert found == second
            assert await page(set_up, today, secret, cursor) == (first, None)
        # The roll-out is taken back: the newer one is gone, a fresh one of today starts.
        async with set_up.serving() as again:
            fourth = await lands(set_up, again, "after_it")
            assert (await page(set_up, again, secret))[0] == fourth
            assert (await page(set_up, today, secret))[0] == fourth
        assert schema_of(postgres_url) == (newer_schema.NEWER, True)


@pytest.mark.fault(
    "a downgrade after a migration that takes nothing away",
    holds="it starts and lands",
    within="150 s",
)
async def test_today_starts_again_on_a_file_that_a_newer_version_migrated(tmp_path: Path) -> None:
    newer = str(newer_schema.write(tmp_path / "newer"))
    url = f"sqlite:///{tmp_path}/headgate.db"
    async with staged(tmp_path) as set_up:
        async with set_up.serving() as today:
            first = await lands(set_up, today, "before")
            secret = await token(set_up)
        async with set_up.serving(**{newer_schema.FOLDER: newer}) as tomorrow:
            second = await lands(set_up, tomorrow, "by_the_newer")
        assert schema_of(url) == (newer_schema.NEWER, True)
        assert (tmp_path / f"headgate.db.before-{newer_schema.PRESENT}").exists()
        async with set_up.serving() as again:
            third = await lands(set_up, again, "after_it")
            found, cursor = await page(set_up, again, secret)
            assert found == third
            found, cursor = await page(set_up, again, secret, cursor)
            assert found == second
            assert await page(set_up, again, secret, cursor) == (first, None)


async def comments_of_ours(set_up: Stage, number: int) -> list[str]:
    """What our App says on a pull request."""
    listed = await set_up.rest(f"repos/{REPO}/issues/{number}/comments")
    return [one["body"] for one in listed if one["user"]["login"].endswith("[bot]")]


@pytest.mark.fault(
    "an upgrade is taken back by the copy of the database from before it",
    holds="the older version starts, knows the newer one's landing as its own, and lands",
    within="-",
)
async def test_the_copy_from_before_an_upgrade_is_put_back_and_today_goes_on(
    tmp_path: Path,
) -> None:
    newer = str(newer_schema.write(tmp_path / "newer"))
    database = tmp_path / "headgate.db"
    async with staged(tmp_path) as set_up:
        async with set_up.serving() as today:
            await lands(set_up, today, "before")
        async with set_up.serving(**{newer_schema.FOLDER: newer}) as tomorrow:
            second = await lands(set_up, tomorrow, "by_the_newer")
        copy = tmp_path / f"headgate.db.before-{newer_schema.PRESENT}"
        for end in ("-wal", "-shm"):
            database.with_name(database.name + end).unlink(missing_ok=True)
        copy.replace(database)
        assert schema_of(f"sqlite:///{database}") == (newer_schema.PRESENT, False)
        async with set_up.serving() as again:
            await lands(set_up, again, "after_it")
            said = await comments_of_ours(set_up, second)
            assert [each for each in said if "Merged into `main`" in each and "by Headgate" in each]
            code, out, err = await set_up.headgate("audit", "--json")
            assert code in (0, 2), err
            (queue,) = json.loads(out)["queues"]
            found = {one["rule"] for one in queue["findings"]}
            assert found <= {"landed_unrecorded", "clone_is_behind", "no_git"}


@pytest.mark.fault(
    "a downgrade after a migration that took something away",
    holds="the start is refused by name",
    within="at once",
)
async def test_today_is_refused_where_the_newer_version_took_something_from_it(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/headgate.db"
    async with staged(tmp_path) as set_up:
        async with set_up.serving() as today:
            await set_up.ready(today)
        with connected(url) as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
            connection.exec_driver_sql("UPDATE schema_compatibility SET runs_from = '9999'")
            connection.commit()
        code, _, said = await set_up.headgate("serve")
        assert code != 0
        assert "Start the newer version again, or restore a backup" in said
