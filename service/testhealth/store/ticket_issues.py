"""Issues that are kept of tests, and which tests are to have one (FLAKY.md 8)."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import BindParameter, Connection, bindparam, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.codec import RowCodec
from service.database.types import Utc
from service.testhealth.detector.settings import UNHEALTHY
from service.testhealth.detector.ticketing import Opening, TicketIssue
from service.testhealth.store.cases import Place
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

_HERE: BindParameter[int] = bindparam("of_repository")
_NUMBER: BindParameter[int] = bindparam("of_number")
_OF_CASE = (issues.c.repository_id == _HERE, issues.c.no == _NUMBER)

SELECT_ISSUE = select(*ISSUE.columns).where(*_OF_CASE)
DELETE_ISSUE = delete(issues).where(*_OF_CASE)
_issue = upsert(issues)
PUT_ISSUE = _issue.on_conflict_do_update(
    index_elements=["repository_id", "no"],
    set_={name: _issue.excluded[name] for name in ISSUE.names if name != "no"},
)
COUNT_ASKED = (
    select(func.count())
    .select_from(issues)
    .where(issues.c.repository_id == _HERE, issues.c.asked_at > bindparam("since", type_=Utc))
)
_has_issue = select(issues.c.no).where(
    issues.c.repository_id == cases.c.repository_id, issues.c.no == cases.c.no
)
_has_ticket = select(tickets.c.no).where(
    tickets.c.repository_id == cases.c.repository_id, tickets.c.no == cases.c.no
)
SELECT_WANTING = (
    select(cases.c.no)
    .where(
        cases.c.repository_id == _HERE,
        cases.c.status.in_([each.value for each in UNHEALTHY]),
        or_(
            cases.c.status_since <= bindparam("since", type_=Utc),
            cases.c.impact_rank <= bindparam("of_rank"),
        ),
        cases.c.is_known.is_(True),
        ~_has_issue.exists(),
        ~_has_ticket.exists(),
    )
    .order_by(cases.c.impact_rank, cases.c.id)
    .limit(bindparam("at_most"))
)
SELECT_DUE = (
    select(issues.c.no)
    .where(issues.c.repository_id == _HERE, issues.c.look_at <= bindparam("now", type_=Utc))
    .order_by(issues.c.look_at)
    .limit(LOOKED_AT_ONCE)
)
PUT_OFF = update(issues).where(*_OF_CASE).values(look_at=bindparam("to_time"))
LOOK_AGAIN = (
    update(issues).where(issues.c.repository_id == _HERE).values(look_at=bindparam("to_time"))
)
SELECT_PLACES = (
    select(settings.c.org_id, settings.c.repository_id)
    .where(settings.c.ticket_issues.is_(True))
    .order_by(settings.c.repository_id)
)


def places(session: Connection) -> tuple[Place, ...]:
    """Repositories that want issues."""
    return tuple(Place(row.org_id, row.repository_id) for row in session.execute(SELECT_PLACES))


def issue_of(session: Connection, repository_id: int, no: int) -> TicketIssue | None:
    """What is remembered of a test's issue, None: it has none."""
    row = session.execute(SELECT_ISSUE, {"of_repository": repository_id, "of_number": no}).first()
    return None if row is None else ISSUE.value(row)


def put(session: Connection, place: Place, issue: TicketIssue) -> None:
    """Remember this of a test's issue."""
    keys = {"org_id": place.org_id, "repository_id": place.repository_id}
    session.execute(PUT_ISSUE, ISSUE.row(issue) | keys)


def forget(session: Connection, repository_id: int, no: int) -> None:
    """The test has no issue."""
    session.execute(DELETE_ISSUE, {"of_repository": repository_id, "of_number": no})


def asked_since(session: Connection, repository_id: int, since: datetime) -> int:
    """How many issues were asked for after this."""
    told = {"of_repository": repository_id, "since": since}
    many: int = session.execute(COUNT_ASKED, told).scalar_one()
    return many


def wanting(session: Connection, repository_id: int, wanted: Opening) -> Sequence[int]:
    """Tests that are to get an issue, most pull requests hit first; none that has a ticket."""
    told = {
        "of_repository": repository_id,
        "since": wanted.since,
        "of_rank": -wanted.impact,
        "at_most": wanted.many,
    }
    return session.execute(SELECT_WANTING, told).scalars().all() if wanted.many else ()


def due(session: Connection, repository_id: int, now: datetime) -> Sequence[int]:
    """Tests whose issues are to be looked at, at most 100, the longest due first."""
    told = {"of_repository": repository_id, "now": now}
    return session.execute(SELECT_DUE, told).scalars().all()


def put_off(session: Connection, repository_id: int, nos: Sequence[int], until: datetime) -> None:
    """Look at these issues again by then."""
    told = [{"of_repository": repository_id, "of_number": no, "to_time": until} for no in nos]
    if told:
        session.execute(PUT_OFF, told)


def look_again(session: Connection, repository_id: int, at: datetime) -> None:
    """Look at every issue of the repository then: nobody has for a while."""
    session.execute(LOOK_AGAIN, {"of_repository": repository_id, "to_time": at})
