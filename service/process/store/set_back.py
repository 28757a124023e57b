"""Rows that wait for a time that the clock told while it was ahead."""

from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Table, bindparam, update

from service.database.inbox import inbox, lanes
from service.database.outbox import outbox
from service.notifications.store.notifications import attempts

_IS_OPEN_ATTEMPT = attempts.c.is_open.is_(True)
_WAITING: tuple[tuple[Table, ColumnElement[datetime], ColumnElement[bool]], ...] = (
    (inbox, inbox.c.next_at, inbox.c.is_open.is_(True)),
    (lanes, lanes.c.due_at, lanes.c.claimed_by.is_(None)),
    (outbox, outbox.c.next_at, outbox.c.is_open.is_(True)),
    # Tries of a notification lie up to 20 hours apart.
    (attempts, attempts.c.next_at, _IS_OPEN_ATTEMPT & (attempts.c.made_at > bindparam("now"))),
)
_PULL = tuple(
    update(table).where(waits, due > bindparam("beyond")).values({due.key: bindparam("now")})
    for table, due, waits in _WAITING
)


def pull(session: Connection, now: datetime, beyond: datetime) -> int:
    """Make all that is due after `beyond` due now; return how many rows there were.

    Webhooks, effects and notifications: what comes too early waits again.
    """
    told = {"now": now, "beyond": beyond}
    return sum(session.execute(statement, told).rowcount for statement in _PULL)
