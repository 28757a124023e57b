"""Tests of a repository: what they are, how they are, and what people have said of them.

`no` is the number of a test within its repository; evidence speaks of tests by it.
"""

from datetime import datetime

from sqlalchemy import Index, Text, UniqueConstraint
from sqlmodel import Field

from service.database.tables_base import Row, partial, partial_unique
from service.database.types import Id, Json, Utc
from service.vocabulary import Health

_GIVEN = {"autoincrement": False}


class TestedRepositoryRow(Row, table=True):
    """The data that the tests of a repository share.

    `names` are the pairs of organization and repository under which tests were first seen, in a
    fixed order, because tests refer to them by index. `clock` is the evidence clock, `last_no` the
    last test number given out. `revision` grows with every change that lists of its tests show;
    `removal` is the revision at which an upload or a test was last removed. `is_behind`: some
    tests have yet to be judged by the evidence that is stored.
    """

    __tablename__ = "test_repository"
    __test__ = False

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    names: str = Field(sa_type=Json)
    last_no: int
    revision: int = Field(sa_type=Id)
    removal: int = Field(sa_type=Id)
    clock: datetime | None = Field(sa_type=Utc)
    is_behind: bool = Field(default=False)


class CaseRow(Row, table=True):
    """A test. `named_under` is the index of the repository name that its id was made with.

    `is_known` is false while only untrusted uploads have it; `first_run_at` is then when the last
    of these ran. `status`, `status_since`, `impact_rank` and `cost_rank` are copies in the order
    that lists have. The ranks are minus the number of pull requests hit in a week and minus the
    milliseconds of CI lost in a week; the oldest of these were lost at `costs_since`.
    """

    __tablename__ = "test_case"
    __table_args__ = (UniqueConstraint("repository_id", "id"),)

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    no: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    id: str
    named_under: int
    name: str
    classname: str
    parent: str
    file: str
    line: int | None
    variant: str
    owners: str = Field(sa_type=Json)
    is_known: bool
    first_run_at: datetime = Field(sa_type=Utc)
    last_failed_at: datetime | None = Field(sa_type=Utc)
    ever_passed: bool
    status: str
    status_since: datetime = Field(sa_type=Utc)
    impact_rank: int
    cost_rank: int = Field(sa_type=Id)
    costs_since: datetime | None = Field(sa_type=Utc)


partial(
    "ix_test_case_open_strangers",
    CaseRow,
    "first_run_at",
    where=CaseRow.__table__.c.is_known.is_(False),
)
_KNOWN = CaseRow.__table__.c.is_known.is_(True)
# Nearly all tests are healthy, and each index makes storing new ones slower.
_UNHEALTHY = CaseRow.__table__.c.status != Health.HEALTHY.value
partial(
    "ix_test_case_by_impact",
    *(CaseRow, "repository_id", "status", "impact_rank", "no"),
    where=_UNHEALTHY,
)
partial(
    "ix_test_case_by_time",
    *(CaseRow, "repository_id", "status", "status_since", "no"),
    where=_UNHEALTHY,
)
partial("ix_test_case_by_harm", CaseRow, "repository_id", "impact_rank", "no", where=_KNOWN)
# Their number and their cost by status are read from the first of these indexes alone.
partial("ix_test_case_places", CaseRow, "repository_id", "file", "classname", where=_KNOWN)
partial("ix_test_case_by_cost", CaseRow, "repository_id", "status", "cost_rank", "no", where=_KNOWN)
partial("ix_test_case_by_all_cost", CaseRow, "repository_id", "cost_rank", "no", where=_KNOWN)
partial(
    "ix_test_case_costs_since",
    CaseRow,
    "costs_since",
    where=CaseRow.__table__.c.costs_since.is_not(None),
)


class CaseAliasRow(Row, table=True):
    """Another id of a test."""

    __tablename__ = "alias"
    __table_args__ = (Index("ix_alias_repository_id_no", "repository_id", "no"),)

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    id: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    no: int


class CaseStateRow(Row, table=True):
    """The state of a test, once it was judged or flagged; `numbers` say what it was judged by.

    `settled` is what of it was concluded from evidence that is gone.
    """

    __tablename__ = "test_state"

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    no: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    value: str
    reason: str
    since: datetime = Field(sa_type=Utc)
    is_stale: bool
    numbers: str = Field(sa_type=Json)
    settled: str | None = Field(sa_type=Json)
    flag: str
    flag_reason: str
    flagged_by: str
    flagged_at: datetime | None = Field(sa_type=Utc)


class CaseStateEventRow(Row, table=True):
    """A change of how a test is, or a correction of one; rows are only ever added.

    `at` is the time of the evidence, `written_at` when the row was made. The detector has no
    `actor_login`.
    """

    __tablename__ = "test_state_event"
    __table_args__ = (
        Index("ix_test_state_event_repository_id_no_id", "repository_id", "no", "id"),
        Index("ix_test_state_event_repository_id_written_at", "repository_id", "written_at"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Id)
    org_id: int = Field(sa_type=Id)
    repository_id: int = Field(sa_type=Id)
    no: int
    at: datetime = Field(sa_type=Utc)
    written_at: datetime = Field(sa_type=Utc)
    kind: str
    previous: str
    value: str
    reason: str
    actor_kind: str
    actor_login: str


class CaseOverrideRow(Row, table=True):
    """A person's statement about a test's quarantine; `is_open` while it stands.

    Rows are only ever added and closed, so that what stood at a moment can be told. Taking a
    word back is a row too, UNSPECIFIED and never open.
    """

    __tablename__ = "test_override"
    __table_args__ = (Index("ix_test_override_repository_id_no_id", "repository_id", "no", "id"),)

    id: int | None = Field(default=None, primary_key=True, sa_type=Id)
    org_id: int = Field(sa_type=Id)
    repository_id: int = Field(sa_type=Id)
    no: int
    override: str
    reason: str
    at: datetime = Field(sa_type=Utc)
    expires_at: datetime | None = Field(sa_type=Utc)
    actor_kind: str
    actor_login: str
    is_open: bool


_OPEN = CaseOverrideRow.__table__.c.is_open.is_(True)
partial_unique("ux_test_override_open", CaseOverrideRow, "repository_id", "no", where=_OPEN)
partial(
    "ix_test_override_open_by_time",
    CaseOverrideRow,
    "repository_id",
    "override",
    "at",
    "no",
    where=_OPEN,
)
partial("ix_test_override_open_expires_at", CaseOverrideRow, "expires_at", where=_OPEN)


class TicketRow(Row, table=True):
    """The ticket of a test."""

    __tablename__ = "ticket"

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    no: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    html_url: str = Field(sa_type=Text)
    at: datetime = Field(sa_type=Utc)


class TicketIssueRow(Row, table=True):
    """An issue that we keep of a test; `number` and `html_url` once it is made.

    `told` is the status in its text, `look_at` when to look at it again by itself.
    """

    __tablename__ = "ticket_issue"
    __table_args__ = (Index("ix_ticket_issue_repository_id_asked_at", "repository_id", "asked_at"),)

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    no: int = Field(primary_key=True, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    asked_at: datetime = Field(sa_type=Utc)
    told: str
    number: int | None = Field(sa_type=Id)
    html_url: str | None = Field(sa_type=Text)
    reopens: bool
    look_at: datetime | None = Field(sa_type=Utc)


partial(
    "ix_ticket_issue_look_at",
    TicketIssueRow,
    "repository_id",
    "look_at",
    where=TicketIssueRow.__table__.c.look_at.is_not(None),
)


class TestSettingsRow(Row, table=True):
    """Settings of a repository; none while all are as they were at first.

    `quarantine_since` and `auto_since` say since when the two switches are on, `alerted_week` for
    which week it was said that flaky tests cost too much.
    """

    __tablename__ = "test_settings"
    __test__ = False

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    quarantine_enabled: bool
    auto_quarantine_enabled: bool
    auto_quarantine_statuses: str = Field(sa_type=Json)
    sensitivity: str
    stable_branches: str | None = Field(sa_type=Json)
    ticket_url_template: str | None
    collect_artifacts: bool
    artifact_patterns: str = Field(sa_type=Json)
    name_masks: str = Field(sa_type=Json)
    ticket_issues: bool
    quarantine_since: datetime | None = Field(sa_type=Utc)
    auto_since: datetime | None = Field(sa_type=Utc)
    alerted_week: int | None
    quarantine_forgives: str
    test_failure_exit_codes: str = Field(sa_type=Json)
    excuse_proof: str
    report_issuers: str = Field(sa_type=Json)
    flake_cost_alert_minutes: int | None
    repeat_minutes_per_day: int | None


class CodeOwnersRow(Row, table=True):
    """The CODEOWNERS file of a repository with tests, as last read of its default branch.

    `path` is where it stands, empty without one, `blob` the id of what it holds. Tests up to
    number `owned_no` have their owners by it. It is read anew at `stale_at`; `due_at` is when
    anything is to be done at all.
    """

    __tablename__ = "code_owners"
    __table_args__ = (Index("ix_code_owners_due_at", "due_at"),)

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    path: str
    blob: str
    text: str = Field(sa_type=Text)
    read_at: datetime | None = Field(sa_type=Utc)
    owned_no: int
    stale_at: datetime = Field(sa_type=Utc)
    due_at: datetime = Field(sa_type=Utc)


partial(
    "ix_test_settings_open_ticket_issues",
    TestSettingsRow,
    "repository_id",
    "org_id",
    where=TestSettingsRow.__table__.c.ticket_issues.is_(True),
)
partial(
    "ix_test_settings_open_cost_alerts",
    TestSettingsRow,
    *("repository_id", "org_id", "alerted_week"),
    where=TestSettingsRow.__table__.c.flake_cost_alert_minutes.is_not(None),
)
