"""Tables about pull requests, besides their entries."""

from datetime import datetime

from sqlalchemy import Index, Text
from sqlmodel import Field

from service.database.tables_base import Row
from service.database.types import Id, Json, Utc

_GIVEN = {"autoincrement": False}


class PullRequestRow(Row, table=True):
    """The newest head we have seen of a pull request."""

    __tablename__ = "pull_request"
    __table_args__ = (Index("ix_pull_request_repository_id_head", "repository_id", "head"),)

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    number: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    org_id: int = Field(sa_type=Id)
    head: str
    seen_at: datetime = Field(sa_type=Utc)


class ForkAuthorizationRow(Row, table=True):
    """A person with write access authorized this head of a fork."""

    __tablename__ = "fork_authorization"

    repository_id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    number: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs=_GIVEN)
    head: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    actor: str = Field(sa_type=Json)
    at: datetime = Field(sa_type=Utc)


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
