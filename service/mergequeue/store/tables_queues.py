"""Tables of the merge queue: queues, entries, runs, landings, pull requests and metrics.

A table of an engine's value has a column for each of its fields (`columns_of`).
"""

from datetime import datetime

from sqlalchemy import Index, Text, false, literal_column
from sqlmodel import Field

from service.database.tables_base import MOVES_WITH_REPOSITORY, Row, partial, partial_unique
from service.database.types import Id, Json, Utc
from service.mergequeue.engine.model import Entry, Green, Member, MergeQueue, Run
from service.vocabulary import Check

_GIVEN = {"autoincrement": False}


class MergeQueueRow(Row, table=True, columns_of=MergeQueue, without={"entries", "runs", "greens"}):
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
    revision: int = Field(sa_type=Id)
    version: int = Field(sa_type=Id)
    turns: str = Field(sa_type=Json, sa_column_kwargs={"server_default": "[]"})


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


class EntryRow(Row, table=True, columns_of=Entry):
    """One submission; `live` while the queue's value holds it.

    `submitter` is the identity that budgets count it for (`engine/submitters.py`).
    """

    __tablename__ = "entry"
    __table_args__ = (
        Index("ix_entry_queue_id_no", "queue_id", "no"),
        Index("ix_entry_queue_id_pr_no", "queue_id", "pr", "no"),
        Index("ix_entry_submitter_state_since", "submitter", "state_since"),
    )

    no: int | None = Field(default=None, primary_key=True, sa_type=Id)
    org_id: int = Field(sa_type=Id)
    queue_id: int = Field(foreign_key="merge_queue.id", sa_type=Id)
    live: bool
    id: str = Field(unique=True)
    pr: int = Field(sa_type=Id)
    rank: int | None = Field(sa_type=Id)
    waits: str = Field(sa_type=Json, sa_column_kwargs={"server_default": "[]"})
    is_priority_given: bool = Field(sa_column_kwargs={"server_default": false()})
    undoes: str = Field(sa_type=Json, sa_column_kwargs={"server_default": "[]"})
    turn: int = Field(sa_type=Id, sa_column_kwargs={"server_default": "0"})
    submitter: str = Field(sa_column_kwargs={"server_default": ""})
    # Words of `target_sets.py`.
    targets: str | None
    wide: str | None


# A literal, not a parameter: SQLite recognizes a partial index only by equal text.
IS_FAILED = EntryRow.__table__.c.state == literal_column("'FAILED'")

partial("ix_entry_failed_head", EntryRow, "queue_id", "head", "no", where=IS_FAILED)
partial("ix_entry_live_submitter", EntryRow, "submitter", where=EntryRow.__table__.c.live.is_(True))
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


class RunRow(Row, table=True, columns_of=Run, without={"entries", "base", "checks"}):
    """One test run; the vehicle is the draft pull request that carries it, if any.

    `restored`: its test branch was put back once.
    """

    __tablename__ = "run"
    __table_args__ = (
        Index("ix_run_queue_id_status_no", "queue_id", "status", "no"),
        Index("ix_run_queue_id_created_at", "queue_id", "created_at"),
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
    revoked: str = Field(sa_type=Json, sa_column_kwargs={"server_default": "[]"})
    doomed: str = Field(sa_type=Json, sa_column_kwargs={"server_default": "[]"})
    is_foreseen: bool = Field(sa_column_kwargs={"server_default": false()})
    share: float = Field(sa_column_kwargs={"server_default": "1"})
    is_repeated: bool = Field(sa_column_kwargs={"server_default": false()})


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


class RunEntryRow(Row, table=True, columns_of=Member):
    """A pull request of a run: tested by it, or part of its base."""

    __tablename__ = "run_entry"

    run_id: str = Field(primary_key=True, foreign_key="run.id")
    role: str = Field(primary_key=True)
    position: int = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    pr: int = Field(sa_type=Id)
    entry: str = Field(index=True)


class RunCheckRow(Row, table=True, columns_of=Check):
    """A report on a run's commit, at its place among the reports."""

    __tablename__ = "run_check"

    run_id: str = Field(primary_key=True, foreign_key="run.id")
    position: int = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    author: str = Field(sa_column_kwargs={"server_default": ""})


class GreenTreeRow(Row, table=True, columns_of=Green):
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

partial(
    "ix_landing_landed_sha",
    LandingRow,
    "repository_id",
    "landed_sha",
    where=LandingRow.__table__.c.landed_sha.is_not(None),
)
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


class ShadowMergeRow(Row, table=True):
    """A merge by others beside a queue in shadow; `is_red`: a required check failed on its commit.

    `is_red` None: not all of them have reported there, as far as was seen.
    """

    __tablename__ = "shadow_merge"

    entry: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    queue_id: int = Field(index=True, sa_type=Id)
    merged_at: datetime | None = Field(sa_type=Utc)
    sha: str | None
    is_red: bool | None


class ConflictPairRow(Row, table=True):
    """Two open pull requests of which one conflicts once the other has landed."""

    __tablename__ = "conflict_pair"

    queue_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    low: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    high: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    head_low: str
    head_high: str
    paths: str = Field(sa_type=Text)
    found_at: datetime = Field(sa_type=Utc)


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
