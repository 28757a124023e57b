"""Tables of outgoing webhooks: endpoints, messages and attempts."""

from datetime import datetime

from sqlalchemy import Index, LargeBinary, Text
from sqlmodel import Field

from service.database.tables_base import Row, partial
from service.database.types import Id, Json, Utc


class EndpointRow(Row, table=True):
    """A receiver of an organization; secrets are sealed, `repositories` NULL means all.

    `failing_since` and `failed_messages` tell of the time since its last success.
    """

    __tablename__ = "endpoint"

    id: str = Field(primary_key=True)
    org_id: int = Field(foreign_key="organization.id", index=True, sa_type=Id)
    url: str
    events: str = Field(sa_type=Json)
    repositories: str | None = Field(sa_type=Json)
    description: str
    format: str
    secret: bytes = Field(sa_type=LargeBinary)
    previous_secret: bytes | None = Field(sa_type=LargeBinary)
    previous_until: datetime | None = Field(sa_type=Utc)
    state: str
    disabled_reason: str | None
    created_at: datetime = Field(sa_type=Utc)
    last_success_at: datetime | None = Field(sa_type=Utc)
    last_failure_at: datetime | None = Field(sa_type=Utc)
    failing_since: datetime | None = Field(sa_type=Utc)
    failed_messages: int


class NotificationRow(Row, table=True):
    """A message: the bytes that every attempt sends."""

    __tablename__ = "notification"
    __table_args__ = (Index("ix_notification_at", "at"),)

    id: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    event: str
    at: datetime = Field(sa_type=Utc)
    body: str = Field(sa_type=Text)


class AttemptRow(Row, table=True):
    """One try to deliver a message to an endpoint; `is_open` until it is made or given up.

    `n` counts the tries of a message at an endpoint from 1, `tries` those in a row that came
    before this one: a replay begins anew. The newest row of both says how the delivery stands;
    `made_at` repeats the message's time and `event` its name for the log's order and filters.
    `claimed_by` names the process that makes it.
    """

    __tablename__ = "notification_attempt"
    __table_args__ = (
        Index("ux_notification_attempt_endpoint", "endpoint", "message", "n", unique=True),
        Index("ix_notification_attempt_made_at", "made_at"),
        Index("ix_notification_attempt_message", "message"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Id)
    org_id: int = Field(sa_type=Id)
    endpoint: str
    message: str
    n: int
    tries: int
    event: str
    made_at: datetime = Field(sa_type=Utc)
    state: str
    is_open: bool
    is_newest: bool
    next_at: datetime = Field(sa_type=Utc)
    claimed_until: datetime | None = Field(sa_type=Utc)
    claimed_by: str | None
    at: datetime | None = Field(sa_type=Utc)
    status_code: int | None
    duration_ms: int | None
    error: str | None


_OPEN = AttemptRow.__table__.c.is_open.is_(True)
_NEWEST = AttemptRow.__table__.c.is_newest.is_(True)
_CLAIMED = AttemptRow.__table__.c.claimed_until.is_not(None)
partial("ix_notification_attempt_open_claimed", AttemptRow, "endpoint", where=_CLAIMED)
partial("ix_notification_attempt_open", AttemptRow, "endpoint", "next_at", "id", where=_OPEN)
partial("ix_notification_attempt_open_next_at", AttemptRow, "next_at", where=_OPEN)
partial(
    "ix_notification_attempt_newest", AttemptRow, "endpoint", "made_at", "message", where=_NEWEST
)
