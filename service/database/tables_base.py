"""The base of all tables, and their indexes."""

from collections.abc import Collection
from dataclasses import fields
from typing import ClassVar, TypeVar

from pydantic import create_model
from sqlalchemy import ColumnElement, Index, MetaData, Table
from sqlmodel import SQLModel
from sqlmodel.main import SQLModelMetaclass

from service.database import codec
from service.database.codec import RowCodec

T = TypeVar("T")

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


class _Columns(SQLModelMetaclass):
    """Makes the columns of a table class from the fields of a value: `columns_of=Value`."""

    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        class_dict: dict[str, object],
        *,
        columns_of: type | None = None,
        without: Collection[str] = (),
        **options: object,
    ) -> "_Columns":
        if columns_of is not None:
            columns = codec.columns_of(columns_of, without)
            bases = (create_model(f"{name}Columns", __base__=bases, **columns),)
        made: _Columns = super().__new__(cls, name, bases, class_dict, **options)
        return made


class Row(SQLModel, metaclass=_Columns):
    """Base of the table classes; statements are built on `__table__`.

    `class EntryRow(Row, table=True, columns_of=Entry)` has a column of the same name for each field
    of `Entry`, except for those `without`, which other tables hold. It declares the columns that
    only the store knows, and those of another type or with an option.
    """

    __table__: ClassVar[Table]
    metadata: ClassVar[MetaData] = METADATA
    model_config = {"defer_build": True}


def codec_of(row: type[Row], kind: type[T]) -> RowCodec[T]:
    """Return the conversion between a value and the table class that has its columns."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    columns = set(row.__table__.c.keys())
    return RowCodec(kind, row.__table__, keys=columns - names, elsewhere=names - columns)


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
