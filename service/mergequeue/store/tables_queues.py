"""Tables of the merge queue: queues, entries, runs, landings, pull requests and metrics.

Field names are those of `service/mergequeue/engine/model.py`; `rows.py` holds both together.
"""

from datetime import datetime

from sqlalchemy import Index, Text, literal_column
from sqlmodel import Field

from service.database.tables_base import MOVES_WITH_REPOSITORY, Row, partial, partial_unique
from service.database.types import Id, Json, Utc

_GIVEN = {"autoincrement": False}


class MergeQueueRow(Row, table=True):
    """One queue per repository and target branch while not deleted.

    `version` counts changes, `epoch` writers; a turn's update names both. `revision` counts what
    the API shows as `version`.
    """

    __tablename__ = "merge_queue"
    __table_args__ = ({"info": {MOVES_WITH_REPOSITORY: True}},)

    id: int | None = Field(default=None, primary_key=True, sa_type=Id)
    org_id: int = Field(sa_type=Id)
    repository_id: int = Field(foreign_key="repository.id", index=True, sa_type=Id)
    epoch: int = Field(sa_type=Id)
    wake_at: datetime | None = Field(sa_type=Utc)
    deleted_at: datetime | None = Field(sa_type=Utc)
    uid: str
    branch: str
    config: str = Field(sa_type=Json)
    own_config: str | None = Field(sa_type=Json)
    chosen: str = Field(sa_type=Json)
    file: str | None = Field(sa_type=Json)
    tip: str | None = Field(sa_type=Json)
    state: str
    state_reason: str | None
    state_since: datetime | None = Field(sa_type=Utc)
    state_by: str | None = Field(sa_type=Json)
    test_branch_reason: str | None
    target_mode: str | None
    sends_results: bool
    rates: str = Field(sa_type=Json)
    check_history: str = Field(sa_type=Json)
    bisections: str = Field(sa_type=Json)
    landing: str | None = Field(sa_type=Json)
    holds: str = Field(sa_type=Json)
    landed: str = Field(sa_type=Json)
    breaker: str = Field(sa_type=Json)
    records: str = Field(sa_type=Json)
    required: str | None = Field(sa_type=Json)
    kept_move: str | None = Field(sa_type=Json)
    untested: str | None = Field(sa_type=Json)
    advance_refused_at: datetime | None = Field(sa_type=Utc)
    land_after: datetime | None = Field(sa_type=Utc)
    unexplained: str = Field(sa_type=Json)
    next_seq: int
    next_run: int
    next_bisection: int
    next_entry: int
    next_landing: int
    next_hold: int
    deleted: bool
    revision: int = Field(sa_type=Id)
    version: int = Field(sa_type=Id)


partial_unique(
    "ux_merge_queue_branch",
    MergeQueueRow,
    "repository_id",
    "branch",
    where=MergeQueueRow.__table__.c.deleted.is_(False),
)
partial(
    "ix_merge_queue_wake_at",
    MergeQueueRow,
    "wake_at",
    where=MergeQueueRow.__table__.c.wake_at.is_not(None),
)


class EntryRow(Row, table=True):
    """One submission; `live` while the queue's value holds it."""

    __tablename__ = "entry"
    __table_args__ = (
        Index("ix_entry_queue_id_no", "queue_id", "no"),
        Index("ix_entry_queue_id_pr_no", "queue_id", "pr", "no"),
    )

    no: int | None = Field(default=None, primary_key=True, sa_type=Id)
    org_id: int = Field(sa_type=Id)
    queue_id: int = Field(foreign_key="merge_queue.id", sa_type=Id)
    live: bool
    id: str = Field(unique=True)
    pr: int = Field(sa_type=Id)
    facts: str = Field(sa_type=Json)
    head: str
    submitted_by: str = Field(sa_type=Json)
    submitted_at: datetime = Field(sa_type=Utc)
    priority: int
    no_batch: bool
    state: str
    state_since: datetime = Field(sa_type=Utc)
    reason: str
    detail: str = Field(sa_type=Json)
    seq: int | None
    rank: int | None = Field(sa_type=Id)
    run: str | None
    verified_by: str | None
    bisection: str | None
    held_by: str = Field(sa_type=Json)
    unmet: str = Field(sa_type=Json)
    barred: str = Field(sa_type=Json)
    unready_since: datetime | None = Field(sa_type=Utc)
    p_fail: float
    cancel: str | None
    cancel_detail: str = Field(sa_type=Json)
    canceller: str | None = Field(sa_type=Json)
    retries: int
    build_tries: int
    build_after: datetime | None = Field(sa_type=Utc)
    taken_apart: bool
    fresh: bool
    restarts: str = Field(sa_type=Json)
    losses: int
    landed_sha: str | None
    targets: str | None
    wide: str | None
    batch: int | None
    failed_batches: int
    kept: bool
    screened: bool
    stops: str = Field(sa_type=Json)
    refusals: int
    refusal: str | None = Field(sa_type=Json)
    rested_on: str | None


partial_unique(
    "ux_entry_live", EntryRow, "queue_id", "pr", where=EntryRow.__table__.c.live.is_(True)
)
partial(
    "ix_entry_targets",
    EntryRow,
    "targets",
    where=EntryRow.__table__.c.targets.is_not(None),
)
partial("ix_entry_wide", EntryRow, "wide", where=EntryRow.__table__.c.wide.is_not(None))
partial(
    "ix_entry_ended",
    EntryRow,
    "queue_id",
    "state",
    "state_since",
    "no",
    where=EntryRow.__table__.c.live.is_(False),
)


class RunRow(Row, table=True):
    """One test run; the vehicle is the draft pull request that carries it, if any.

    `restored`: its test branch was put back once.
    """

    __tablename__ = "run"
    __table_args__ = (
        Index("ix_run_queue_id_status_no", "queue_id", "status", "no"),
        Index("ix_run_repository_id_branch", "repository_id", "branch"),
    )

    no: int | None = Field(default=None, primary_key=True, sa_type=Id)
    org_id: int = Field(sa_type=Id)
    repository_id: int = Field(sa_type=Id)
    queue_id: int = Field(foreign_key="merge_queue.id", sa_type=Id)
    live: bool
    vehicle_number: int | None = Field(sa_type=Id)
    vehicle_url: str | None
    restored: bool
    id: str = Field(unique=True)
    number: int
    kind: str
    base_tip: str = Field(sa_type=Json)
    status: str
    phase: str
    required: str = Field(sa_type=Json)
    required_source: str | None
    config: str = Field(sa_type=Json)
    created_at: datetime = Field(sa_type=Utc)
    steps: str = Field(sa_type=Json)
    sha: str | None
    branch: str | None
    attempt: int
    checks_complete: bool
    built_at: datetime | None = Field(sa_type=Utc)
    start_clock: datetime | None = Field(sa_type=Utc)
    last_report_at: datetime | None = Field(sa_type=Utc)
    failed_at: datetime | None = Field(sa_type=Utc)
    finished_at: datetime | None = Field(sa_type=Utc)
    cause: str | None
    excused: str = Field(sa_type=Json)
    asked_evidence: datetime | None = Field(sa_type=Utc)
    evidence: str | None = Field(sa_type=Json)
    rerun_at: datetime | None = Field(sa_type=Utc)
    rerun_ids: str = Field(sa_type=Json)
    revoked: str = Field(sa_type=Json, sa_column_kwargs={"server_default": "[]"})
    is_flaky: bool
    fresh: bool
    published: bool
    reused_from: str | None
    deadline: datetime | None = Field(sa_type=Utc)
    contained: bool
    bisection: str | None
    without: str = Field(sa_type=Json)
    witness_of: str | None


partial("ix_run_live", RunRow, "queue_id", where=RunRow.__table__.c.live.is_(True))
partial(
    "ix_run_built",
    RunRow,
    "queue_id",
    "no",
    "status",
    where=RunRow.__table__.c.sha.is_not(None),
)
partial("ix_run_live_sha", RunRow, "repository_id", "sha", where=RunRow.__table__.c.live.is_(True))


class RunEntryRow(Row, table=True):
    """A pull request of a run: tested by it, or part of its base."""

    __tablename__ = "run_entry"

    run_id: str = Field(primary_key=True, foreign_key="run.id")
    role: str = Field(primary_key=True)
    position: int = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    pr: int = Field(sa_type=Id)
    entry: str = Field(index=True)
    head: str


class RunCheckRow(Row, table=True):
    """A report on a run's commit, at its place among the reports."""

    __tablename__ = "run_check"

    run_id: str = Field(primary_key=True, foreign_key="run.id")
    position: int = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    kind: str
    name: str
    source_id: str | None
    group: str
    id: str
    outcome: str
    raw: str
    url: str
    started_at: datetime | None = Field(sa_type=Utc)
    completed_at: datetime | None = Field(sa_type=Utc)
    account: str | None
    author: str = Field(sa_column_kwargs={"server_default": ""})
    attempt: int | None


class GreenTreeRow(Row, table=True):
    """A tree that passed; `key` is the engine's."""

    __tablename__ = "green_tree"
    __table_args__ = (Index("ix_green_tree_queue_id_at", "queue_id", "at"),)

    queue_id: int = Field(
        primary_key=True,
        foreign_key="merge_queue.id",
        sa_type=Id,
        sa_column_kwargs=_GIVEN,
    )
    key: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    tree: str
    required: str
    run: str
    sha: str
    at: datetime = Field(sa_type=Utc)


class LandingRow(Row, table=True):
    """One landing of one position; kept for ever."""

    __tablename__ = "landing"
    __table_args__ = (Index("ix_landing_run", "run"),)

    id: int | None = Field(default=None, primary_key=True, sa_type=Id)
    org_id: int = Field(sa_type=Id)
    repository_id: int = Field(sa_type=Id)
    queue_id: int = Field(sa_type=Id)
    run: str
    number: int
    position: int
    pr: int = Field(sa_type=Id)
    entry: str
    head: str
    mode: str
    expected_parent: str
    expected_tree: str
    tested_tree: str | None
    state: str
    permit_until: datetime | None = Field(sa_type=Utc)
    landed_sha: str | None
    landed_tree: str | None
    evidence: str | None


# Literals, not parameters: SQLite recognizes a partial index only by equal text.
IS_OPEN_PERMIT = LandingRow.__table__.c.state.in_(
    [literal_column("'permitted'"), literal_column("'unknown'")]
)
IS_LANDED = LandingRow.__table__.c.state == literal_column("'landed'")

partial("ix_landing_open_permit", LandingRow, "queue_id", where=IS_OPEN_PERMIT)
partial_unique("ux_landing_landed", LandingRow, "repository_id", "pr", "head", where=IS_LANDED)


class LandingEvidenceRow(Row, table=True):
    """The signed evidence of one landed pull request, by its commit; kept for ever."""

    __tablename__ = "landing_evidence"
    __table_args__ = (
        Index("ix_landing_evidence_queue_id_no", "queue_id", "no"),
        Index("ux_landing_evidence_commit", "repository_id", "sha", "pr", unique=True),
    )

    no: int | None = Field(default=None, primary_key=True, sa_type=Id)
    org_id: int = Field(sa_type=Id)
    repository_id: int = Field(sa_type=Id)
    queue_id: int = Field(sa_type=Id)
    sha: str
    pr: int = Field(sa_type=Id)
    key_id: str
    envelope: str = Field(sa_type=Text)
    at: datetime = Field(sa_type=Utc)


class PullRequestRow(Row, table=True):
    """The newest head we have seen of a pull request."""

    __tablename__ = "pull_request"
    __table_args__ = (Index("ix_pull_request_repository_id_head", "repository_id", "head"),)

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    number: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    head: str
    seen_at: datetime = Field(sa_type=Utc)
    shown_at: datetime | None = Field(sa_type=Utc)


class ConsentRow(Row, table=True):
    """A person with the right let in this head of a fork onto this base."""

    __tablename__ = "consent"

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    number: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    head: str = Field(primary_key=True)
    base: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    actor: str = Field(sa_type=Json)
    right: int
    sensitive: str = Field(sa_type=Json)
    at: datetime = Field(sa_type=Utc)
    source: str


class ImpactedTargetsRow(Row, table=True):
    """Uploaded targets of one head, by their word (`target_sets.py`)."""

    __tablename__ = "impacted_targets"

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    number: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    head: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    targets: str = Field(index=True, sa_type=Text)
    at: datetime = Field(index=True, sa_type=Utc)


class TargetSetRow(Row, table=True):
    """The names of one set of targets, as JSON; equal sets of all tenants are one row."""

    __tablename__ = "target_set"

    word: str = Field(primary_key=True)
    names: str = Field(sa_type=Json)


class NoticeRow(Row, table=True):
    """A notice of ours at the provider; `entry` is empty for comments."""

    __tablename__ = "notice"

    queue_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    pr: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    surface: str = Field(primary_key=True)
    entry: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    provider_id: str
    digest: str


class FigureRow(Row, table=True):
    """Counts and total durations of events, one row per bucket of durations.

    `labels` are the values of the fact's labels with `/` between; `ms` are milliseconds. Rows
    are added to and never deleted: they outlive the entries and events that they count.
    """

    __tablename__ = "figure"

    queue_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
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
