"""Messages and the attempts to deliver them, taken by state and time (API.md 11.2).

An attempt is open until it is made. A failed one that is to be repeated is followed by an open
one; the newest attempt of a message at an endpoint says how its delivery stands.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush

from sqlalchemy import (
    BindParameter,
    Connection,
    String,
    bindparam,
    func,
    insert,
    literal,
    select,
    update,
)

from service.database.types import Utc
from service.notifications.store.tables_notifications import (
    AttemptRow,
    EndpointRow,
    NotificationRow,
)
from service.vocabulary import DeliveryState

CLAIM = timedelta(seconds=60)
"""How long an attempt belongs to who took it; longer than any attempt lasts."""

AT_ONE_ENDPOINT = 4
"""Attempts under way at one endpoint (API.md 11.2)."""

DUE_ENDPOINTS_MAX = 1000
"""Endpoints looked at in one claim, longest due first."""

ERROR_LENGTH_MAX = 500


@dataclass(frozen=True, slots=True)
class Message:
    """What is told, as the very text that is sent."""

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
    """How an attempt ended; `error` None is a success."""

    at: datetime
    duration_ms: int
    status_code: int | None
    error: str | None


messages = NotificationRow.__table__
attempts = AttemptRow.__table__
endpoints = EndpointRow.__table__

_THIS = attempts.c.id == bindparam("of_id")
IS_OPEN = attempts.c.is_open.is_(True)
_IS_FREE = (attempts.c.claimed_until.is_(None)) | (attempts.c.claimed_until <= bindparam("now"))
_WAITING = {
    "state": DeliveryState.PENDING.value,
    "is_open": True,
    "is_newest": True,
}

INSERT_MESSAGE = insert(messages)
INSERT_ATTEMPT = insert(attempts).values(
    **_WAITING,
    **{
        name: bindparam(name)
        for name in (
            "org_id",
            "endpoint",
            "message",
            "n",
            "tries",
            "event",
            "made_at",
            "next_at",
            "claimed_until",
            "claimed_by",
        )
    },
)

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
# Whoever counts what is under way at an endpoint holds its row, so that no other process counts
# the same places as free. In one order, for two that hold several never wait crosswise.
LOCK_ENDPOINTS = (
    select(endpoints.c.id)
    .where(endpoints.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(endpoints.c.id)
    .with_for_update()
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
CLAIM_DUE = (
    update(attempts)
    .where(attempts.c.id.in_(bindparam("ids", expanding=True)), IS_OPEN, _IS_FREE)
    .values(claimed_until=bindparam("until"), claimed_by=bindparam("by"))
    .returning(attempts.c.id)
)
SELECT_ATTEMPT = select(
    attempts.c.id,
    attempts.c.org_id,
    attempts.c.endpoint,
    attempts.c.message,
    attempts.c.n,
    attempts.c.tries,
    attempts.c.event,
    attempts.c.made_at,
    messages.c.body,
).join(messages, messages.c.id == attempts.c.message)
SELECT_CLAIMED = SELECT_ATTEMPT.where(attempts.c.id.in_(bindparam("ids", expanding=True))).order_by(
    attempts.c.next_at, attempts.c.id
)
SELECT_NEXT_DUE = select(func.min(attempts.c.next_at, type_=Utc)).where(
    IS_OPEN, attempts.c.next_at > bindparam("now")
)
CLOSE = (
    update(attempts)
    .where(_THIS, IS_OPEN)
    .values(
        is_open=False,
        claimed_until=None,
        **{
            name: bindparam(f"to_{name}")
            for name in ("state", "is_newest", "at", "status_code", "duration_ms", "error")
        },
    )
)
GIVE_UP = (
    update(attempts)
    .where(attempts.c.endpoint == bindparam("of_endpoint"), IS_OPEN)
    .values(
        state=DeliveryState.FAILED.value,
        is_open=False,
        claimed_until=None,
        error=bindparam("why"),
    )
)
_LIVING: BindParameter[str] = bindparam("living", expanding=True)
RELEASE = (
    update(attempts)
    .where(
        attempts.c.claimed_until.is_not(None),
        IS_OPEN,
        (attempts.c.claimed_by.is_(None)) | (attempts.c.claimed_by.not_in(_LIVING)),
    )
    .values(claimed_until=None)
)


def append(session: Connection, message: Message, endpoints: Sequence[str], now: datetime) -> None:
    """Write a message down with an open attempt for each endpoint, due at once."""
    session.execute(INSERT_MESSAGE, _message_row(message))
    rows = [_first(message, endpoint, now) for endpoint in endpoints]
    session.execute(INSERT_ATTEMPT, rows)


def append_taken(
    session: Connection, by: str, message: Message, endpoint: str, now: datetime
) -> Attempt:
    """The same for one endpoint, taken for 60 s by who writes it."""
    session.execute(INSERT_MESSAGE, _message_row(message))
    row = {**_first(message, endpoint, now), "claimed_until": now + CLAIM, "claimed_by": by}
    made = session.execute(INSERT_ATTEMPT.returning(attempts.c.id), row).scalar_one()
    return _attempts(session, [made])[0]


def _message_row(message: Message) -> dict[str, object]:
    return {
        "id": message.id,
        "org_id": message.org_id,
        "event": message.event,
        "at": message.at,
        "body": message.body,
    }


def _first(message: Message, endpoint: str, now: datetime) -> dict[str, object]:
    return {
        "org_id": message.org_id,
        "endpoint": endpoint,
        "message": message.id,
        "n": 1,
        "tries": 0,
        "event": message.event,
        "made_at": message.at,
        "next_at": now,
        "claimed_until": None,
        "claimed_by": None,
    }


def claim(session: Connection, by: str, now: datetime, limit: int) -> tuple[Attempt, ...]:
    """Let `by` take due attempts for 60 s, at most `limit` and four of one endpoint.

    Whose organization has the fewest under way comes first, then who is longest due: receivers
    that are slow take no place from those of others.
    """
    due = session.execute(SELECT_DUE_ENDPOINTS, {"now": now}).all()
    if not due:
        return ()
    session.execute(LOCK_ENDPOINTS, {"ids": [row.endpoint for row in due]})
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
    told = {"ids": ids, "now": now, "until": now + CLAIM, "by": by}
    taken = session.execute(CLAIM_DUE, told)
    return _attempts(session, taken.scalars().all())


def shares_of(
    lanes: Sequence[tuple[str, int | None]],
    under_way: Mapping[str, int],
    of_organization: Mapping[int | None, int],
    limit: int,
) -> dict[str, int]:
    """How many attempts of which endpoint to take up, at most `limit` in all.

    `lanes` are endpoints with something due and their organizations, longest due first; what is
    under way is given by endpoint and by organization.
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
    return tuple(Attempt(*row) for row in session.execute(SELECT_CLAIMED, {"ids": ids}))


def next_due(session: Connection, now: datetime) -> datetime | None:
    """When the next attempt becomes due after `now`; None: none does."""
    due: datetime | None = session.execute(SELECT_NEXT_DUE, {"now": now}).scalar_one()
    return due


def settle(session: Connection, attempt: Attempt, made: Made, next_at: datetime | None) -> bool:
    """Write down how an attempt ended, and the one that follows it, if one does.

    False when it was given up meanwhile: then nothing changes.
    """
    state = DeliveryState.DELIVERED if made.error is None else DeliveryState.FAILED
    closed = session.execute(
        CLOSE,
        {
            "of_id": attempt.id,
            "to_state": state.value,
            "to_is_newest": next_at is None,
            "to_at": made.at,
            "to_status_code": made.status_code,
            "to_duration_ms": made.duration_ms,
            "to_error": None if made.error is None else made.error[:ERROR_LENGTH_MAX],
        },
    )
    if closed.rowcount == 0:
        return False
    if next_at is not None:
        row = {
            "org_id": attempt.org_id,
            "endpoint": attempt.endpoint,
            "message": attempt.message,
            "n": attempt.n + 1,
            "tries": attempt.tries + 1,
            "event": attempt.event,
            "made_at": attempt.made_at,
            "next_at": next_at,
            "claimed_until": None,
            "claimed_by": None,
        }
        session.execute(INSERT_ATTEMPT, row)
    return True


def give_up(session: Connection, endpoint: str, why: str) -> int:
    """End every open attempt at an endpoint as failed; how many."""
    return session.execute(GIVE_UP, {"of_endpoint": endpoint, "why": why}).rowcount


def release(session: Connection, living: Sequence[str]) -> int:
    """Drop the claims of whoever is not among the living; how many."""
    return session.execute(RELEASE, {"living": living}).rowcount
