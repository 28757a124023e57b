"""What store tests start from: a bare connection, a repository, a queue."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection

from service.accounts.store import access
from service.database.database import Store
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.store import queues
from service.provider.values import (
    Repository,
)
from service.vocabulary import MergeMethod, RepoId, RepoRef
from tests.harness import databases
from tests.harness.databases import Server

COUNT_ANEW = """
    DO $$ DECLARE name TEXT; BEGIN
        FOR name IN SELECT sequencename FROM pg_sequences LOOP
            EXECUTE format('ALTER SEQUENCE %%I RESTART', name);
        END LOOP;
    END $$
"""

NOW = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)

ME = "me"
"""Who claims."""


def a_repository(name: str = "widgets", number: str = "101", owner: str = "octo") -> Repository:
    """A repository as a provider tells it."""
    return Repository(
        ref=RepoRef("github.test", owner, name),
        id=RepoId("github.test", number),
        owner_id="7",
        default_branch="main",
        merge_methods=frozenset({MergeMethod.SQUASH, MergeMethod.REBASE}),
        archived=False,
        url=f"https://github.test/{owner}/{name}",
    )


def a_queue(branch: str = "main") -> MergeQueue:
    """A queue before it is stored."""
    return MergeQueue(id=0, uid=f"uid-{branch}", branch=branch, config=QueueConfig())


def a_stored_queue(session: Connection, branch: str = "main") -> MergeQueue:
    """The queue of a branch of octo/widgets, with everything it belongs to."""
    org = access.ensure_organization(session, "github.test", "7", "octo")
    repository = access.upsert_repository(session, org.id, a_repository())
    return queues.create(session, org.id, repository.id, a_queue(branch))


@pytest.fixture
async def queue(store: Store) -> MergeQueue:
    """A stored queue without entries: the first of its store, so its ids are all 1."""
    return await store.run(a_stored_queue)


@pytest.fixture(params=databases.DIALECTS)
def session(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A connection of its own; what the test writes is rolled back, and ids count from 1."""
    is_sqlite = request.param == "sqlite"
    url = request.getfixturevalue("sqlite_url" if is_sqlite else "shared_postgres_url")
    with databases.connected(url) as connection:
        connection.exec_driver_sql("BEGIN" if is_sqlite else COUNT_ANEW)
        yield connection


@pytest.fixture
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database without any table."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/empty.db"
        return
    server: Server = request.getfixturevalue("postgres")
    with server.database("template1") as url:
        yield url


on_both = pytest.mark.parametrize("empty_url", ["sqlite", "postgresql"], indirect=True)
