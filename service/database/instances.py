"""Processes that serve this database: which of them live, and what the dead leave behind.

Each shows a sign that ends with it (the lock of a SQLite file; on PostgreSQL the lock of a
session), and writes down when it was last there. Who shows no sign, or has not been there for
long, is gone: what it had claimed is anybody's again (RELIABILITY.md 6.3).
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, delete, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database import outbox, probes
from service.database.records import OutboxState
from service.database.tables_deliveries import OutboxRow
from service.database.tables_instances import InstanceRow
from service.database.types import Utc

GONE_AFTER = timedelta(seconds=40)
"""After so long without a heartbeat. A process that stands still may have got a landing permit
just before, 5 s after its last heartbeat; that lasts 30 s (RELIABILITY.md 2)."""

SILENT_AFTER = timedelta(seconds=15)
"""Three heartbeats: an instance that missed so many is named where others wait for it."""

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
    """A process. `fingerprint` stands for the settings that all of them must share."""

    id: str
    version: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Known(Instance):
    """One as it was last there."""

    started_at: datetime
    heartbeat: datetime


@dataclass(frozen=True, slots=True)
class Departure:
    """Instances that are gone, and those that live on."""

    gone: tuple[str, ...]
    living: tuple[str, ...]


def beat(session: Connection, me: Instance, now: datetime) -> None:
    """It is there now: known from the first call on, and again after it was taken for dead."""
    at = time_of(session, now)
    row = {"id": me.id, "version": me.version, "fingerprint": me.fingerprint}
    session.execute(BEAT, {**row, "started_at": at, "heartbeat": at})


def living(session: Connection, me: str, now: datetime) -> tuple[Known, ...]:
    """Who lives, longest started first. Of a SQLite file that is `me` alone."""
    known = [Known(*row) for row in session.execute(SELECT_ALL)]
    if session.dialect.name == "sqlite":
        return tuple(each for each in known if each.id == me)
    locked = probes.locked_keys(session)
    at = time_of(session, now)
    return tuple(each for each in known if each.id == me or lives(each, locked, at))


def lives(known: Known, locked: Collection[int], now: datetime) -> bool:
    """Whether it shows its sign and was there lately."""
    return probes.lock_key(known.id) in locked and now - known.heartbeat < GONE_AFTER


def silent_landing(session: Connection, queue_id: int, now: datetime) -> datetime | None:
    """Return when others take over the queue's landing from an instance that stopped answering.

    None if the queue's landing is not under way, or its instance was there lately.
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
