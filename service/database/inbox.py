"""Deliveries, stored before they are answered and processed once, in order within each lane.

A lane has the deliveries of one repository. One process at a time claims it, takes its oldest
deliveries, and settles them; a claim reads nothing of other lanes. Rows are selected by state and
time, never by a last seen id: a lower id may commit later.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Row,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.tables_deliveries import (
    IS_FREE_LANE,
    InboxBodyRow,
    InboxLaneRow,
    InboxRow,
)
from service.database.types import Utc
from service.provider.signals import Delivery

CLAIM = timedelta(hours=1)
"""The duration of a claim of a lane: longer than any work on its deliveries.

The claims of an instance that is gone, or that none of its tasks owns, are released before.
"""

BUNCH_MAX = 64
"""Deliveries of a lane that are taken at once; a turn takes as many inputs."""

SMALL_BYTES = 256 * 1024
"""A delivery with a larger body is taken alone, so that a bunch fits into memory."""

BUSY = timedelta(seconds=1)
"""The time until a lane is looked at again in which a program that knows no lanes works."""

NOTE_LENGTH_MAX = 500


class InboxState(StrEnum):
    """The state of a delivery."""

    OPEN = "open"
    DONE = "done"
    POISONED = "poisoned"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A delivery was stored. `is_awaited`: the process that works on its lane goes on with it."""

    is_awaited: bool


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A delivery to work on; `attempts` counts this one."""

    id: int
    attempts: int
    delivery: Delivery


@dataclass(frozen=True, slots=True)
class ClaimedLane:
    """A lane to work on, with its oldest open deliveries in order.

    `arrivals` counts the deliveries that it has ever had, as of this claim; `has_more`: others are
    known to wait behind these.
    """

    id: int
    deliveries: tuple[ClaimedDelivery, ...]
    arrivals: int
    has_more: bool


inbox = InboxRow.__table__
lanes = InboxLaneRow.__table__
bodies = InboxBodyRow.__table__

INSERT = (
    upsert(inbox)
    .values(
        state=InboxState.OPEN.value,
        is_open=True,
        attempts=0,
        **{
            name: bindparam(name)
            for name in (
                "host",
                "delivery_id",
                "event",
                "action",
                "repository_id",
                "lane",
                "received_at",
                "next_at",
            )
        },
    )
    .on_conflict_do_nothing(index_elements=["host", "delivery_id"])
    .returning(inbox.c.id)
)
# The trigger of the first statement holds the lane by then: whoever has claimed it goes on with it.
INSERT_BODY = insert(bodies).returning(
    select(lanes.c.claimed_by).where(lanes.c.lane == bindparam("of_lane")).scalar_subquery()
)

_IS_OPEN = inbox.c.is_open.is_(True)
_BY: BindParameter[str] = bindparam("by")
_NOW: BindParameter[datetime] = bindparam("now", type_=Utc)
_LANES: BindParameter[int] = bindparam("of_lanes", expanding=True)
_IDS: BindParameter[int] = bindparam("ids", expanding=True)
_IS_MINE = (lanes.c.id == bindparam("of_lane")) & (lanes.c.claimed_by == _BY)
_OF_LANES = inbox.c.lane.in_(select(lanes.c.lane).where(lanes.c.id.in_(_LANES)))

# Machines that share PostgreSQL may have different clocks, so a claim is dated by its clock.
_CLOCKS: dict[str, ColumnElement[datetime]] = {
    "sqlite": _NOW,
    "postgresql": func.clock_timestamp(type_=Utc),
}
_due = (
    select(lanes.c.id)
    .where(IS_FREE_LANE, lanes.c.due_at <= _NOW)
    .order_by(lanes.c.due_at)
    .limit(bindparam("at_most"))
    .with_for_update(skip_locked=True)
    .cte("due")
)
CLAIM_LANES = {
    dialect: update(lanes)
    .where(lanes.c.id.in_(select(_due.c.id)))
    .values(claimed_by=_BY, claimed_at=clock)
    .returning(lanes.c.id, lanes.c.arrivals)
    for dialect, clock in _CLOCKS.items()
}
KEEP_LANE = {
    dialect: update(lanes)
    .where(_IS_MINE)
    .values(claimed_at=clock)
    .returning(lanes.c.id, lanes.c.arrivals)
    for dialect, clock in _CLOCKS.items()
}
# A delivery that was stored since the deliveries of the lane were read keeps it due.
IDLE_LANE = (
    update(lanes)
    .where(_IS_MINE, lanes.c.arrivals == bindparam("seen"))
    .values(due_at=None, claimed_by=None, claimed_at=None)
)
FREE_LANE = (
    update(lanes).where(_IS_MINE).values(due_at=bindparam("due"), claimed_by=None, claimed_at=None)
)
SELECT_NEXT_DUE = select(func.min(lanes.c.due_at, type_=Utc)).where(IS_FREE_LANE)

_other = inbox.alias("other")
_last_of_bunch = (
    select(_other.c.id)
    .where(_other.c.lane == lanes.c.lane, _other.c.is_open.is_(True))
    .order_by(_other.c.id)
    .limit(1)
    .offset(BUNCH_MAX)
    .correlate(lanes)
    .scalar_subquery()
)
_size = func.length(bodies.c.body)
_small_body = case((_size <= SMALL_BYTES, bodies.c.body)).label("body")
# The oldest open deliveries of each lane, one more than are taken.
SELECT_WAITING = (
    select(inbox, lanes.c.id.label("lane_id"), _small_body)
    .select_from(lanes)
    .join(inbox, inbox.c.lane == lanes.c.lane)
    .join(bodies, bodies.c.inbox_id == inbox.c.id)
    .where(
        lanes.c.id.in_(_LANES),
        _IS_OPEN,
        inbox.c.id <= func.coalesce(_last_of_bunch, literal_column(str(2**62))),
    )
    .order_by(inbox.c.id)
)
SELECT_BODY = select(bodies.c.body).where(bodies.c.inbox_id == bindparam("of_id"))
_is_free = (
    (inbox.c.claimed_until.is_(None))
    | (inbox.c.claimed_until <= _NOW)
    | (inbox.c.claimed_by == _BY)
)
CLAIM_ROWS = (
    update(inbox)
    .where(inbox.c.id.in_(_IDS), _IS_OPEN, _is_free)
    .values(claimed_until=bindparam("until"), claimed_by=_BY)
    .returning(inbox.c.id)
)
_IS_CLAIMED_ROW = _IS_OPEN & inbox.c.claimed_until.is_not(None)
# A program that knows no lanes may have claimed others of the same lane: it works on them.
FREE_ROWS = (
    update(inbox)
    .where(_OF_LANES, _IS_CLAIMED_ROW, inbox.c.claimed_by == _BY)
    .values(claimed_until=None)
)
SETTLE = (
    update(inbox)
    .where(inbox.c.id.in_(_IDS), _IS_OPEN)
    .values(state=bindparam("state"), is_open=False, claimed_until=None, note=bindparam("note"))
    .returning(inbox.c.id)
)
DELETE_BODIES = delete(bodies).where(bodies.c.inbox_id.in_(_IDS))
RETRY = (
    update(inbox)
    .where(inbox.c.id == bindparam("of_id"), _IS_OPEN)
    .values(
        attempts=bindparam("counted"),
        next_at=bindparam("next_at"),
        claimed_until=None,
        note=bindparam("note"),
    )
)
_LIVING: BindParameter[str] = bindparam("living", expanding=True)
_IS_CLAIMED = lanes.c.claimed_by.is_not(None)
RELEASE = (
    update(lanes)
    .where(
        _IS_CLAIMED,
        (lanes.c.claimed_by.not_in(_LIVING)) | (lanes.c.claimed_at <= bindparam("before")),
    )
    .values(claimed_by=None, claimed_at=None)
    .returning(lanes.c.id)
)
# Claims of programs that know no lanes too.
RELEASE_ROWS = (
    update(inbox)
    .where(
        _IS_CLAIMED_ROW,
        (inbox.c.claimed_by.is_(None)) | (inbox.c.claimed_by.not_in(_LIVING)),
    )
    .values(claimed_until=None)
)
RELEASE_ROWS_OF_LANES = RELEASE_ROWS.where(_OF_LANES)
_OWNED: BindParameter[int] = bindparam("owned", expanding=True)
RELEASE_UNOWNED = (
    update(lanes)
    .where(_IS_CLAIMED, lanes.c.claimed_by == _BY, lanes.c.id.not_in(_OWNED))
    .values(claimed_by=None, claimed_at=None)
    .returning(lanes.c.id)
)

SELECT_KNOWN = select(inbox.c.delivery_id).where(
    inbox.c.host == bindparam("of_host"),
    inbox.c.delivery_id.in_(bindparam("ids", expanding=True)),
)
ASKED_AT_ONCE = 1000


def accept(session: Connection, delivery: Delivery) -> Accepted | None:
    """Store a delivery; return None, without a change, if its (host, id) is known."""
    lane = f"{delivery.host}/{delivery.repository_id or ''}"
    row_id = session.execute(
        INSERT,
        {
            "host": delivery.host,
            "delivery_id": delivery.id,
            "event": delivery.event,
            "action": delivery.action,
            "repository_id": delivery.repository_id,
            "lane": lane,
            "received_at": delivery.received_at,
            "next_at": delivery.received_at,
        },
    ).scalar_one_or_none()
    if row_id is None:
        return None
    body = {"inbox_id": row_id, "body": delivery.body, "of_lane": lane}
    claimed_by = session.execute(INSERT_BODY, body).scalar_one()
    return Accepted(is_awaited=claimed_by is not None)


def stored_ids(session: Connection, host: str, ids: Sequence[str]) -> frozenset[str]:
    """Return which of these deliveries of a host were received, in whatever state they are."""
    found: set[str] = set()
    for start in range(0, len(ids), ASKED_AT_ONCE):
        part = ids[start : start + ASKED_AT_ONCE]
        found.update(session.execute(SELECT_KNOWN, {"of_host": host, "ids": part}).scalars())
    return frozenset(found)


def claim(session: Connection, by: str, now: datetime, limit: int) -> tuple[ClaimedLane, ...]:
    """Claim lanes whose oldest open delivery is due, at most `limit`, the longest due first.

    Each comes with its oldest deliveries, at most `BUNCH_MAX`. What waits in other lanes costs
    nothing.
    """
    due = {"now": now, "by": by, "at_most": limit}
    claimed = session.execute(CLAIM_LANES[session.dialect.name], due).all()
    return _bunches(session, by, now, {row.id: row.arrivals for row in claimed})


def proceed(session: Connection, done: ClaimedLane, by: str, now: datetime) -> ClaimedLane | None:
    """Return the next deliveries of a lane whose claimed ones are settled.

    None if there are none: then the lane is free. None as well if the claim was lost.
    """
    mine = {"of_lane": done.id, "by": by, "now": now, "seen": done.arrivals}
    if not done.has_more and session.execute(IDLE_LANE, mine).rowcount:
        return None
    kept = session.execute(KEEP_LANE[session.dialect.name], mine).one_or_none()
    if kept is None:
        return None
    bunches = _bunches(session, by, now, {kept.id: kept.arrivals})
    return bunches[0] if bunches else None


def give_back(session: Connection, by: str, lane: int, due_at: datetime) -> None:
    """Free a claimed lane, and what is open of it, until `due_at`. Skips one that `by` has lost."""
    mine = {"of_lane": lane, "by": by, "due": due_at}
    if session.execute(FREE_LANE, mine).rowcount:
        session.execute(FREE_ROWS, {"of_lanes": [lane], "by": by})


def _bunches(
    session: Connection, by: str, now: datetime, arrivals: Mapping[int, int]
) -> tuple[ClaimedLane, ...]:
    """Take the oldest deliveries of lanes that were just claimed; free those that must wait."""
    if not arrivals:
        return ()
    waiting: dict[int, list[Row[*tuple[object, ...]]]] = {lane: [] for lane in arrivals}
    for row in session.execute(SELECT_WAITING, {"of_lanes": list(arrivals)}):
        waiting[row.lane_id].append(row)
    bunches = {lane: _bunch(rows, by, now) for lane, rows in waiting.items()}
    ids = [row.id for bunch in bunches.values() for row in bunch]
    claimed = {"ids": ids, "by": by, "now": now, "until": now + CLAIM}
    got = set(session.execute(CLAIM_ROWS, claimed).scalars()) if ids else set()
    taken = []
    for lane, bunch in bunches.items():
        rows = waiting[lane]
        if bunch and all(row.id in got for row in bunch):
            deliveries = tuple(_claimed(session, row) for row in bunch)
            has_more = len(rows) > len(bunch)
            taken.append(ClaimedLane(lane, deliveries, arrivals[lane], has_more))
        elif rows:
            # The first one is not due, or a program that knows no lanes has it.
            is_due = rows[0].next_at <= now
            give_back(session, by, lane, now + BUSY if is_due else rows[0].next_at)
        else:
            session.execute(IDLE_LANE, {"of_lane": lane, "by": by, "seen": arrivals[lane]})
    return tuple(sorted(taken, key=lambda each: each.deliveries[0].id))


def _bunch(
    rows: Sequence[Row[*tuple[object, ...]]], by: str, now: datetime
) -> list[Row[*tuple[object, ...]]]:
    """Return the first deliveries that are due and free; one with a large body is alone."""
    bunch: list[Row[*tuple[object, ...]]] = []
    for row in rows[:BUNCH_MAX]:
        is_held = row.claimed_until is not None and row.claimed_until > now and row.claimed_by != by
        if row.next_at > now or is_held or (row.body is None and bunch):
            break
        bunch.append(row)
        if row.body is None:
            break
    return bunch


def _claimed(session: Connection, row: Row[*tuple[object, ...]]) -> ClaimedDelivery:
    body = row.body
    if body is None:
        body = session.execute(SELECT_BODY, {"of_id": row.id}).scalar_one()
    delivery = Delivery(
        host=row.host,
        id=row.delivery_id,
        event=row.event,
        action=row.action,
        repository_id=row.repository_id,
        body=body,
        received_at=row.received_at,
    )
    return ClaimedDelivery(row.id, row.attempts + 1, delivery)


def next_due(session: Connection) -> datetime | None:
    """Return when the next lane may be claimed; None if no delivery waits."""
    due: datetime | None = session.execute(SELECT_NEXT_DUE).scalar_one()
    return due


def settle(session: Connection, row_ids: Sequence[int], note: str) -> None:
    """End deliveries as processed; `note` says how (`ignored`). Idempotent.

    Deletes their bodies, which nothing reads any more; their ids stay and make copies known.
    """
    closed = _close(session, row_ids, InboxState.DONE, note)
    if closed:
        session.execute(DELETE_BODIES, {"ids": closed})


def poison(session: Connection, row_id: int, error: str) -> None:
    """Park a delivery with its last error; its lane goes on. Its body stays for days."""
    _close(session, [row_id], InboxState.POISONED, error)


def _close(
    session: Connection, row_ids: Sequence[int], state: InboxState, note: str
) -> Sequence[int]:
    """End those deliveries that are open; return them."""
    value = {"ids": list(row_ids), "state": state.value, "note": note[:NOTE_LENGTH_MAX]}
    return session.execute(SETTLE, value).scalars().all()


def retry(session: Connection, row_id: int, next_at: datetime, attempts: int, error: str) -> None:
    """Have a delivery wait until `next_at` with so many attempts counted; so waits its lane."""
    values = {"next_at": next_at, "counted": attempts, "note": error[:NOTE_LENGTH_MAX]}
    session.execute(RETRY, {"of_id": row_id, **values})


def release(session: Connection, living: Sequence[str], at: datetime, *, thorough: bool) -> int:
    """Free the lanes of instances that are not in `living`, and those claimed an hour before `at`.

    `at` is by the database's clock. `thorough`: also what programs that know no lanes had claimed.
    Returns how many there were.
    """
    gone = {"living": living, "before": at - CLAIM}
    freed = session.execute(RELEASE, gone).scalars().all()
    if thorough:
        return max(len(freed), session.execute(RELEASE_ROWS, gone).rowcount)
    if freed:
        session.execute(RELEASE_ROWS_OF_LANES, {"of_lanes": freed, "living": living})
    return len(freed)


def release_unowned(session: Connection, by: str, owned: Collection[int]) -> int:
    """Free the lanes that `by` has claimed and none of its tasks owns; return how many.

    `owned` are the ids of lanes that its tasks own.
    """
    told = {"by": by, "owned": list(owned)}
    freed = session.execute(RELEASE_UNOWNED, told).scalars().all()
    if freed:
        session.execute(FREE_ROWS, {"of_lanes": freed, "by": by})
    return len(freed)
