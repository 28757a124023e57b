"""Issues of tests, and the tests that should have one (docs/design/quarantine.md)."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.codec import RowCodec
from service.testhealth.detector.ticketing import Opening, TicketIssue
from service.testhealth.store.cases import IS_UNHEALTHY, Place, keys_of
from service.testhealth.store.tables_tests import (
    CaseRow,
    TestSettingsRow,
    TicketIssueRow,
    TicketRow,
)

LOOKED_AT_ONCE = 100

issues = TicketIssueRow.__table__
cases = CaseRow.__table__
tickets = TicketRow.__table__
settings = TestSettingsRow.__table__

ISSUE = RowCodec(TicketIssue, issues, keys={"org_id", "repository_id"})

_put = upsert(issues)
PUT_ISSUE = _put.on_conflict_do_update(
    index_elements=["repository_id", "no"],
    set_={name: _put.excluded[name] for name in ISSUE.names if name != "no"},
)


def places(session: Connection) -> tuple[Place, ...]:
    """Return the repositories that want issues."""
    statement = (
        select(settings.c.org_id, settings.c.repository_id)
        .where(settings.c.ticket_issues.is_(True))
        .order_by(settings.c.repository_id)
    )
    return tuple(Place(row.org_id, row.repository_id) for row in session.execute(statement))


def issue_of(session: Connection, repository_id: int, no: int) -> TicketIssue | None:
    """Return the issue of a test, None if it has none."""
    row = session.execute(select(*ISSUE.columns).where(*_of_test(repository_id, no))).first()
    return None if row is None else ISSUE.value(row)


def put(session: Connection, place: Place, issue: TicketIssue) -> None:
    """Store the issue of a test."""
    session.execute(PUT_ISSUE, ISSUE.row(issue) | keys_of(place))


def forget(session: Connection, repository_id: int, no: int) -> None:
    """Delete the issue of a test here; the provider's stays."""
    session.execute(delete(issues).where(*_of_test(repository_id, no)))


def asked_since(session: Connection, repository_id: int, since: datetime) -> int:
    """Return how many issues were asked for after an instant."""
    statement = (
        select(func.count())
        .select_from(issues)
        .where(issues.c.repository_id == repository_id, issues.c.asked_at > since)
    )
    many: int = session.execute(statement).scalar_one()
    return many


def wanting(session: Connection, repository_id: int, wanted: Opening) -> Sequence[int]:
    """Return tests that should get an issue, most pull requests hit first; none has a ticket."""
    if not wanted.many:
        return ()
    has_issue, has_ticket = (
        select(table.c.no).where(
            table.c.repository_id == cases.c.repository_id, table.c.no == cases.c.no
        )
        for table in (issues, tickets)
    )
    statement = (
        select(cases.c.no)
        .where(
            cases.c.repository_id == repository_id,
            IS_UNHEALTHY,
            or_(cases.c.status_since <= wanted.since, cases.c.impact_rank <= -wanted.impact),
            cases.c.is_known.is_(True),
            ~has_issue.exists(),
            ~has_ticket.exists(),
        )
        .order_by(cases.c.impact_rank, cases.c.id)
        .limit(wanted.many)
    )
    return session.execute(statement).scalars().all()


def due(session: Connection, repository_id: int, now: datetime) -> Sequence[int]:
    """Return at most 100 tests whose issues are due for a look, the longest due first."""
    statement = (
        select(issues.c.no)
        .where(issues.c.repository_id == repository_id, issues.c.look_at <= now)
        .order_by(issues.c.look_at)
        .limit(LOOKED_AT_ONCE)
    )
    return session.execute(statement).scalars().all()


def put_off(session: Connection, repository_id: int, nos: Sequence[int], until: datetime) -> None:
    """Have these issues looked at again by an instant."""
    of_test = issues.c.no == bindparam("of_number")
    statement = update(issues).where(issues.c.repository_id == repository_id, of_test)
    if nos:
        session.execute(statement.values(look_at=until), [{"of_number": no} for no in nos])


def look_again(session: Connection, repository_id: int, at: datetime) -> None:
    """Have every issue of the repository looked at then."""
    statement = update(issues).where(issues.c.repository_id == repository_id)
    session.execute(statement.values(look_at=at))


def _of_test(repository_id: int, no: int) -> tuple[ColumnElement[bool], ...]:
    return issues.c.repository_id == repository_id, issues.c.no == no
