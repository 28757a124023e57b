"""A database of an older schema comes up with everything that was in it."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import orjson
import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, MetaData, Table, insert

from service.database import migrate
from service.mergequeue.engine import targets
from service.mergequeue.engine.model import LandedStep, MergeQueue
from service.mergequeue.store import pull_requests, queues
from service.mergequeue.store.rows import ENTRY, QUEUE, RUN, check_rows, member_rows
from service.vocabulary import Sha
from tests.harness.databases import connected, opened_at
from tests.store.builders import a_run, a_sha, an_entry
from tests.store.conftest import NOW, a_queue, on_both

ORG = {"id": 7, "host": "github.test", "slug": "octo"}
REPOSITORY = {
    "id": 8,
    "org_id": 7,
    "host": "github.test",
    "provider_id": "101",
    "owner": "octo",
    "name": "widgets",
    "merge_methods": '["SQUASH"]',
    "default_branch": "main",
    "archived": False,
    "available": True,
    "url": "https://github.test/octo/widgets",
}
UPLOADS = {31: '["//b","//a","//b"]', 32: None, 33: "[]"}


def the_queue() -> MergeQueue:
    """A queue as the first schema could hold it."""
    run = a_run("r1", prs=(3,))
    step = LandedStep(2, Sha("a" * 40), Sha("b" * 40), Sha("c" * 40))
    made = a_queue()
    return MergeQueue(
        id=9,
        uid=made.uid,
        branch="main",
        config=made.config,
        entries={3: an_entry(3, run="r1"), 4: an_entry(4)},
        runs={"r1": run},
        landed=(step,),
        version=5,
    )


def at_first(connection: Connection) -> None:
    """The first schema."""
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(migrate.MIGRATIONS))
    command.upgrade(config, "0001")


def fill(connection: Connection, queue: MergeQueue) -> None:
    """Write the queue and some uploads into the tables as they are."""
    known = MetaData()
    known.reflect(connection)

    def put(table: str, **row: object) -> None:
        into: Table = known.tables[table]
        connection.execute(
            insert(into), {name: value for name, value in row.items() if name in into.c}
        )

    of_queue = {"org_id": 7, "repository_id": 8, "queue_id": 9}
    put("organization", **ORG)
    put("repository", **REPOSITORY)
    put("merge_queue", **of_queue, **QUEUE.row(queue), epoch=1)
    for entry in queue.entries.values():
        put("entry", **of_queue, **stored(connection, ENTRY.row(entry)), live=True)
    for run in queue.runs.values():
        row = stored(connection, RUN.row(run))
        put("run", **of_queue, **row, live=True, restored=False)
        for row in member_rows(run):
            put("run_entry", org_id=7, **row)
        for row in check_rows(run):
            put("run_check", org_id=7, **stored(connection, row))
    for head, names in UPLOADS.items():
        upload = {"repository_id": 8, "number": 3, "head": a_sha(head), "targets": names}
        put("impacted_targets", org_id=7, **stored(connection, {"at": NOW}), **upload)


def stored(connection: Connection, row: dict[str, object]) -> dict[str, object]:
    """A row for reflected columns, which do not know how SQLite keeps instants."""
    if connection.dialect.name != "sqlite":
        return row
    return {
        name: value.replace(tzinfo=None).isoformat(timespec="microseconds")
        if isinstance(value, datetime)
        else value
        for name, value in row.items()
    }


@on_both
async def test_the_first_schema_comes_up_with_all_it_held(empty_url: str):
    queue = the_queue()
    with connected(empty_url) as connection:
        at_first(connection)
        fill(connection, queue)
        connection.commit()
    store = await opened_at(empty_url)
    # What the API shows as version goes on from what was shown before.
    assert await store.read(queues.load, 9) == replace(queue, revision=5)
    pairs = [(3, a_sha(head)) for head in UPLOADS]
    assert await store.read(pull_requests.targets_of, 8, pairs) == {
        (3, a_sha(31)): targets.of(["//a", "//b"]),
        (3, a_sha(32)): targets.ALL,
        (3, a_sha(33)): targets.of([]),
    }
    await store.close()


@pytest.mark.parametrize("names", [["//ü", "//a"], []])
async def test_an_upload_of_the_first_schema_has_the_word_that_it_would_get_now(
    tmp_path: Path, names: list[str]
):
    url = f"sqlite:///{tmp_path}/old.db"
    with connected(url) as connection:
        at_first(connection)
        fill(connection, the_queue())
        text = orjson.dumps(names).decode()
        connection.exec_driver_sql(f"UPDATE impacted_targets SET targets = '{text}'")
        connection.commit()
    store = await opened_at(url)
    place = pull_requests.PullRequestHead(8, 3, a_sha(31))
    await store.run(pull_requests.put_targets, place, targets.of(names), NOW)
    await store.close()
    with connected(url) as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM target_set").scalar() == 1
