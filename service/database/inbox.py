"""Deliveries, stored before they are answered and processed once, in order within each lane.

Rows are selected by state and time, never by a last seen id: a lower id may commit later.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import (
    BindParameter,
    Connection,
    Text,
    bindparam,
    case,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.tables_deliveries import IS_POISONED, InboxBodyRow, InboxRow
from service.database.types import Utc
from service.provider.signals import Delivery

CLAIM = timedelta(hours=1)
"""The duration of a claim of a delivery: longer than any work on one.

The claims of an instance that is gone, or that none of its tasks owns, are released before.
"""

NOTE_LENGTH_MAX = 500


class InboxState(StrEnum):
    """The state of a delivery."""

    OPEN = "open"
    DONE = "done"
    POISONED = "poisoned"


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A delivery to work on; `lane` keeps the order within one repository.

    `attempts` counts this one.
    """

    id: int
    lane: str
    attempts: int
    delivery: Delivery


inbox = InboxRow.__table__
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
INSERT_BODY = insert(bodies)

# The first open row of each lane, found by stepping from lane to lane through the index
# instead of looking at every waiting row.
_IS_OPEN = inbox.c.is_open.is_(True)
_lanes = (
    select(func.min(inbox.c.lane, type_=Text).label("lane"))
    .where(_IS_OPEN)
    .cte("lanes", recursive=True)
)
_next_lane = (
    select(func.min(inbox.c.lane, type_=Text))
    .where(_IS_OPEN, inbox.c.lane > _lanes.c.lane)
    .correlate(_lanes)
    .scalar_subquery()
)
_lanes = _lanes.union_all(select(_next_lane).where(_lanes.c.lane.is_not(None)))
_first_of_lane = (
    select(func.min(inbox.c.id))
    .where(_IS_OPEN, inbox.c.lane == _lanes.c.lane)
    .correlate(_lanes)
    .scalar_subquery()
)
_heads = select(_first_of_lane.label("id")).where(_lanes.c.lane.is_not(None)).subquery("heads")
_is_free = (inbox.c.claimed_until.is_(None)) | (inbox.c.claimed_until <= bindparam("now"))
SELECT_DUE = (
    select(inbox.c.id)
    .join(_heads, _heads.c.id == inbox.c.id)
    .where(_IS_OPEN, inbox.c.next_at <= bindparam("now"), _is_free)
    .order_by(inbox.c.id)
    .limit(bindparam("at_most"))
)
_is_claimed_longer = inbox.c.claimed_until > inbox.c.next_at
_free_at = case((_is_claimed_longer, inbox.c.claimed_until), else_=inbox.c.next_at)
SELECT_NEXT_DUE = (
    select(func.min(_free_at, type_=Utc))
    .join_from(inbox, _heads, _heads.c.id == inbox.c.id)
    .where(_IS_OPEN)
)
SELECT_BEHIND = select(select(inbox.c.id).where(_IS_OPEN, inbox.c.claimed_until.is_(None)).exists())
CLAIM_DUE = (
    update(inbox)
    .where(
        inbox.c.id.in_(bindparam("ids", expanding=True)),
        _IS_OPEN,
        inbox.c.next_at <= bindparam("now"),
        _is_free,
    )
    .values(
        attempts=inbox.c.attempts + 1,
        claimed_until=bindparam("until"),
        claimed_by=bindparam("by"),
    )
    .returning(inbox.c.id)
)
SELECT_CLAIMED = (
    select(inbox, bodies.c.body)
    .join(bodies, bodies.c.inbox_id == inbox.c.id)
    .where(inbox.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(inbox.c.id)
)
SETTLE = (
    update(inbox)
    .where(inbox.c.id == bindparam("of_id"), _IS_OPEN)
    .values(state=bindparam("state"), is_open=False, claimed_until=None, note=bindparam("note"))
)
RETRY = (
    update(inbox)
    .where(inbox.c.id == bindparam("of_id"), _IS_OPEN)
    .values(next_at=bindparam("next_at"), claimed_until=None, note=bindparam("note"))
)
_LIVING: BindParameter[str] = bindparam("living", expanding=True)
RELEASE = (
    update(inbox)
    .where(
        _IS_OPEN,
        inbox.c.claimed_until.is_not(None),
        (inbox.c.claimed_by.is_(None)) | (inbox.c.claimed_by.not_in(_LIVING)),
    )
    .values(claimed_until=None)
)
_OWNED: BindParameter[int] = bindparam("owned", expanding=True)
RELEASE_UNOWNED = (
    update(inbox)
    .where(
        _IS_OPEN,
        inbox.c.claimed_until.is_not(None),
        inbox.c.claimed_by == bindparam("by"),
        inbox.c.id.not_in(_OWNED),
    )
    .values(claimed_until=None, attempts=inbox.c.attempts - 1)
)

SELECT_KNOWN = select(inbox.c.delivery_id).where(
    inbox.c.host == bindparam("of_host"),
    inbox.c.delivery_id.in_(bindparam("ids", expanding=True)),
)
ASKED_AT_ONCE = 1000


def accept(session: Connection, delivery: Delivery) -> bool:
    """Store a delivery; return False, without a change, if its (host, id) is known."""
    row_id = session.execute(
        INSERT,
        {
            "host": delivery.host,
            "delivery_id": delivery.id,
            "event": delivery.event,
            "action": delivery.action,
            "repository_id": delivery.repository_id,
            "lane": f"{delivery.host}/{delivery.repository_id or ''}",
            "received_at": delivery.received_at,
            "next_at": delivery.received_at,
        },
    ).scalar_one_or_none()
    if row_id is None:
        return False
    session.execute(INSERT_BODY, {"inbox_id": row_id, "body": delivery.body})
    return True


def stored_ids(session: Connection, host: str, ids: Sequence[str]) -> frozenset[str]:
    """Return which of these deliveries of a host were received, in whatever state they are."""
    found: set[str] = set()
    for start in range(0, len(ids), ASKED_AT_ONCE):
        part = ids[start : start + ASKED_AT_ONCE]
        found.update(session.execute(SELECT_KNOWN, {"of_host": host, "ids": part}).scalars())
    return frozenset(found)


def claim(session: Connection, by: str, now: datetime, limit: int) -> tuple[ClaimedDelivery, ...]:
    """Claim the oldest open delivery of each lane for an hour; at most `limit`, oldest first.

    Skips a lane whose oldest open delivery is claimed or not yet due. `attempts` includes this one.
    """
    due = session.execute(SELECT_DUE, {"now": now, "at_most": limit}).scalars().all()
    if not due:
        return ()
    taken = session.execute(CLAIM_DUE, {"ids": due, "now": now, "until": now + CLAIM, "by": by})
    ids = taken.scalars().all()
    found = session.execute(SELECT_CLAIMED, {"ids": ids})
    return tuple(
        ClaimedDelivery(
            id=row.id,
            lane=row.lane,
            attempts=row.attempts,
            delivery=Delivery(
                host=row.host,
                id=row.delivery_id,
                event=row.event,
                action=row.action,
                repository_id=row.repository_id,
                body=row.body,
                received_at=row.received_at,
            ),
        )
        for row in found
    )


def next_due(session: Connection) -> datetime | None:
    """Return when the next delivery may be claimed; None if none is open."""
    due: datetime | None = session.execute(SELECT_NEXT_DUE).scalar_one()
    return due


def is_behind(session: Connection) -> bool:
    """Return whether an open delivery is not claimed: it may wait for the end of one that is."""
    found: bool = session.execute(SELECT_BEHIND).scalar_one()
    return found


def settle(session: Connection, row_id: int, note: str) -> None:
    """End a delivery as processed; `note` says how (`ignored`). Idempotent."""
    _close(session, row_id, InboxState.DONE, note)


def poison(session: Connection, row_id: int, error: str) -> None:
    """Park a delivery with its last error; its lane goes on."""
    _close(session, row_id, InboxState.POISONED, error)


def _close(session: Connection, row_id: int, state: InboxState, note: str) -> None:
    session.execute(SETTLE, {"of_id": row_id, "state": state.value, "note": note[:NOTE_LENGTH_MAX]})


def retry(session: Connection, row_id: int, next_at: datetime, error: str) -> None:
    """Release a delivery until `next_at`; its lane waits for it."""
    session.execute(RETRY, {"of_id": row_id, "next_at": next_at, "note": error[:NOTE_LENGTH_MAX]})


def parked(session: Connection) -> int:
    """Return the number of parked deliveries."""
    statement = select(func.count(literal(1))).select_from(inbox).where(IS_POISONED)
    count: int = session.execute(statement).scalar_one()
    return count


def release(session: Connection, living: Sequence[str]) -> int:
    """Drop the claims of instances that are not in `living`; return how many."""
    return session.execute(RELEASE, {"living": living}).rowcount


def release_unowned(session: Connection, by: str, owned: Collection[int]) -> int:
    """Drop the claims of `by` that none of its tasks owns, with their attempts; return how many.

    `owned` are the ids of rows that its tasks own.
    """
    return session.execute(RELEASE_UNOWNED, {"by": by, "owned": list(owned)}).rowcount
