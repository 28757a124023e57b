"""Messages and the attempts to deliver them (docs/design/notifications.md 2).

An attempt is open until it is made. A failed attempt that is repeated is followed by an open
one; the newest attempt of a message at an endpoint has the state of its delivery.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush

from sqlalchemy import Connection, String, bindparam, func, insert, literal, select, update

from service.database.types import Utc
from service.notifications.store.tables_notifications import (
    AttemptRow,
    EndpointRow,
    NotificationRow,
)
from service.vocabulary import DeliveryState

CLAIM = timedelta(seconds=60)
"""The duration of a claim; longer than any attempt."""

AT_ONE_ENDPOINT = 4
"""Attempts under way at one endpoint (docs/design/notifications.md 2)."""

DUE_ENDPOINTS_MAX = 1000
"""Endpoints considered in one claim, longest due first."""

ERROR_LENGTH_MAX = 500


@dataclass(frozen=True, slots=True)
class Message:
    """One message with the text that is sent."""

    id: str
    org_id: int
    event: str
    at: datetime
    body: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to make: the `n`th of its message at this endpoint, after `tries` in a row."""

    id: int
    org_id: int
    endpoint: str
    message: str
    n: int
    tries: int
    event: str
    made_at: datetime
    body: str


@dataclass(frozen=True, slots=True)
class Made:
    """The end of an attempt; `error` None is a success."""

    at: datetime
    duration_ms: int
    status_code: int | None
    error: str | None


messages = NotificationRow.__table__
attempts = AttemptRow.__table__
endpoints = EndpointRow.__table__

IS_OPEN = attempts.c.is_open.is_(True)
_IS_FREE = (attempts.c.claimed_until.is_(None)) | (attempts.c.claimed_until <= bindparam("now"))
OPEN_ATTEMPT: Mapping[str, object] = {
    "n": 1,
    "tries": 0,
    "state": DeliveryState.PENDING.value,
    "is_open": True,
    "is_newest": True,
    "claimed_until": None,
    "claimed_by": None,
}
"""Columns of a first attempt that waits to be made."""

# Endpoints with open attempts, found by stepping from one to the next through the index, and
# of each when the first free attempt is due.
_lanes = (
    select(func.min(attempts.c.endpoint, type_=String).label("endpoint"))
    .where(IS_OPEN)
    .cte("lanes", recursive=True)
)
_next_lane = (
    select(func.min(attempts.c.endpoint, type_=String))
    .where(IS_OPEN, attempts.c.endpoint > _lanes.c.endpoint)
    .correlate(_lanes)
    .scalar_subquery()
)
_lanes = _lanes.union_all(select(_next_lane).where(_lanes.c.endpoint.is_not(None)))
_first_due = (
    select(attempts.c.next_at)
    .where(IS_OPEN, attempts.c.endpoint == _lanes.c.endpoint, _IS_FREE)
    .order_by(attempts.c.next_at, attempts.c.id)
    .limit(1)
    .correlate(_lanes)
    .scalar_subquery()
)
_heads = (
    select(_lanes.c.endpoint, _first_due.label("due"))
    .where(_lanes.c.endpoint.is_not(None))
    .subquery("heads")
)
# An endpoint that is gone has no organization; its attempts are taken and given up.
_owner = (
    select(endpoints.c.org_id)
    .where(endpoints.c.id == _heads.c.endpoint)
    .correlate(_heads)
    .scalar_subquery()
)
SELECT_DUE_ENDPOINTS = (
    select(_heads.c.endpoint, _owner.label("org_id"))
    .where(_heads.c.due <= bindparam("now"))
    .order_by(_heads.c.due, _heads.c.endpoint)
    .limit(DUE_ENDPOINTS_MAX)
)
SELECT_BUSY = (
    select(attempts.c.endpoint, attempts.c.org_id, func.count(literal(1)).label("busy"))
    .where(attempts.c.claimed_until.is_not(None), attempts.c.claimed_until > bindparam("now"))
    .group_by(attempts.c.endpoint, attempts.c.org_id)
)
SELECT_DUE = (
    select(attempts.c.id)
    .where(
        IS_OPEN,
        attempts.c.endpoint == bindparam("of_endpoint"),
        attempts.c.next_at <= bindparam("now"),
        _IS_FREE,
    )
    .order_by(attempts.c.next_at, attempts.c.id)
    .limit(bindparam("at_most"))
)
SELECT_ATTEMPTS = (
    select(
        attempts.c.id,
        attempts.c.org_id,
        attempts.c.endpoint,
        attempts.c.message,
        attempts.c.n,
        attempts.c.tries,
        attempts.c.event,
        attempts.c.made_at,
        messages.c.body,
    )
    .join(messages, messages.c.id == attempts.c.message)
    .where(attempts.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(attempts.c.next_at, attempts.c.id)
)


def append(session: Connection, message: Message, endpoints: Sequence[str], now: datetime) -> None:
    """Store a message with an open attempt for each endpoint, due at once."""
    session.execute(insert(messages), asdict(message))
    session.execute(insert(attempts), [_first(message, endpoint, now) for endpoint in endpoints])


def append_claimed(
    session: Connection, by: str, message: Message, endpoint: str, now: datetime
) -> Attempt:
    """Store a message with an attempt for one endpoint, which `by` has claimed for 60 s."""
    session.execute(insert(messages), asdict(message))
    row = {**_first(message, endpoint, now), "claimed_until": now + CLAIM, "claimed_by": by}
    stored = session.execute(insert(attempts).returning(attempts.c.id), row).scalar_one()
    return _attempts(session, [stored])[0]


def _first(message: Message, endpoint: str, now: datetime) -> dict[str, object]:
    return {
        **OPEN_ATTEMPT,
        "org_id": message.org_id,
        "endpoint": endpoint,
        "message": message.id,
        "event": message.event,
        "made_at": message.at,
        "next_at": now,
    }


def claim(session: Connection, by: str, now: datetime, limit: int) -> tuple[Attempt, ...]:
    """Claim due attempts for `by` and 60 s, at most `limit` and four of one endpoint.

    Endpoints of the organization with the fewest attempts under way come first, then those due
    for the longest time, so that slow receivers do not delay those of other organizations.
    """
    due = session.execute(SELECT_DUE_ENDPOINTS, {"now": now}).all()
    if not due:
        return ()
    # The rows are locked while attempts under way are counted, so that no other process counts
    # the same slots as free; in one order, so that two processes cannot deadlock.
    lock = select(endpoints.c.id).where(endpoints.c.id.in_([row.endpoint for row in due]))
    session.execute(lock.order_by(endpoints.c.id).with_for_update())
    under_way: Counter[str] = Counter()
    of_organization: Counter[int | None] = Counter()
    for row in session.execute(SELECT_BUSY, {"now": now}):
        under_way[row.endpoint] += row.busy
        of_organization[row.org_id] += row.busy
    lanes = [(row.endpoint, row.org_id) for row in due]
    ids: list[int] = []
    for endpoint, share in shares_of(lanes, under_way, of_organization, limit).items():
        asked = {"of_endpoint": endpoint, "now": now, "at_most": share}
        ids += session.execute(SELECT_DUE, asked).scalars()
    if not ids:
        return ()
    claimed = session.execute(
        update(attempts)
        .where(attempts.c.id.in_(ids), IS_OPEN, _IS_FREE)
        .values(claimed_until=now + CLAIM, claimed_by=by)
        .returning(attempts.c.id),
        {"now": now},
    )
    return _attempts(session, claimed.scalars().all())


def shares_of(
    lanes: Sequence[tuple[str, int | None]],
    under_way: Mapping[str, int],
    of_organization: Mapping[int | None, int],
    limit: int,
) -> dict[str, int]:
    """Return how many attempts of each endpoint to claim, at most `limit` in all.

    `lanes` are endpoints with due attempts and their organizations, longest due first;
    attempts under way are counted by endpoint and by organization.
    """
    busy, others = Counter(under_way), Counter(of_organization)
    shares: dict[str, int] = {}
    waiting = [
        (others[owner], place, endpoint, owner)
        for place, (endpoint, owner) in enumerate(lanes)
        if busy[endpoint] < AT_ONE_ENDPOINT
    ]
    heapify(waiting)
    while waiting and sum(shares.values()) < limit:
        known, place, endpoint, owner = heappop(waiting)
        if known == others[owner]:
            shares[endpoint] = shares.get(endpoint, 0) + 1
            busy[endpoint] += 1
            others[owner] += 1
        if busy[endpoint] < AT_ONE_ENDPOINT:
            heappush(waiting, (others[owner], place, endpoint, owner))
    return shares


def _attempts(session: Connection, ids: Sequence[int]) -> tuple[Attempt, ...]:
    return tuple(Attempt(*row) for row in session.execute(SELECT_ATTEMPTS, {"ids": ids}))


def next_due(session: Connection, now: datetime) -> datetime | None:
    """Return when the next attempt becomes due after `now`; None if there is none."""
    earliest = select(func.min(attempts.c.next_at, type_=Utc))
    due: datetime | None = session.execute(
        earliest.where(IS_OPEN, attempts.c.next_at > now)
    ).scalar_one()
    return due


def settle(session: Connection, attempt: Attempt, made: Made, next_at: datetime | None) -> bool:
    """Store how an attempt ended, and the attempt that follows at `next_at`, if any.

    Returns False and changes nothing if the attempt was given up in the meantime.
    """
    state = DeliveryState.DELIVERED if made.error is None else DeliveryState.FAILED
    closed = session.execute(
        update(attempts)
        .where(attempts.c.id == attempt.id, IS_OPEN)
        .values(
            is_open=False,
            claimed_until=None,
            state=state.value,
            is_newest=next_at is None,
            at=made.at,
            status_code=made.status_code,
            duration_ms=made.duration_ms,
            error=None if made.error is None else made.error[:ERROR_LENGTH_MAX],
        )
    )
    if closed.rowcount == 0:
        return False
    if next_at is not None:
        row = {
            **OPEN_ATTEMPT,
            "org_id": attempt.org_id,
            "endpoint": attempt.endpoint,
            "message": attempt.message,
            "n": attempt.n + 1,
            "tries": attempt.tries + 1,
            "event": attempt.event,
            "made_at": attempt.made_at,
            "next_at": next_at,
        }
        session.execute(insert(attempts), row)
    return True


def give_up(session: Connection, endpoint: str, why: str) -> int:
    """End every open attempt at an endpoint as failed and return how many."""
    failed = DeliveryState.FAILED.value
    return session.execute(
        update(attempts)
        .where(attempts.c.endpoint == endpoint, IS_OPEN)
        .values(state=failed, is_open=False, claimed_until=None, error=why)
    ).rowcount


def release(session: Connection, living: Sequence[str]) -> int:
    """Drop the claims of processes that are not among the living and return how many."""
    is_gone = attempts.c.claimed_by.is_(None) | attempts.c.claimed_by.not_in(living)
    return session.execute(
        update(attempts)
        .where(attempts.c.claimed_until.is_not(None), IS_OPEN, is_gone)
        .values(claimed_until=None)
    ).rowcount
