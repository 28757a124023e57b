"""Instances: the processes that serve this database, and which of them are alive.

Each instance holds a lock that ends with it (of the SQLite file, or of a PostgreSQL session) and
stores heartbeats. An instance without its lock, or without a heartbeat for too long, is gone:
other instances free its claims.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, delete, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database import outbox, probes
from service.database.outbox import OutboxState
from service.database.tables_deliveries import InstanceRow, OutboxRow
from service.database.types import Utc

GONE_AFTER = timedelta(seconds=40)
"""An instance without a heartbeat for so long is gone. A process that hangs may have got a landing
permit just before, 5 s after its last heartbeat, and a permit lasts 30 s."""

SILENT_AFTER = timedelta(seconds=15)
"""Three heartbeats: an instance that missed them is named to those who wait for its landing."""

instances = InstanceRow.__table__
effects = OutboxRow.__table__

_BEAT = upsert(instances)
BEAT = _BEAT.on_conflict_do_update(
    index_elements=["id"], set_={"heartbeat": _BEAT.excluded.heartbeat}
)
SELECT_ALL = select(instances).order_by(instances.c.started_at, instances.c.id)
SELECT_LANDS = (
    select(instances.c.heartbeat)
    .join(effects, effects.c.claimed_by == instances.c.id)
    .where(
        effects.c.is_open.is_(True),
        effects.c.queue_id == bindparam("of_queue"),
        effects.c.kind == outbox.LAND,
        effects.c.state == OutboxState.SENT.value,
    )
    .limit(1)
)
FORGET = delete(instances).where(instances.c.id.in_(bindparam("ids", expanding=True)))


@dataclass(frozen=True, slots=True)
class Instance:
    """A process. `fingerprint` is a digest of the settings that all instances must share."""

    id: str
    version: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class LiveInstance(Instance):
    """An instance with its start and its last heartbeat."""

    started_at: datetime
    heartbeat: datetime


@dataclass(frozen=True, slots=True)
class Departure:
    """Instances that are gone, and those that live on."""

    gone: tuple[str, ...]
    living: tuple[str, ...]


def beat(session: Connection, me: Instance, now: datetime) -> None:
    """Store a heartbeat; inserts the instance if it is new or was forgotten as gone."""
    at = time_of(session, now)
    row = {"id": me.id, "version": me.version, "fingerprint": me.fingerprint}
    session.execute(BEAT, {**row, "started_at": at, "heartbeat": at})


def living(session: Connection, me: str, now: datetime) -> tuple[LiveInstance, ...]:
    """Return live instances, oldest first; with SQLite only `me`."""
    known = [LiveInstance(*row) for row in session.execute(SELECT_ALL)]
    if session.dialect.name == "sqlite":
        return tuple(each for each in known if each.id == me)
    locked = probes.locked_keys(session)
    at = time_of(session, now)
    return tuple(each for each in known if each.id == me or lives(each, locked, at))


def lives(known: LiveInstance, locked: Collection[int], now: datetime) -> bool:
    """Return whether an instance holds its lock and had a heartbeat lately."""
    return probes.lock_key(known.id) in locked and now - known.heartbeat < GONE_AFTER


def silent_landing(session: Connection, queue_id: int, now: datetime) -> datetime | None:
    """Return when others take over the queue's landing from an instance that stopped answering.

    None if no landing of the queue is running, or its instance had a heartbeat lately.
    """
    heartbeat: datetime | None = session.execute(
        SELECT_LANDS, {"of_queue": queue_id}
    ).scalar_one_or_none()
    if heartbeat is None or time_of(session, now) - heartbeat < SILENT_AFTER:
        return None
    return heartbeat + GONE_AFTER


def time_of(session: Connection, now: datetime) -> datetime:
    """Return the database's own time where machines share it, whose clocks may differ, or `now`."""
    if session.dialect.name == "sqlite":
        return now
    at: datetime = session.execute(select(func.clock_timestamp(type_=Utc))).scalar_one()
    return at


def forget_gone(session: Connection, me: str, now: datetime) -> Departure:
    """Delete the rows of instances that no longer live, and return them with those that do."""
    alive = tuple(each.id for each in living(session, me, now))
    known = session.execute(select(instances.c.id)).scalars()
    return _forgotten(session, alive, tuple(each for each in known if each not in alive))


def forget_me(session: Connection, me: str, now: datetime) -> Departure:
    """The same for `me`, whose work has ended."""
    others = tuple(each.id for each in living(session, me, now) if each.id != me)
    return _forgotten(session, others, (me,))


def _forgotten(session: Connection, living: tuple[str, ...], gone: tuple[str, ...]) -> Departure:
    session.execute(FORGET, {"ids": gone})
    return Departure(gone, living)
