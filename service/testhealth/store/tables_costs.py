"""Tables of what tests take and what flaky ones cost (docs/design/test-costs.md).

Days are UTC days since 1970, as in `tables_evidence.py`.
"""

from datetime import datetime

from sqlalchemy import Index, LargeBinary
from sqlmodel import Field

from service.database.tables_base import Row
from service.database.types import Id, Utc

_GIVEN = {"autoincrement": False}


class UploadTimesRow(Row, table=True):
    """The times of the tests that passed at once in an upload (`sketches.py`).

    `times` has a byte for each member of the upload's set `passed`, in order, compressed.
    """

    __tablename__ = "upload_times"
    __table_args__ = (Index("ix_upload_times_ran_at", "ran_at"),)

    upload: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    repository_id: int = Field(sa_type=Id)
    ran_at: datetime = Field(sa_type=Utc)
    times: bytes = Field(sa_type=LargeBinary)


class TimesOfDayRow(Row, table=True):
    """The times of some tests on a counted day (`sketches.py`); rows of an open day are ignored.

    Part n has the tests with numbers from 4096 n on.
    """

    __tablename__ = "times_of_day"

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    day: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    part: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    times: bytes = Field(sa_type=LargeBinary)


class TimesOfWeekRow(Row, table=True):
    """The times of a test in the 7 days to `through`, and in the 7 days before.

    `through` is a counted day. The ranks are minus the milliseconds, in the order of lists; one
    that did not run in the first week has ranks of 0.
    """

    __tablename__ = "times_of_week"
    __table_args__ = (
        Index("ix_times_of_week_total", "repository_id", "total_rank", "no"),
        Index("ix_times_of_week_median", "repository_id", "median_rank", "no"),
        Index("ix_times_of_week_p95", "repository_id", "p95_rank", "no"),
    )

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    no: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    through: int
    runs: int
    total_rank: int = Field(sa_type=Id)
    median_rank: int = Field(sa_type=Id)
    p95_rank: int = Field(sa_type=Id)
    runs_before: int
    total_ms_before: int = Field(sa_type=Id)
    median_ms_before: int = Field(sa_type=Id)
    p95_ms_before: int = Field(sa_type=Id)


class QueueWaitRow(Row, table=True):
    """The time that pull requests in a queue waited on a counted day for flaky failures of a test.

    Number 0 stands for failures of which no report names a test.
    """

    __tablename__ = "queue_wait"

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    day: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    no: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    failures: float
    wait_ms: int = Field(sa_type=Id)
