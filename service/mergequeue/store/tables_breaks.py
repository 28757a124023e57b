"""Tables of checks that are red on a target branch (docs/design/red-target.md)."""

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field

from service.database.tables_base import Row, partial_unique
from service.database.types import Id, Json, Utc


class TargetBreakRow(Row, table=True):
    """A break of one check; `is_open` until its target is green again, `state` is the `Break`."""

    __tablename__ = "target_break"
    __table_args__ = (Index("ix_target_break_queue_id_no", "queue_id", "no"),)

    no: int | None = Field(default=None, primary_key=True, sa_type=Id)
    id: str = Field(unique=True)
    org_id: int = Field(sa_type=Id)
    queue_id: int = Field(sa_type=Id)
    name: str
    is_open: bool
    opened_at: datetime = Field(sa_type=Utc)
    ended_at: datetime | None = Field(sa_type=Utc)
    state: str = Field(sa_type=Json)


partial_unique(
    "ux_target_break_open",
    TargetBreakRow,
    "queue_id",
    "name",
    where=TargetBreakRow.__table__.c.is_open.is_(True),
)


class TargetGreenRow(Row, table=True):
    """The newest commit of a queue's target on which all watched checks passed."""

    __tablename__ = "target_green"

    queue_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs={"autoincrement": False})
    org_id: int = Field(sa_type=Id)
    sha: str
    at: datetime = Field(sa_type=Utc)
