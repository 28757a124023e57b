"""What waits to be done, counted."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from service.store.records import Lane
from service.store.tables.deliveries import InboxRow, OutboxRow

inbox = InboxRow.__table__
outbox = OutboxRow.__table__

SELECT_OLDEST = select(func.min(inbox.c.received_at, type_=inbox.c.received_at.type)).where(
    inbox.c.is_open.is_(True)
)
SELECT_EFFECTS = (
    select(outbox.c.lane, func.count().label("times"))
    .where(outbox.c.is_open.is_(True))
    .group_by(outbox.c.lane)
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Open effects by lane, and when the oldest open delivery came."""

    effects: Mapping[Lane, int]
    oldest_delivery: datetime | None


def waiting(session: Connection) -> Waiting:
    """What is open now, of everybody."""
    return Waiting(
        {Lane(row.lane): row.times for row in session.execute(SELECT_EFFECTS)},
        session.execute(SELECT_OLDEST).scalar_one(),
    )
