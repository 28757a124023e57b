"""Tables of the metrics of queues."""

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field

from service.database.tables_base import Row
from service.database.types import Id, Utc


class FigureRow(Row, table=True):
    """Counts and total durations of events, one row per bucket of durations.

    `labels` are the values of the fact's labels with `/` between; `ms` are milliseconds. Rows
    are added to and never deleted: they outlive the entries and events that they count.
    """

    __tablename__ = "figure"

    queue_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs={"autoincrement": False})
    kind: str = Field(primary_key=True)
    labels: str = Field(primary_key=True)
    cell: int = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    count: int = Field(sa_type=Id)
    ms: int = Field(sa_type=Id)


class RecentFactRow(Row, table=True):
    """One fact of the last hour; older ones are forgotten."""

    __tablename__ = "recent_fact"
    __table_args__ = (Index("ix_recent_fact_queue_id_at", "queue_id", "at"),)

    id: int | None = Field(default=None, primary_key=True, sa_type=Id)
    org_id: int = Field(sa_type=Id)
    queue_id: int = Field(sa_type=Id)
    at: datetime = Field(sa_type=Utc)
    kind: str
    labels: str
    cell: int
    ms: int = Field(sa_type=Id)
