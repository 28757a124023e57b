"""Tables of test runs: uploads with their attempts, and what is counted of each day.

Days are UTC days since 1970. An upload is written once. Its passed and skipped tests are sets,
its failed attempts are rows and one packed list of test numbers. `is_eligible`: the upload is
complete and trusted; only such uploads are evidence, and only they are counted.
"""

from datetime import datetime

from sqlalchemy import Index, LargeBinary, Text, UniqueConstraint, false, literal_column, true
from sqlmodel import Field

from service.database.tables_base import Row, partial
from service.database.types import Id, Json, Utc

_GIVEN = {"autoincrement": False}
_BY_KEY = {"sqlite_with_rowid": False}
"""SQLite stores the rows in the order of their key: neighbors are read together."""


class UploadRow(Row, table=True):
    """One upload of reports. `kind` is its class, `prs` are the pull requests that it tested.

    `passed` and `skipped` name sets of the tests of which it holds a single attempt. `failed` has
    the number of a test for each failed attempt, sorted, as 32-bit integers. `is_noted`: its tests
    have their first runs, failure groups and pull requests. `account` is what the upload says
    about its own completeness, `runner_ends` what the runners of its command say about how they
    ended. `position` is how many commits the history of `sha` has.
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
    is_eligible: bool
    is_mass: bool
    is_noted: bool
    passed: str | None
    skipped: str | None
    failed: bytes = Field(sa_type=LargeBinary)
    command_exit_code: int
    counts: str = Field(sa_type=Json)
    files: str = Field(sa_type=Json)
    warnings: str = Field(sa_type=Json)
    refusal: str | None
    is_complete: bool
    is_partial: bool
    account: str = Field(sa_type=Json)
    position: int | None
    runner_ends: str = Field(sa_type=Json)


_ELIGIBLE_UPLOAD = UploadRow.__table__.c.is_eligible.is_(True)
partial(
    "ix_upload_eligible",
    UploadRow,
    "repository_id",
    "ran_at",
    "passed",
    "skipped",
    where=_ELIGIBLE_UPLOAD,
)
partial("ix_upload_open_notes", UploadRow, "id", where=UploadRow.__table__.c.is_noted.is_(False))


class EarlyFailureRow(Row, table=True):
    """A failed test that a CI job reported while it ran (docs/design/live-tests.md 2).

    `key` is a digest of the attempt of the job and of the test. `run_id` and `run_attempt` are
    those of the CI run, `check_run` is that of the job as its own token proves it, else empty.
    `standing` says what the report moved. `taken_back_at` None: nothing has contradicted it.
    """

    __tablename__ = "early_failure"
    __table_args__ = (
        Index("ix_early_failure_job", "repository_id", "run_id", "run_attempt", "check_run"),
        Index("ix_early_failure_heard_at", "heard_at"),
    )

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    key: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    sha: str
    run_id: str
    run_attempt: int
    check_run: str
    job: str
    name: str
    classname: str
    parent: str
    file: str
    proof: str
    standing: str
    heard_at: datetime = Field(sa_type=Utc)
    taken_back_at: datetime | None = Field(sa_type=Utc)


class BadMachineRow(Row, table=True):
    """A machine that fails tests which pass elsewhere (docs/design/machines.md).

    `tests` are numbers of tests. The row goes when the evidence does.
    """

    __tablename__ = "bad_machine"

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    machine: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    tests: str = Field(sa_type=Json)
    count: int
    since: datetime = Field(sa_type=Utc)
    last: datetime = Field(sa_type=Utc)
    failing: int
    runs: int
    others_failing: int
    others_runs: int


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
    """A set of tests: bit n is set for the test with number n, compressed; equal sets once.

    `used_at` is the latest `ran_at` of the uploads that name it.
    """

    __tablename__ = "outcome_set"
    __table_args__ = (Index("ix_outcome_set_used_at", "used_at"),)

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    hash: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    bits: bytes = Field(sa_type=LargeBinary)
    used_at: datetime = Field(sa_type=Utc)


class CaseAttemptRow(Row, table=True):
    """An attempt of a test that failed in its upload or was attempted more than once there.

    `failure` is the key of its failure group. Without `is_comparable` it is no evidence of
    disagreement: then it is stored even if it passed at once. `cost_ms` is the CI time that it
    lost, 0 unless it failed.
    """

    __tablename__ = "attempt"
    __table_args__ = (
        Index("ix_attempt_ran_at", "ran_at"),
        Index(
            "ix_attempt_by_test",
            "repository_id",
            "no",
            "ran_at",
            "outcome",
            "failure",
            "is_eligible",
        ),
    )

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
    cost_ms: int = Field(sa_type=Id)
    is_quarantined: bool
    is_eligible: bool
    is_comparable: bool


class DayRow(Row, table=True):
    """A day of a repository on which uploads ran: open, or counted.

    A change of the day's uploads opens it and increments `version` in the same transaction, at
    `changed_at`.
    `is_counted`: `daily`, `failure_daily` and `failed` are the sums of its eligible uploads.
    `failed` has the numbers of the tests that failed, and then as many counts of failed attempts,
    as 32-bit integers. `has_costs`: its times and costs were counted, too, which older versions
    did not; `is_summed`: the times of weeks hold its own.
    """

    __tablename__ = "test_day"
    __table_args__ = (Index("ix_test_day_day", "day"),)
    __test__ = False

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    day: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    version: int
    is_counted: bool
    changed_at: datetime = Field(sa_type=Utc)
    failed: bytes = Field(sa_type=LargeBinary)
    has_costs: bool = Field(sa_column_kwargs={"server_default": false()})
    is_summed: bool = Field(sa_column_kwargs={"server_default": true()})


partial(
    "ix_test_day_open",
    DayRow,
    "day",
    "repository_id",
    where=DayRow.__table__.c.is_counted.is_(False),
)
partial(
    "ix_test_day_open_sums",
    DayRow,
    "repository_id",
    where=DayRow.__table__.c.is_summed.is_(False),
)


class DailyRow(Row, table=True):
    """A test on a counted day; rows of an open day are ignored.

    `results` are uploads in which it passed or failed, `passing_results` those in which it passed
    that are no mass failures; the other counts are of attempts. `last_at`: when it last ran.
    `cost_ms` is the CI time that its failures lost.
    """

    __tablename__ = "daily"
    __table_args__ = _BY_KEY

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    day: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    no: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    results: int
    passing_results: int
    passed: int
    failed: int
    skipped: int
    quarantined: int
    last_at: datetime = Field(sa_type=Utc)
    cost_ms: int = Field(sa_type=Id, sa_column_kwargs={"server_default": "0"})


partial(
    "ix_daily_costs",
    DailyRow,
    *("repository_id", "day", "no", "cost_ms"),
    where=DailyRow.__table__.c.cost_ms > literal_column("0"),
)


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
    eps_c: float


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
    """The failures of a test in one way on a counted day, and the time of the last."""

    __tablename__ = "failure_daily"
    __table_args__ = _BY_KEY

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    day: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    no: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    key: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    failed: int
    last_at: datetime = Field(sa_type=Utc)


class ImpactRow(Row, table=True):
    """The time when a test last failed for a pull request; `is_counted` within its 168 hours."""

    __tablename__ = "pr_impact"
    __table_args__ = (Index("ix_pr_impact_last_at", "last_at"),)

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    no: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    pr: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    last_at: datetime = Field(sa_type=Utc)
    is_counted: bool


_COUNTED = ImpactRow.__table__.c.is_counted.is_(True)
partial("ix_pr_impact_open_pr", ImpactRow, "repository_id", "pr", "last_at", where=_COUNTED)
partial("ix_pr_impact_open_last_at", ImpactRow, "last_at", where=_COUNTED)
