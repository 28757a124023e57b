"""What is known of test runs, as tests are judged, listed and counted by it (FLAKY.md 4).

Days are UTC days since 1970. `is_eligible` repeats of an upload that it is complete, trusted
and not deleted: only then anything is made of it.
"""

from datetime import datetime

from sqlalchemy import Index, LargeBinary, Text, UniqueConstraint
from sqlmodel import Field

from service.database.tables_base import Row, partial
from service.database.types import Id, Json, Utc

_GIVEN = {"autoincrement": False}


class UploadRow(Row, table=True):
    """One upload of reports. `kind` is its class (FLAKY.md 2.3), `prs` whom it tested.

    `passed` and `skipped` name sets of the tests of which it holds one attempt alone. `revision`
    is that of its repository's tests with which it came; those that never count have none.
    `account` is what the upload says about its own completeness.
    """

    __tablename__ = "upload"
    __table_args__ = (
        UniqueConstraint("repository_id", "digest"),
        Index("ix_upload_ran_at", "ran_at"),
        Index("ix_upload_repository_id_received_at", "repository_id", "received_at"),
        Index("ix_upload_repository_id_run_id", "repository_id", "run_id", "run_attempt"),
        Index("ix_upload_repository_id_sha", "repository_id", "sha"),
        Index("ix_upload_repository_id_kind_job", "repository_id", "kind", "job", "ran_at"),
    )

    id: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    repository_id: int = Field(sa_type=Id)
    digest: str
    kind: str
    code_id: str
    sha: str
    tree_sha: str | None
    branch: str | None
    pr_number: int | None = Field(sa_type=Id)
    prs: str = Field(sa_type=Json)
    run_id: str | None
    run_attempt: int
    run_url: str | None = Field(sa_type=Text)
    job: str
    variant: str
    machine: str | None
    ran_at: datetime = Field(sa_type=Utc)
    received_at: datetime = Field(sa_type=Utc)
    command_exit_code: int
    counts: str = Field(sa_type=Json)
    files: str = Field(sa_type=Json)
    warnings: str = Field(sa_type=Json)
    refusal: str | None
    is_complete: bool
    is_eligible: bool
    is_mass: bool
    is_partial: bool
    passed: str | None
    skipped: str | None
    revision: int | None = Field(sa_type=Id)
    account: str = Field(sa_type=Json, sa_column_kwargs={"server_default": "{}"})


_ELIGIBLE_UPLOAD = UploadRow.__table__.c.is_eligible.is_(True)
partial(
    "ix_upload_eligible", UploadRow, "repository_id", "ran_at", "passed", where=_ELIGIBLE_UPLOAD
)

partial(
    "ix_upload_eligible_revision", UploadRow, "repository_id", "revision", where=_ELIGIBLE_UPLOAD
)


class ArtifactRow(Row, table=True):
    """An artifact of the provider's CI that needs no second look, and its upload.

    That is the one it became, refused or not, or an earlier one that holds the same files.
    """

    __tablename__ = "artifact"
    __table_args__ = (Index("ix_artifact_at", "at"),)

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    id: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    upload: str
    at: datetime = Field(sa_type=Utc)


class OutcomeSetRow(Row, table=True):
    """Numbers of tests, sorted, as packed 32-bit integers under zlib; equal sets once.

    `used_at` is the latest `ran_at` of the uploads that name it.
    """

    __tablename__ = "outcome_set"
    __table_args__ = (Index("ix_outcome_set_used_at", "used_at"),)

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    hash: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    nos: bytes = Field(sa_type=LargeBinary)
    used_at: datetime = Field(sa_type=Utc)


class CaseAttemptRow(Row, table=True):
    """An attempt of a test that failed in its upload or was attempted more than once there.

    `failure` is the key of its failure group. Without `is_comparable` it is no evidence of
    disagreement: then it is stored even if it passed at once.
    """

    __tablename__ = "attempt"
    __table_args__ = (Index("ix_attempt_ran_at", "ran_at"),)

    upload: str = Field(primary_key=True)
    no: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    n: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    repository_id: int = Field(sa_type=Id)
    ran_at: datetime = Field(sa_type=Utc)
    outcome: str
    failure: str | None
    headline: str | None = Field(sa_type=Text)
    stack: str | None = Field(sa_type=Text)
    duration_ms: int | None
    is_quarantined: bool
    is_eligible: bool
    is_comparable: bool


_ELIGIBLE = CaseAttemptRow.__table__.c.is_eligible.is_(True)
partial(
    "ix_attempt_eligible_by_time",
    CaseAttemptRow,
    "repository_id",
    "outcome",
    "ran_at",
    "no",
    where=_ELIGIBLE,
)
partial(
    "ix_attempt_eligible_by_test",
    CaseAttemptRow,
    "repository_id",
    "no",
    "ran_at",
    "outcome",
    "failure",
    where=_ELIGIBLE,
)


class DailyRow(Row, table=True):
    """A test's day. `passing_results` leaves mass failures out; the rest counts attempts."""

    __tablename__ = "daily"
    __table_args__ = (Index("ix_daily_day", "day"),)

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    no: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    day: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    results: int
    passing_results: int
    passed: int
    failed: int
    skipped: int
    quarantined: int


class TallyRow(Row, table=True):
    """An upload whose sets are not in the days of their tests; `weight` -1: one taken out again.

    Tests up to number `counted_to` have it in their days already.
    """

    __tablename__ = "tally"
    __table_args__ = (
        Index("ix_tally_repository_id_day", "repository_id", "day", "org_id"),
        Index("ix_tally_upload", "upload"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Id)
    org_id: int = Field(sa_type=Id)
    repository_id: int = Field(sa_type=Id)
    upload: str
    day: int
    ran_at: datetime = Field(sa_type=Utc)
    weight: int
    passed: str | None
    skipped: str | None
    is_mass: bool
    counted_to: int


class UncountedRow(Row, table=True):
    """Tests of a complete upload of which something is to be noted; gone once it is.

    `passed` and `skipped` are rows of the number of a test that ran for the first time, as far
    as is known; `apart` are those of tests whose attempts are stored. All are JSON.
    """

    __tablename__ = "uncounted"

    upload: str = Field(primary_key=True)
    n: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    repository_id: int = Field(sa_type=Id)
    passed: str = Field(sa_type=Text)
    skipped: str = Field(sa_type=Text)
    owners: str = Field(sa_type=Json)
    apart: str = Field(sa_type=Text, sa_column_kwargs={"server_default": "[]"})


class NoiseRow(Row, table=True):
    """A day of a repository: its totals, and the noise that follows from the days before it."""

    __tablename__ = "noise"
    __table_args__ = (Index("ix_noise_day", "day"),)

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    day: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    totals: str = Field(sa_type=Json)
    eps_a: float
    eps_b: float


class FailureGroupRow(Row, table=True):
    """Failures with the same key: the newest headline, and one of their stacks."""

    __tablename__ = "failure_group"
    __table_args__ = (Index("ix_failure_group_last_at", "last_at"),)

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    key: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    headline: str = Field(sa_type=Text)
    sample: str = Field(sa_type=Text)
    last_at: datetime = Field(sa_type=Utc)


class FailureDailyRow(Row, table=True):
    """How often a test failed in one way on a day."""

    __tablename__ = "failure_daily"
    __table_args__ = (Index("ix_failure_daily_day", "day"),)

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    no: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    key: str = Field(primary_key=True)
    day: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    count: int


class ImpactRow(Row, table=True):
    """When a test last failed for a pull request; `is_counted` within its 168 hours."""

    __tablename__ = "pr_impact"
    __table_args__ = (Index("ix_pr_impact_last_at", "last_at"),)

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    no: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    pr: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    last_at: datetime = Field(sa_type=Utc)
    is_counted: bool


_COUNTED = ImpactRow.__table__.c.is_counted.is_(True)
partial("ix_pr_impact_open_last_at", ImpactRow, "last_at", where=_COUNTED)
