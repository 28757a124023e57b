"""Everything about one test (`get-test-details`)."""

from datetime import datetime
from typing import NamedTuple

from service.database.database import Tx
from service.database.records import RepositoryRecord
from service.runtime import Runtime
from service.testhealth.detector import figures
from service.testhealth.operations import lists, records
from service.testhealth.operations.records import ShownTest
from service.testhealth.store.days import Span
from service.vocabulary import Override


class Details(NamedTuple):
    """A test with its figures; `failures` are those of the last 168 hours."""

    test: ShownTest
    override: Override
    expires_at: datetime | None
    first_seen_at: datetime
    last_run_at: datetime


async def read(runtime: Runtime, repository: RepositoryRecord, test_id: str) -> Details:
    """Return the test with this id, or with this other id. Raises NotFound(test_not_found)."""
    now = runtime.clock.now()

    def found(session: Tx) -> Details:
        home = records.home_of(session, runtime, repository, now)
        case = records.find_case(session, repository, test_id)
        span = Span(now - figures.WEEK, now)
        (test,) = lists.with_figures(session, home, [case.no], span)
        last = records.last_run(session, home, case)
        override = records.override_of(home, test.case)
        expires_at = None if override is Override.UNSPECIFIED else test.case.expires_at
        return Details(test, override, expires_at, case.first_run_at, last)

    return await runtime.store.read(found)
