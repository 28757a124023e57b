"""Deliveries of messages to an endpoint, newest first, and their replay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Row, bindparam, desc, insert, or_, select, update

from service.notifications.store.notifications import OPEN_ATTEMPT, Made, attempts, messages
from service.vocabulary import DeliveryState

AT_ONCE = 500
"""Rows that one statement names."""


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """Deliveries of an event, in a state, of messages in [since, until); None: any."""

    event: str | None = None
    state: DeliveryState | None = None
    since: datetime | None = None
    until: datetime | None = None


Position = tuple[datetime, str]
"""Time and id of the message that a page ended with."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message at one endpoint with its attempts, oldest first.

    `next_attempt_at`: only while the delivery is open. `body` is the text that is sent.
    """

    message_id: str
    event: str
    state: DeliveryState
    made_at: datetime
    next_attempt_at: datetime | None
    body: str
    attempts: tuple[Made, ...]


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
SELECT_MADE = (
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
        attempts.c.endpoint,
        attempts.c.message,
        attempts.c.n,
        attempts.c.event,
        attempts.c.made_at,
    )
    .where(_AT_ENDPOINT, _NEWEST, attempts.c.is_open.is_(False))
    .order_by(attempts.c.made_at, attempts.c.message)
)


def page(
    session: Connection, endpoint: str, wanted: DeliveryFilter, after: Position | None, limit: int
) -> tuple[Delivery, ...]:
    """Return at most `limit` deliveries to an endpoint behind a position, newest first."""
    statement = SELECT_NEWEST.where(*_conditions(wanted)).limit(limit)
    if after is not None:
        at, message = after
        is_behind = (attempts.c.made_at == at) & (attempts.c.message < message)
        statement = statement.where(or_(attempts.c.made_at < at, is_behind))
    rows = session.execute(statement, {"of_endpoint": endpoint}).all()
    made = _made(session, endpoint, [row.message for row in rows])
    return tuple(
        Delivery(
            message_id=row.message,
            event=row.event,
            state=DeliveryState(row.state),
            made_at=row.made_at,
            next_attempt_at=row.next_at if row.is_open else None,
            body=row.body,
            attempts=tuple(made.get(row.message, ())),
        )
        for row in rows
    )


def _conditions(wanted: DeliveryFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.event is not None:
        conditions.append(attempts.c.event == wanted.event)
    if wanted.state is not None:
        conditions.append(attempts.c.state == wanted.state.value)
    if wanted.since is not None:
        conditions.append(attempts.c.made_at >= wanted.since)
    if wanted.until is not None:
        conditions.append(attempts.c.made_at < wanted.until)
    return conditions


def _made(session: Connection, endpoint: str, ids: Sequence[str]) -> Mapping[str, list[Made]]:
    by_message: dict[str, list[Made]] = {}
    if ids:
        parameters = {"of_endpoint": endpoint, "messages": ids}
        for message, *made in session.execute(SELECT_MADE, parameters):
            by_message.setdefault(message, []).append(Made(*made))
    return by_message


def has_message(session: Connection, endpoint: str, message: str) -> bool:
    """Return whether the log has a delivery of this message to this endpoint."""
    statement = SELECT_NEWEST.where(attempts.c.message == message)
    return session.execute(statement, {"of_endpoint": endpoint}).first() is not None


def replay_message(session: Connection, endpoint: str, message: str, now: datetime) -> int:
    """Send one message again, due at once, and return 1; 0 if it already waits to be sent."""
    statement = SELECT_TO_REPLAY.where(attempts.c.message == message)
    return _send_again(session, session.execute(statement, {"of_endpoint": endpoint}).all(), now)


def replay(
    session: Connection, endpoint: str, wanted: DeliveryFilter, now: datetime, limit: int
) -> int | None:
    """Send ended deliveries again, due at once, and return how many.

    None, and nothing is sent, if there are more than `limit`.
    """
    statement = SELECT_TO_REPLAY.where(*_conditions(wanted)).limit(limit + 1)
    ended = session.execute(statement, {"of_endpoint": endpoint}).all()
    return None if len(ended) > limit else _send_again(session, ended, now)


def _send_again(
    session: Connection, ended: Sequence[Row[*tuple[object, ...]]], now: datetime
) -> int:
    for start in range(0, len(ended), AT_ONCE):
        part = ended[start : start + AT_ONCE]
        ids = [row.id for row in part]
        session.execute(update(attempts).where(attempts.c.id.in_(ids)).values(is_newest=False))
        rows = [
            {
                **OPEN_ATTEMPT,
                "org_id": row.org_id,
                "endpoint": row.endpoint,
                "message": row.message,
                "n": row.n + 1,
                "event": row.event,
                "made_at": row.made_at,
                "next_at": now,
            }
            for row in part
        ]
        session.execute(insert(attempts), rows)
    return len(ended)
