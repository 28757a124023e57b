"""Former names of repositories, API tokens, sessions of people and the audit log."""

from datetime import datetime

from sqlalchemy import Index, LargeBinary
from sqlmodel import Field

from service.database.tables_base import Row, partial_unique
from service.database.types import Id, Json, Utc


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

    `granted_until` is the end that it was made with, `expires_at` its end now. `open_entries` and
    `ci_minutes` are its limits in all queues; 0: no limit.
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
    open_entries: int = Field(sa_column_kwargs={"server_default": "0"}, sa_type=Id)
    ci_minutes: int = Field(sa_column_kwargs={"server_default": "0"}, sa_type=Id)


class WebSessionRow(Row, table=True):
    """A sign-in session of a person, by the hash of its cookie. It belongs to no organization."""

    __tablename__ = "web_session"

    digest: bytes = Field(primary_key=True, sa_type=LargeBinary)
    host: str
    person_id: str
    login: str
    created_at: datetime = Field(sa_type=Utc)
    seen_at: datetime = Field(sa_type=Utc)


class SigningKeyRow(Row, table=True):
    """A key that signs evidence of landings, kept for ever; one has no end: the present one.

    `public` are its 32 bytes in hexadecimal digits, `sealed` is its private half.
    """

    __tablename__ = "signing_key"

    id: str = Field(primary_key=True)
    public: str
    sealed: bytes = Field(sa_type=LargeBinary)
    since: datetime = Field(sa_type=Utc)
    until: datetime | None = Field(sa_type=Utc)
    is_present: bool


partial_unique(
    "ux_signing_key_present",
    SigningKeyRow,
    "is_present",
    where=SigningKeyRow.__table__.c.is_present.is_(True),
)


class AuditRow(Row, table=True):
    """A record of who did or was denied what. Triggers refuse UPDATE and DELETE."""

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
