"""The base of all tables, and their indexes."""

from typing import ClassVar

from sqlalchemy import ColumnElement, Index, MetaData, Table
from sqlmodel import SQLModel

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)
"""All tables, with names for constraints that a later migration can use."""


MOVES_WITH_REPOSITORY = "moves with repository"
"""In the `info` of a table: its rows follow their repository to another organization."""


class Row(SQLModel):
    """Base of the table classes; statements are built on `__table__`."""

    __table__: ClassVar[Table]
    metadata: ClassVar[MetaData] = METADATA
    model_config = {"defer_build": True}


def partial(name: str, row: type[Row], *columns: str, where: ColumnElement[bool]) -> Index:
    """An index over the rows for which `where` holds, on both databases."""
    table = row.__table__
    return Index(
        name,
        *(table.c[column] for column in columns),
        sqlite_where=where,
        postgresql_where=where,
    )


def partial_unique(name: str, row: type[Row], *columns: str, where: ColumnElement[bool]) -> Index:
    """The same, unique: no two such rows may be equal in these columns."""
    table = row.__table__
    return Index(
        name,
        *(table.c[column] for column in columns),
        unique=True,
        sqlite_where=where,
        postgresql_where=where,
    )
