"""Tables of repeated runs: what jobs were asked to repeat, and what came of it."""

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field

from service.database.tables_base import Row
from service.database.types import Id, Json, Utc

_GIVEN = {"autoincrement": False}


class RepeatPlanRow(Row, table=True):
    """The tests that a job repeats after its upload (docs/design/active-evidence.md 3).

    `kind` is that of the upload. `reserved_ms` count as spent until the job has reported at
    `reported_at` that it spent `spent_ms`.
    """

    __tablename__ = "repeat_plan"
    __table_args__ = (
        Index("ix_repeat_plan_asked_at", "asked_at"),
        Index("ix_repeat_plan_day", "repository_id", "asked_at"),
        Index("ix_repeat_plan_upload", "upload"),
    )

    id: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    repository_id: int = Field(sa_type=Id)
    upload: str
    kind: str
    tests: str = Field(sa_type=Json)
    asked_at: datetime = Field(sa_type=Utc)
    reserved_ms: int = Field(sa_type=Id)
    reported_at: datetime | None = Field(sa_type=Utc)
    spent_ms: int | None = Field(sa_type=Id)


class RepeatsRow(Row, table=True):
    """The rounds of one test in one plan, in letters (`detector/repeats.py`).

    `ran_at` is that of the upload whose job repeated it. `is_probe`: the test had failed in that
    job. `has_failed`: it failed in a round.
    """

    __tablename__ = "test_repeats"
    __table_args__ = (
        Index("ix_test_repeats_ran_at", "ran_at"),
        Index("ix_test_repeats_upload", "upload"),
    )

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    no: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    plan: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    upload: str
    ran_at: datetime = Field(sa_type=Utc)
    letters: str
    tested: int
    disagreeing: int
    is_probe: bool
    has_failed: bool
