"""Pending work: counts, and the open effects of queues."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from service.database.outbox import EFFECT, IN_ORDER, LAND, Lane, OutboxState
from service.database.tables_deliveries import InboxRow, OutboxRow
from service.mergequeue.engine.explaining.standstill import OpenEffect
from service.mergequeue.engine.outputs import BuildTestBranch
from service.mergequeue.store.rows import queues

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

SELECT_CONTROL = (
    select(
        outbox.c.queue_id,
        outbox.c.idem_key,
        outbox.c.kind,
        outbox.c.run,
        outbox.c.state,
        outbox.c.sent_at,
        outbox.c.next_at,
        outbox.c.note,
        outbox.c.effect_type,
        outbox.c.effect,
    )
    .where(
        outbox.c.is_open.is_(True),
        outbox.c.lane.in_(IN_ORDER),
        outbox.c.queue_id.is_not(None),
    )
    .order_by(outbox.c.id)
)
SELECT_WAKES = select(queues.c.id, queues.c.wake_at).where(
    queues.c.deleted.is_(False), queues.c.wake_at.is_not(None)
)

THROTTLED = "throttled: "
"""The note of an effect that waits for the provider's rate limit starts with this."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Open effects by lane, and when the oldest open delivery came."""

    effects: Mapping[Lane, int]
    oldest_delivery: datetime | None


def waiting(session: Connection) -> Waiting:
    """Return the open effects of all queues."""
    return Waiting(
        {Lane(row.lane): row.times for row in session.execute(SELECT_EFFECTS)},
        session.execute(SELECT_OLDEST).scalar_one(),
    )


def open_effects(session: Connection) -> dict[int, tuple[OpenEffect, ...]]:
    """Return the control effects that are not settled, by queue and oldest first."""
    found: dict[int, list[OpenEffect]] = {}
    for row in session.execute(SELECT_CONTROL):
        others = found.setdefault(row.queue_id, [])
        effect = EFFECT.decode(row.effect_type, row.effect)
        is_waiting = row.state != OutboxState.SENT.value
        goes_before = any(
            (row.run is not None and one.run == row.run) or one.kind == row.kind == LAND
            for one in others
        )
        others.append(
            OpenEffect(
                key=row.idem_key,
                kind=row.kind,
                run=row.run,
                is_sent=not is_waiting,
                sent_at=row.sent_at,
                due_at=row.next_at,
                heads=len(effect.steps) if isinstance(effect, BuildTestBranch) else 0,
                throttled=is_waiting and (row.note or "").startswith(THROTTLED),
                is_first=not goes_before,
            )
        )
    return {queue_id: tuple(effects) for queue_id, effects in found.items()}


def wakes(session: Connection) -> dict[int, datetime]:
    """Return the wake-up time of each queue that has one."""
    return {row.id: row.wake_at for row in session.execute(SELECT_WAKES)}
