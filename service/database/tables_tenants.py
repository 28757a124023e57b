"""The deployment, its tenants and their repositories: the rows that all others refer to."""

from sqlalchemy import UniqueConstraint
from sqlmodel import Field

from service.database.tables_base import Row
from service.database.types import Id, Json


class DeploymentRow(Row, table=True):
    """One row: the identity of this database, named in a trailer of each test commit.

    Triggers increment `access_version` with every change of access: tokens, names of
    repositories, and which queues exist.
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
