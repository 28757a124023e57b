"""How tests are, and how they became so: the present state, and a history that only grows."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import BindParameter, Connection, bindparam, desc, select, update

from service.database import bulk
from service.database.codec import RowCodec
from service.database.types import Utc
from service.testhealth.detector.health import NO_NUMBERS, Numbers
from service.testhealth.store import cases as test_cases
from service.testhealth.store.cases import Place, keys_of
from service.testhealth.store.tables_tests import CaseRow, CaseStateEventRow, CaseStateRow
from service.vocabulary import Actor, ActorKind, Flag, Health

DETECTOR = Actor(ActorKind.SYSTEM, login="detector")
"""Whoever judges by evidence; it is told apart from people by its kind."""


WRITTEN_MAX = 1000
"""Entries of one instant that are looked at."""


class ChangeKind(StrEnum):
    """A change that happened, or one of the past that late or deleted data changed.

    FLAGGED and UNFLAGGED are a person's word, and what takes it back.
    """

    CHANGED = "changed"
    CORRECTED = "corrected"
    FLAGGED = "flagged"
    UNFLAGGED = "unflagged"


@dataclass(frozen=True, slots=True)
class StoredSettled:
    """What was concluded from evidence that is gone; `broken`: branch, job key, since when."""

    at: datetime
    since: datetime | None = None
    epoch: datetime | None = None
    broken: tuple[tuple[str, str, datetime], ...] = ()


@dataclass(frozen=True, slots=True)
class CaseState:
    """How a test is; `numbers` are what it was judged by, `flag` what a person says of it."""

    no: int
    value: Health
    reason: str
    since: datetime
    is_stale: bool = False
    numbers: Numbers = NO_NUMBERS
    settled: StoredSettled | None = None
    flag: Flag = Flag.NONE
    flag_reason: str = ""
    flagged_by: str = ""
    flagged_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StateChange:
    """An entry of a test's history; `at` is the time of the evidence or of a person's word."""

    no: int
    at: datetime
    written_at: datetime
    previous: Health
    value: Health
    reason: str
    actor_kind: ActorKind
    actor_login: str
    kind: ChangeKind = ChangeKind.CHANGED


states = CaseStateRow.__table__
events = CaseStateEventRow.__table__
cases = CaseRow.__table__

STATE = RowCodec(CaseState, states, keys={"org_id", "repository_id"})
CHANGE = RowCodec(StateChange, events, keys={"id", "org_id", "repository_id"})

_HERE: BindParameter[int] = bindparam("of_repository")
_NUMBER: BindParameter[int] = bindparam("of_number")

SELECT_STATE = select(*STATE.columns).where(states.c.repository_id == _HERE, states.c.no == _NUMBER)
_KEYS = ("org_id", "repository_id")
_put = bulk.inserted(states, STATE.columns, [states.c[name] for name in _KEYS])
PUT_STATES = _put.on_conflict_do_update(
    index_elements=["repository_id", "no"],
    set_={name: _put.excluded[name] for name in STATE.names if name != "no"},
)
COPY_STATE = (
    update(cases)
    .where(cases.c.repository_id == _HERE, cases.c.no == _NUMBER)
    .values(status=bindparam("to_status"), status_since=bindparam("to_since"))
)
INSERT_CHANGES = bulk.inserted(events, CHANGE.columns, [events.c[name] for name in _KEYS])
_OF_CASE = (events.c.repository_id == _HERE, events.c.no == _NUMBER)
SELECT_HISTORY = select(*CHANGE.columns).where(*_OF_CASE).order_by(events.c.id)
SELECT_RECENT = (
    select(*CHANGE.columns).where(*_OF_CASE).order_by(desc(events.c.id)).limit(bindparam("at_most"))
)
SELECT_WRITTEN = (
    select(events.c.no, events.c.previous, events.c.value)
    .where(
        events.c.repository_id == _HERE,
        events.c.written_at == bindparam("at", type_=Utc),
        events.c.actor_kind == ActorKind.SYSTEM.value,
    )
    .order_by(events.c.id)
    .limit(WRITTEN_MAX)
)


def state(session: Connection, repository_id: int, no: int) -> CaseState | None:
    """How the test is; None while nobody has judged or flagged it: it counts as healthy."""
    told = {"of_repository": repository_id, "of_number": no}
    row = session.execute(SELECT_STATE, told).first()
    return None if row is None else STATE.value(row)


def put(session: Connection, place: Place, *now: CaseState) -> None:
    """Store how tests are, one state each, and the copies by which lists are ordered."""
    common = bulk.same(**keys_of(place))
    for some in bulk.parts(now):
        told = bulk.told(tuple(STATE.row(each).values()) for each in some)
        session.execute(PUT_STATES, told | common)
    copied = [
        {
            "of_repository": place.repository_id,
            "of_number": each.no,
            "to_status": each.value.value,
            "to_since": each.since,
        }
        for each in now
    ]
    if copied:
        session.execute(COPY_STATE, copied)
        test_cases.note_change(session, place.repository_id)


def note(session: Connection, place: Place, *changes: StateChange) -> None:
    """Add to the history, in this order."""
    common = bulk.same(**keys_of(place))
    for some in bulk.parts(changes):
        told = bulk.told(tuple(CHANGE.row(each).values()) for each in some)
        session.execute(INSERT_CHANGES, told | common)


def history(session: Connection, repository_id: int, no: int) -> tuple[StateChange, ...]:
    """All that was noted of the test, oldest first."""
    told = {"of_repository": repository_id, "of_number": no}
    return tuple(CHANGE.value(row) for row in session.execute(SELECT_HISTORY, told))


def recent(
    session: Connection, repository_id: int, no: int, at_most: int
) -> tuple[StateChange, ...]:
    """What was noted of the test last, newest first."""
    told = {"of_repository": repository_id, "of_number": no, "at_most": at_most}
    return tuple(CHANGE.value(row) for row in session.execute(SELECT_RECENT, told))


def written_at(
    session: Connection, repository_id: int, at: datetime
) -> dict[int, tuple[Health, Health]]:
    """Number of each test that was judged another way at this instant → before and after.

    Of the first 1,000 entries of the history that evidence made then.
    """
    found: dict[int, tuple[Health, Health]] = {}
    told = {"of_repository": repository_id, "at": at}
    for no, previous, value in session.execute(SELECT_WRITTEN, told):
        before = found[no][0] if no in found else Health(previous)
        found[no] = (before, Health(value))
    return {no: (before, after) for no, (before, after) in found.items() if before is not after}
