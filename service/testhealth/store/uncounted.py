"""Tests of complete uploads of which something is to be noted, in parts of a transaction each.

A part goes in the transaction that counts it, so each counts once, whoever does it and however
often it was begun.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import BindParameter, Connection, bindparam, delete, func, insert, select

from service.database import bulk
from service.database.codec import RowCodec
from service.testhealth.store.cases import Place, keys_of
from service.testhealth.store.tables_evidence import UncountedRow

ROWS_MAX = bulk.AT_ONCE
"""Tests of one part."""

APART_MAX = 500
"""Tests of one part whose attempts are stored: each costs several times as much to count."""


@dataclass(frozen=True, slots=True)
class Owned:
    """Numbers of tests that have the same owners."""

    owners: tuple[str, ...]
    nos: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """The `n`th part of an upload, from 1; all but one of its fields are empty.

    `passed` and `skipped` are tests whose first run it may be, or their first for long; of those
    `apart` attempts are stored, which are to be counted. All are rows of numbers as
    `bulk.text_of` makes them. `owners` are those of tests that passed or were skipped at once.
    """

    n: int
    passed: str = bulk.NONE
    skipped: str = bulk.NONE
    owners: tuple[Owned, ...] = ()
    apart: str = bulk.NONE


parts = UncountedRow.__table__

PART = RowCodec(Part, parts, keys={"upload", "org_id", "repository_id"})

_UPLOAD: BindParameter[str] = bindparam("of_upload")
INSERT_PART = insert(parts)
_last = select(func.max(parts.c.n)).where(parts.c.upload == _UPLOAD).scalar_subquery()
TAKE_PART = (
    delete(parts).where(parts.c.upload == _UPLOAD, parts.c.n == _last).returning(*PART.columns)
)
DROP_PARTS = delete(parts).where(parts.c.upload == _UPLOAD)
SELECT_UPLOADS = select(parts.c.upload).distinct()


def put(session: Connection, place: Place, upload_id: str, given: Sequence[Part]) -> None:
    """Leave these parts for later."""
    if given:
        keys = {"upload": upload_id} | keys_of(place)
        session.execute(INSERT_PART, [PART.row(each) | keys for each in given])


def take(session: Connection, upload_id: str) -> Part | None:
    """Take a part out, the one with the highest number; None when none is left."""
    row = session.execute(TAKE_PART, {"of_upload": upload_id}).first()
    return None if row is None else PART.value(row)


def drop(session: Connection, upload_id: str) -> None:
    """Forget what is left of an upload that is gone."""
    session.execute(DROP_PARTS, {"of_upload": upload_id})


def uploads(session: Connection) -> tuple[str, ...]:
    """The uploads of which something is left."""
    return tuple(session.execute(SELECT_UPLOADS).scalars())
