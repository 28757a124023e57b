"""What is forgotten of tests while others use it: PostgreSQL lets two write at once."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Connection, event

from service.accounts.store import access
from service.process.store import retention
from service.process.store.retention import RetentionLimits
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.store import cases
from service.testhealth.store.cases import Place
from service.testhealth.store.sets import OutcomeSets, StoredSets
from tests.harness.databases import connected
from tests.harness.evidence import Ledger, Ran
from tests.store.conftest import NOW, a_repository

KEY = RepositoryKey("octo", "github.test/octo/widgets")
LIMITS = RetentionLimits()
HOUR = timedelta(hours=1)


@pytest.fixture
def forgetting(postgres_url: str) -> Iterator[Connection]:
    """Who forgets."""
    with connected(postgres_url) as session:
        yield session


@pytest.fixture
def using(postgres_url: str) -> Iterator[Connection]:
    """Who takes in an upload."""
    with connected(postgres_url) as session:
        yield session


@pytest.fixture
def ledger(using: Connection) -> Ledger:
    org = access.ensure_organization(using, "github.test", "7", "octo")
    repository = access.upsert_repository(using, org.id, a_repository())
    return Ledger(Place(org.id, repository.id), KEY, NOW)


def forget_all(session: Connection) -> None:
    """As the hourly sweep does."""
    while retention.prune(session, NOW, LIMITS):
        pass
    session.commit()


def before(session: Connection, words: str, deed: Callable[[], None]) -> None:
    """Have this done just before the session's first statement with these words."""
    left = [deed]

    def look(*told: object) -> None:
        if words in str(told[2]) and left:
            left.pop()()

    event.listen(session, "before_cursor_execute", look)


def test_a_set_that_is_used_again_while_it_is_forgotten_stays(forgetting, using, ledger):
    tests = {"a": "p", "b": "p"}
    ledger.take_in(using, Ran(NOW - LIMITS.evidence - 24 * HOUR, tests))
    ledger.count(using)
    using.commit()

    def use_again() -> None:
        ledger.take_in(using, Ran(NOW, tests))
        using.commit()

    before(forgetting, "DELETE FROM outcome_set", use_again)
    forget_all(forgetting)
    (key,) = using.exec_driver_sql("SELECT passed FROM upload").scalars()
    stored = StoredSets(using, OutcomeSets(), ledger.place.repository_id)
    assert stored.size(key) == len(tests)


def test_a_test_that_runs_again_while_it_is_forgotten_stays(forgetting, using, ledger):
    ledger.take_in(using, Ran(NOW - LIMITS.history - 24 * HOUR, {"a": "fp"}))
    ledger.count(using)
    using.commit()
    here, ids = ledger.place.repository_id, [ledger.id_of("a")]
    (test_id,) = cases.by_ids(using, here, ids)

    def run_again() -> None:
        cases.lock(using, here)
        ledger.take_in(using, Ran(NOW, {"a": "p"}))
        using.commit()

    before(forgetting, "test_repository", run_again)
    forget_all(forgetting)
    assert cases.by_ids(using, here, ids).keys() == {test_id}
