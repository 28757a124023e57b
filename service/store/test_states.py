"""How tests are, and how they became so: the present state, and a history that only grows."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import BindParameter, Connection, bindparam, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.flaky.health import NO_NUMBERS, Numbers
from service.store import test_cases
from service.store.codec import RowCodec
from service.store.tables.tests import CaseRow, CaseStateEventRow, CaseStateRow
from service.store.test_cases import Place
from service.vocabulary import Actor, ActorKind, Flag, Health

DETECTOR = Actor(ActorKind.SYSTEM, login="detector")
"""Whoever judges by evidence; it is told apart from people by its kind."""


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
_put = upsert(states)
PUT_STATE = _put.on_conflict_do_update(
    index_elements=["repository_id", "no"],
    set_={name: _put.excluded[name] for name in STATE.names if name != "no"},
)
COPY_STATE = (
    update(cases)
    .where(cases.c.repository_id == _HERE, cases.c.no == _NUMBER)
    .values(status=bindparam("to_status"), status_since=bindparam("to_since"))
)
INSERT_CHANGE = insert(events)
_OF_CASE = (events.c.repository_id == _HERE, events.c.no == _NUMBER)
SELECT_HISTORY = select(*CHANGE.columns).where(*_OF_CASE).order_by(events.c.id)


def state(session: Connection, repository_id: int, no: int) -> CaseState | None:
    """How the test is; None while nobody has judged or flagged it: it counts as healthy."""
    told = {"of_repository": repository_id, "of_number": no}
    row = session.execute(SELECT_STATE, told).first()
    return None if row is None else STATE.value(row)


def put(session: Connection, place: Place, now: CaseState) -> None:
    """Store how the test is, and the copies by which lists are ordered."""
    session.execute(PUT_STATE, STATE.row(now) | _keys(place))
    copied = {"to_status": now.value.value, "to_since": now.since}
    session.execute(
        COPY_STATE, copied | {"of_repository": place.repository_id, "of_number": now.no}
    )
    test_cases.note_change(session, place.repository_id)


def note(session: Connection, place: Place, change: StateChange) -> None:
    """Add to the history."""
    session.execute(INSERT_CHANGE, CHANGE.row(change) | _keys(place))


def history(session: Connection, repository_id: int, no: int) -> tuple[StateChange, ...]:
    """All that was noted of the test, oldest first."""
    told = {"of_repository": repository_id, "of_number": no}
    return tuple(CHANGE.value(row) for row in session.execute(SELECT_HISTORY, told))


def _keys(place: Place) -> dict[str, int]:
    return {"org_id": place.org_id, "repository_id": place.repository_id}
