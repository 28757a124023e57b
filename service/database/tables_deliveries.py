"""Deliveries received, effects to perform, events of queues, and processes at work."""

from datetime import datetime

from sqlalchemy import Index, LargeBinary, UniqueConstraint, literal_column
from sqlmodel import Field

from service.database.tables_base import Row, partial
from service.database.types import Id, Json, Utc


class InboxRow(Row, table=True):
    """A delivery, once per (host, delivery id); `is_open` until settled or parked.

    `claimed_by` names the process that processes it. The lane says that as well; programs of
    schemas before 0018 look here.
    """

    __tablename__ = "inbox"
    __table_args__ = (
        UniqueConstraint("host", "delivery_id"),
        Index("ix_inbox_received_at", "received_at"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Id)
    host: str
    delivery_id: str
    event: str
    action: str | None
    repository_id: str | None
    lane: str
    state: str
    is_open: bool
    attempts: int
    received_at: datetime = Field(sa_type=Utc)
    next_at: datetime = Field(sa_type=Utc)
    claimed_until: datetime | None = Field(sa_type=Utc)
    claimed_by: str | None
    note: str | None


partial("ix_inbox_lane", InboxRow, "lane", "id", where=InboxRow.__table__.c.is_open.is_(True))

IS_POISONED = InboxRow.__table__.c.state == literal_column("'poisoned'")
partial("ix_inbox_poisoned", InboxRow, "id", where=IS_POISONED)


class InboxLaneRow(Row, table=True):
    """A lane of the inbox: the deliveries of one repository.

    A trigger of `inbox` makes it, and increments `arrivals` with each delivery, whatever program
    stores it. `due_at` is when its oldest open delivery is due, None if none is open. `claimed_by`
    names the process that works on it; `claimed_at` is by the database's clock.
    """

    __tablename__ = "inbox_lane"

    id: int | None = Field(default=None, primary_key=True, sa_type=Id)
    lane: str = Field(unique=True)
    arrivals: int = Field(sa_type=Id)
    due_at: datetime | None = Field(sa_type=Utc)
    claimed_by: str | None
    claimed_at: datetime | None = Field(sa_type=Utc)


IS_FREE_LANE = InboxLaneRow.__table__.c.claimed_by.is_(None)
partial("ix_inbox_lane_free", InboxLaneRow, "due_at", where=IS_FREE_LANE)
partial("ix_inbox_lane_claimed", InboxLaneRow, "id", where=~IS_FREE_LANE)


class InboxBodyRow(Row, table=True):
    """The raw bytes of a delivery, deleted when it is processed, of a parked one after days."""

    __tablename__ = "inbox_body"

    inbox_id: int = Field(
        primary_key=True,
        foreign_key="inbox.id",
        sa_type=Id,
        sa_column_kwargs={"autoincrement": False},
    )
    body: bytes = Field(sa_type=LargeBinary)


class HeardCommandRow(Row, table=True):
    """A command of a person that was answered, once per comment, review or label event.

    `topic` is what it changed, empty where it changed nothing.
    """

    __tablename__ = "heard_command"
    __table_args__ = (Index("ix_heard_command_topic", "repository_id", "topic", "said_at"),)

    repository_id: int = Field(
        primary_key=True, sa_type=Id, sa_column_kwargs={"autoincrement": False}
    )
    source: str = Field(primary_key=True)
    source_id: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    topic: str
    said_at: datetime = Field(sa_type=Utc)
    heard_at: datetime = Field(sa_type=Utc, index=True)


class SweepCursorRow(Row, table=True):
    """The place up to which a sweep has read, kept over a restart."""

    __tablename__ = "sweep_cursor"

    name: str = Field(primary_key=True)
    at: datetime = Field(sa_type=Utc)


class OutboxRow(Row, table=True):
    """An effect to perform; `is_open` until done, failed or superseded.

    `claimed_by` names the process that sent it last.
    """

    __tablename__ = "outbox"

    id: int | None = Field(default=None, primary_key=True, sa_type=Id)
    org_id: int = Field(sa_type=Id)
    repository_id: int = Field(sa_type=Id)
    queue_id: int | None = Field(sa_type=Id)
    epoch: int = Field(sa_type=Id)
    lane: str
    idem_key: str = Field(unique=True)
    supersede_key: str | None
    run: str | None
    kind: str
    effect_type: str
    effect: str = Field(sa_type=Json)
    state: str
    is_open: bool
    attempts: int
    next_at: datetime = Field(sa_type=Utc, index=True)
    sent_at: datetime | None = Field(sa_type=Utc)
    claimed_by: str | None
    note: str | None


_OPEN = OutboxRow.__table__.c.is_open.is_(True)
partial("ix_outbox_open", OutboxRow, "queue_id", "lane", "id", where=_OPEN)
partial("ix_outbox_open_next_at", OutboxRow, "lane", "next_at", where=_OPEN)
partial("ix_outbox_open_run", OutboxRow, "run", "id", where=_OPEN)
partial("ix_outbox_open_supersede_key", OutboxRow, "supersede_key", "id", where=_OPEN)


class JournalRow(Row, table=True):
    """An event of a queue; `number` and `entry` for one of an entry, `run` for one of a run."""

    __tablename__ = "journal"
    __table_args__ = (
        Index("ix_journal_queue_id_id", "queue_id", "id"),
        Index("ix_journal_queue_id_number_id", "queue_id", "number", "id"),
        Index("ix_journal_run_id", "run", "id"),
        Index("ix_journal_at", "at"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Id)
    org_id: int = Field(sa_type=Id)
    queue_id: int = Field(sa_type=Id)
    at: datetime = Field(sa_type=Utc)
    actor: str = Field(sa_type=Json)
    event: str
    number: int | None = Field(sa_type=Id)
    entry: str | None
    run: str | None
    reason: str | None
    data: str = Field(sa_type=Json)


# A literal, not a parameter: SQLite recognizes a partial index only by equal text.
IS_CHANGE_OF_QUEUE = JournalRow.__table__.c.event == literal_column("'QueueStateChanged'")
partial("ix_journal_changes_of_queue", JournalRow, "queue_id", "at", "id", where=IS_CHANGE_OF_QUEUE)


class InstanceRow(Row, table=True):
    """An instance and its last heartbeat; deleted when it stops or is gone.

    `fingerprint` is a digest of the settings that all instances must share.
    """

    __tablename__ = "instance"

    id: str = Field(primary_key=True)
    version: str
    fingerprint: str
    started_at: datetime = Field(sa_type=Utc)
    heartbeat: datetime = Field(sa_type=Utc)
