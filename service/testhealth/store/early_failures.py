"""Failed tests that CI jobs reported while they ran, and the tests that they may mean."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, func, select, union, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.codec import RowCodec
from service.testhealth.early_failures import EarlyFailure
from service.testhealth.store.cases import IS_UNHEALTHY, TEXT_MAX, Place, keys_of
from service.testhealth.store.tables_evidence import EarlyFailureRow
from service.testhealth.store.tables_tests import CaseOverrideRow, CaseRow

failures = EarlyFailureRow.__table__
cases = CaseRow.__table__
overrides = CaseOverrideRow.__table__

FAILURE = RowCodec(EarlyFailure, failures, keys={"org_id", "repository_id"})
_CHANGED = ("standing", "proof", "taken_back_at")

NAMESAKES_MAX = 50
"""Tests of one name that are examined; a name that more have excuses nothing."""


def put(session: Connection, place: Place, failure: EarlyFailure) -> None:
    """Store a report; one of the same test and attempt is replaced, and keeps its time."""
    insert = upsert(failures)
    changed = {name: insert.excluded[name] for name in _CHANGED}
    statement = insert.on_conflict_do_update(index_elements=["repository_id", "key"], set_=changed)
    session.execute(statement, FAILURE.row(failure) | keys_of(place))


def by_key(session: Connection, repository_id: int, key: str) -> EarlyFailure | None:
    """Return the report with this key, None if there is none."""
    statement = select(*FAILURE.columns).where(
        failures.c.repository_id == repository_id, failures.c.key == key
    )
    row = session.execute(statement).first()
    return None if row is None else FAILURE.value(row)


def of_job(
    session: Connection, repository_id: int, run_id: str, attempt: int, check_run: str
) -> tuple[EarlyFailure, ...]:
    """Return the reports of one attempt of a job, in the order in which they came."""
    statement = (
        select(*FAILURE.columns)
        .where(
            failures.c.repository_id == repository_id,
            failures.c.run_id == run_id,
            failures.c.run_attempt == attempt,
            failures.c.check_run == check_run,
        )
        .order_by(failures.c.heard_at, failures.c.key)
    )
    return tuple(map(FAILURE.value, session.execute(statement)))


def count_of_run(session: Connection, repository_id: int, run_id: str, attempt: int) -> int:
    """Count the reports of all jobs of an attempt of a CI run."""
    statement = select(func.count()).where(
        failures.c.repository_id == repository_id,
        failures.c.run_id == run_id,
        failures.c.run_attempt == attempt,
    )
    return session.execute(statement).scalar_one()


def take_back(session: Connection, repository_id: int, keys: Sequence[str], at: datetime) -> None:
    """Note that reports were contradicted."""
    statement = update(failures).where(
        failures.c.repository_id == repository_id, failures.c.key.in_(keys)
    )
    session.execute(statement.values(taken_back_at=at))


def namesakes(session: Connection, repository_id: int, name: str) -> list[int]:
    """Return the numbers of tests of this name that are unhealthy or have an override.

    No index has the names, so the tests are found by what makes them matter here.
    """
    named = (cases.c.repository_id == repository_id, cases.c.name == name[:TEXT_MAX])
    unhealthy = select(cases.c.no).where(*named, IS_UNHEALTHY)
    overridden = (
        select(cases.c.no)
        .join(
            overrides,
            (overrides.c.repository_id == cases.c.repository_id) & (overrides.c.no == cases.c.no),
        )
        .where(*named, overrides.c.repository_id == repository_id, overrides.c.is_open.is_(True))
    )
    found = session.execute(union(unhealthy, overridden).limit(NAMESAKES_MAX)).scalars()
    return sorted(found)
