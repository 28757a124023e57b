"""Tenants, their repositories and tokens, and what was done with them."""

from datetime import datetime

from sqlalchemy import Index, LargeBinary, UniqueConstraint
from sqlmodel import Field

from service.database.tables_base import Row
from service.database.types import Id, Json, Utc


class DeploymentRow(Row, table=True):
    """One row: who this database is. Stands in a trailer of each test commit.

    Triggers count `access_version` up with whatever changes who may see what: tokens, names
    of repositories, which queues there are.
    """

    __tablename__ = "deployment"

    id: int = Field(primary_key=True, sa_type=Id, sa_column_kwargs={"autoincrement": False})
    uuid: str
    access_version: int = Field(sa_column_kwargs={"server_default": "0"})


class OrganizationRow(Row, table=True):
    """A tenant. `slug_key` is the slug in lower case, NULL once another account has it."""

    __tablename__ = "organization"
    __table_args__ = (
        UniqueConstraint("host", "provider_id"),
        UniqueConstraint("host", "slug_key"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Id)
    host: str
    provider_id: str | None
    slug: str
    slug_key: str | None


class RepositoryRow(Row, table=True):
    """A repository; the keys are its name in lower case, NULL once another one has it."""

    __tablename__ = "repository"
    __table_args__ = (
        UniqueConstraint("host", "provider_id"),
        UniqueConstraint("host", "owner_key", "name_key"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Id)
    org_id: int = Field(foreign_key="organization.id", index=True, sa_type=Id)
    host: str
    provider_id: str
    owner: str
    name: str
    owner_key: str | None
    name_key: str | None
    default_branch: str
    merge_methods: str = Field(sa_type=Json)
    archived: bool
    available: bool
    url: str


class RepositoryAliasRow(Row, table=True):
    """A former name; it resolves until another repository takes it."""

    __tablename__ = "repository_alias"

    host: str = Field(primary_key=True)
    owner_key: str = Field(primary_key=True)
    name_key: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    repository_id: int = Field(foreign_key="repository.id", index=True, sa_type=Id)


class ApiTokenRow(Row, table=True):
    """An API token by its public id; `repositories` NULL means all.

    `granted_until` is the end that it was made with, `expires_at` its end now.
    """

    __tablename__ = "api_token"

    id: str = Field(primary_key=True)
    org_id: int = Field(foreign_key="organization.id", index=True, sa_type=Id)
    name: str
    role: str
    digest: bytes = Field(sa_type=LargeBinary)
    repositories: str | None = Field(sa_type=Json)
    created_at: datetime = Field(sa_type=Utc)
    expires_at: datetime | None = Field(sa_type=Utc)
    last_used_at: datetime | None = Field(sa_type=Utc)
    revoked_at: datetime | None = Field(sa_type=Utc)
    granted_until: datetime | None = Field(sa_type=Utc)


class AuditRow(Row, table=True):
    """Who did or was denied what. Triggers refuse UPDATE and DELETE."""

    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_org_id_id", "org_id", "id"),)

    id: int | None = Field(default=None, primary_key=True, sa_type=Id)
    at: datetime = Field(sa_type=Utc)
    org_id: int | None = Field(sa_type=Id)
    actor_kind: str
    actor_id: str
    actor_login: str
    channel: str
    action: str
    subject: str
    decision: str
    reason: str
    request_id: str
    data: str = Field(sa_type=Json)
