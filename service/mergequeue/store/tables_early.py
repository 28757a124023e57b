"""The table of failed parts of CI (docs/design/early-failures.md 5)."""

from datetime import datetime

from sqlalchemy import Index, UniqueConstraint
from sqlmodel import Field

from service.database.tables_base import Row, partial
from service.database.types import Id, Utc


class FailedPartRow(Row, table=True):
    """A part of the CI of a run that failed, for one required check that it may doom.

    `job` is its key in the CI file, `check_name` the name of its check. `ending` is NULL until the
    required check has ended.
    """

    __tablename__ = "failed_part"
    __table_args__ = (
        UniqueConstraint(
            *("queue_id", "run", "attempt", "required", "check_name", "kind", "step"),
            name="uq_failed_part_of_run",
        ),
        Index("ix_failed_part_queue_id_at", "queue_id", "at"),
        Index("ix_failed_part_at", "at"),
    )

    no: int | None = Field(default=None, primary_key=True, sa_type=Id)
    org_id: int = Field(sa_type=Id)
    queue_id: int = Field(sa_type=Id)
    run: str
    attempt: int
    sha: str
    file: str
    version: str
    required: str
    job: str
    kind: str
    step: str
    test: str
    check_name: str
    check_id: str
    suite: str
    url: str
    at: datetime = Field(sa_type=Utc)
    is_foreseen: bool
    ending: str | None
    early_s: int | None


partial(
    "ix_failed_part_open", FailedPartRow, "at", where=FailedPartRow.__table__.c.ending.is_(None)
)
