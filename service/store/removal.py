"""Tests and counts when an upload is taken out: what others still say of them stands."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, select, update

from service.flaky import figures
from service.flaky.results import Outcome
from service.store import bulk, test_evidence
from service.store.codec import JsonCodec
from service.store.direct import Direct
from service.store.tables.tests import CaseRow
from service.store.test_cases import Place
from service.store.test_evidence import attempts, group_days, impacts, uploads
from service.store.types import Utc

cases = CaseRow.__table__
PRS: JsonCodec[tuple[int, ...]] = JsonCodec(tuple[int, ...])

_OF_CASE = (
    cases.c.repository_id == bindparam("of_repository"),
    cases.c.no == bindparam("of_number"),
)
SELECT_FAILED = (
    select(attempts.c.ran_at, uploads.c.prs)
    .join(uploads, uploads.c.id == attempts.c.upload)
    .where(
        attempts.c.repository_id == bindparam("of_repository"),
        attempts.c.no == bindparam("of_number"),
        attempts.c.outcome == Outcome.FAILED.value,
    )
)
DELETE_IMPACT = delete(impacts).where(
    impacts.c.repository_id == bindparam("of_repository"),
    impacts.c.no == bindparam("of_number"),
    impacts.c.pr == bindparam("of_pr"),
)
COUNT_LESS = (
    update(group_days)
    .where(
        group_days.c.repository_id == bindparam("of_repository"),
        group_days.c.no == bindparam("of_number"),
        group_days.c.key == bindparam("of_key"),
        group_days.c.day == bindparam("of_day"),
    )
    .values(count=group_days.c.count - 1)
)
SELECT_DOUBTFUL = Direct(
    select(cases.c.no).where(
        cases.c.repository_id == bindparam("of_repository"),
        bulk.among(cases.c.no, "of_numbers"),
        (cases.c.first_run_at >= bindparam("since", type_=Utc))
        | (cases.c.last_run_at == bindparam("at", type_=Utc))
        | (cases.c.last_failed_at == bindparam("at", type_=Utc)),
    )
)
UNKNOW = (
    update(cases)
    .where(*_OF_CASE, cases.c.first_run_at >= bindparam("since", type_=Utc))
    .values(is_known=False)
)
RENEW_FIRST = (
    update(cases)
    .where(*_OF_CASE, cases.c.first_run_at >= bindparam("since", type_=Utc))
    .values(first_run_at=bindparam("to_first", type_=Utc), ever_passed=bindparam("to_passed"))
)
RENEW_LAST = (
    update(cases)
    .where(*_OF_CASE)
    .values(
        last_run_at=bindparam("to_last", type_=Utc),
        last_failed_at=bindparam("to_failed", type_=Utc),
    )
)


class Lasting(NamedTuple):
    """When a test ran, by the uploads that are left; None: in none of them."""

    first: datetime | None
    last: datetime | None
    failed: datetime | None
    has_passed: bool


def renew_impacts(
    session: Connection, place: Place, hit: Iterable[tuple[int, int]], now: datetime
) -> None:
    """Say anew when these tests last failed for these pull requests."""
    for no, pr in sorted(hit):
        told = {"of_repository": place.repository_id, "of_number": no}
        found = session.execute(SELECT_FAILED, told).all()
        session.execute(DELETE_IMPACT, told | {"of_pr": pr})
        times = [ran_at for ran_at, prs in found if pr in PRS.decode(prs)]
        # Without any other failure the figure of the list is to follow all the same.
        at = max(times, default=now - 2 * figures.WEEK)
        test_evidence.note_impact(session, place, [(no, pr)], at, now)
        if not times:
            session.execute(DELETE_IMPACT, told | {"of_pr": pr})


def count_less(
    session: Connection, repository_id: int, failed: Iterable[tuple[int, str]], day: int
) -> None:
    """Count failed attempts no more: number of the test and key of the group, each once."""
    told = [
        {"of_repository": repository_id, "of_number": no, "of_key": key, "of_day": day}
        for no, key in failed
    ]
    if told:
        session.execute(COUNT_LESS, told)


def doubtful(
    session: Connection, repository_id: int, nos: Iterable[int], edges: tuple[datetime, datetime]
) -> list[int]:
    """Those of the tests whose first or last run may have been one `at` an instant.

    `edges` are that instant, and since when first runs are told by uploads that are stored.
    """
    at, since = edges
    told = {"of_repository": repository_id, "at": at, "since": since}
    return [
        no
        for some in bulk.parts(sorted(nos))
        for (no,) in SELECT_DOUBTFUL.rows(session, told | {"of_numbers": some})
    ]


def renew_cases(
    session: Connection, repository_id: int, lasting: Mapping[int, Lasting], since: datetime
) -> None:
    """Say anew when tests ran; one that nobody ran is unknown, unless it ran before `since`."""
    for no, found in sorted(lasting.items()):
        told = {"of_repository": repository_id, "of_number": no}
        if found.first is None:
            session.execute(UNKNOW, told | {"since": since})
            continue
        first = {"since": since, "to_first": found.first, "to_passed": found.has_passed}
        session.execute(RENEW_FIRST, told | first)
        session.execute(RENEW_LAST, told | {"to_last": found.last, "to_failed": found.failed})
