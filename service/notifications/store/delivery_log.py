"""What became of messages at an endpoint, newest first, and sending them once more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, bindparam, desc, or_, select, update

from service.notifications.store.notifications import INSERT_ATTEMPT, Made, attempts, messages
from service.vocabulary import DeliveryState

AT_ONCE = 500
"""Rows that one statement names."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which deliveries: of an event, in a state, of facts in [since, until); None: whichever."""

    event: str | None = None
    state: DeliveryState | None = None
    since: datetime | None = None
    until: datetime | None = None


ALL = Wanted()

Position = tuple[datetime, str]
"""Time and id of the message that a page ended with."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """One message at one endpoint with every try, oldest first; the next one's time while open."""

    message: str
    event: str
    state: DeliveryState
    made_at: datetime
    next_at: datetime | None
    body: str
    tries: tuple[Made, ...]


_NEWEST = attempts.c.is_newest.is_(True)
_AT_ENDPOINT = attempts.c.endpoint == bindparam("of_endpoint")
SELECT_NEWEST = (
    select(
        attempts.c.message,
        attempts.c.event,
        attempts.c.state,
        attempts.c.made_at,
        attempts.c.next_at,
        attempts.c.is_open,
        messages.c.body,
    )
    .join(messages, messages.c.id == attempts.c.message)
    .where(_AT_ENDPOINT, _NEWEST)
    .order_by(desc(attempts.c.made_at), desc(attempts.c.message))
)
SELECT_TRIES = (
    select(
        attempts.c.message,
        attempts.c.at,
        attempts.c.duration_ms,
        attempts.c.status_code,
        attempts.c.error,
    )
    .where(
        _AT_ENDPOINT,
        attempts.c.message.in_(bindparam("messages", expanding=True)),
        attempts.c.at.is_not(None),
    )
    .order_by(attempts.c.message, attempts.c.n)
)
SELECT_TO_REPLAY = (
    select(
        attempts.c.id,
        attempts.c.org_id,
        attempts.c.message,
        attempts.c.n,
        attempts.c.event,
        attempts.c.made_at,
    )
    .where(_AT_ENDPOINT, _NEWEST, attempts.c.is_open.is_(False))
    .order_by(attempts.c.made_at, attempts.c.message)
)
SELECT_MESSAGE = SELECT_NEWEST.where(attempts.c.message == bindparam("of_message"))
MAKE_OLD = (
    update(attempts)
    .where(attempts.c.id.in_(bindparam("ids", expanding=True)))
    .values(is_newest=False)
)


def page(
    session: Connection, endpoint: str, wanted: Wanted, after: Position | None, limit: int
) -> tuple[Delivered, ...]:
    """Deliveries to an endpoint behind a position, newest facts first, at most `limit`."""
    statement = SELECT_NEWEST.where(*_chosen(wanted)).limit(limit)
    if after is not None:
        at, message = after
        is_behind = (attempts.c.made_at == at) & (attempts.c.message < message)
        statement = statement.where(or_(attempts.c.made_at < at, is_behind))
    rows = session.execute(statement, {"of_endpoint": endpoint}).all()
    tries = _tries(session, endpoint, [row.message for row in rows])
    return tuple(
        Delivered(
            message=row.message,
            event=row.event,
            state=DeliveryState(row.state),
            made_at=row.made_at,
            next_at=row.next_at if row.is_open else None,
            body=row.body,
            tries=tuple(tries.get(row.message, ())),
        )
        for row in rows
    )


def _chosen(wanted: Wanted) -> list[ColumnElement[bool]]:
    where: list[ColumnElement[bool]] = []
    if wanted.event is not None:
        where.append(attempts.c.event == wanted.event)
    if wanted.state is not None:
        where.append(attempts.c.state == wanted.state.value)
    if wanted.since is not None:
        where.append(attempts.c.made_at >= wanted.since)
    if wanted.until is not None:
        where.append(attempts.c.made_at < wanted.until)
    return where


def _tries(session: Connection, endpoint: str, found: Sequence[str]) -> Mapping[str, list[Made]]:
    tries: dict[str, list[Made]] = {}
    if found:
        asked = {"of_endpoint": endpoint, "messages": found}
        for message, *made in session.execute(SELECT_TRIES, asked):
            tries.setdefault(message, []).append(Made(*made))
    return tries


def has_message(session: Connection, endpoint: str, message: str) -> bool:
    """Whether this message was ever meant for this endpoint, as far as the log goes back."""
    asked = {"of_endpoint": endpoint, "of_message": message}
    return session.execute(SELECT_MESSAGE, asked).first() is not None


def replay_message(session: Connection, endpoint: str, message: str, now: datetime) -> int:
    """Send one message again, due at once; 0 when it waits to be sent anyway."""
    only = [attempts.c.message == message]
    return _again(session, endpoint, _to_replay(session, endpoint, only, 1), now)


def replay(
    session: Connection, endpoint: str, wanted: Wanted, now: datetime, limit: int
) -> int | None:
    """Send ended ones again, due at once; how many, None when they are more than `limit`."""
    found = _to_replay(session, endpoint, _chosen(wanted), limit + 1)
    return None if len(found) > limit else _again(session, endpoint, found, now)


def _to_replay(
    session: Connection, endpoint: str, where: Sequence[ColumnElement[bool]], limit: int
) -> Sequence[tuple[int, dict[str, object]]]:
    statement = SELECT_TO_REPLAY.where(*where).limit(limit)
    return [
        (
            row.id,
            {
                "org_id": row.org_id,
                "message": row.message,
                "n": row.n + 1,
                "event": row.event,
                "made_at": row.made_at,
            },
        )
        for row in session.execute(statement, {"of_endpoint": endpoint})
    ]


def _again(
    session: Connection,
    endpoint: str,
    found: Sequence[tuple[int, dict[str, object]]],
    now: datetime,
) -> int:
    same: dict[str, object] = {"endpoint": endpoint, "tries": 0, "next_at": now}
    same |= {"claimed_until": None, "claimed_by": None}
    for start in range(0, len(found), AT_ONCE):
        part = found[start : start + AT_ONCE]
        session.execute(MAKE_OLD, {"ids": [number for number, _ in part]})
        session.execute(INSERT_ATTEMPT, [{**row, **same} for _, row in part])
    return len(found)
