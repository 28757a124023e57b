"""The CODEOWNERS file that each repository has, and the owners of its tests by it.

One worker at a time claims a repository by setting times in the future. A request made meanwhile
sets other times, and is served when the claim ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.codec import RowCodec
from service.testhealth.store import cases as test_cases
from service.testhealth.store.cases import OWNERS, Place, keys_of
from service.testhealth.store.tables_tests import CaseRow, CodeOwnersRow


class OwnersText(NamedTuple):
    """A file, the id of what it holds, and the text itself; all empty: there is none."""

    path: str = ""
    blob: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class OwnersFile:
    """A repository's file as last read; `path` empty: there is none. `read_at` None: never read.

    Tests up to number `owned_no` have their owners by it. It is to be read anew at `stale_at`.
    """

    path: str
    blob: str
    text: str
    read_at: datetime | None
    owned_no: int
    stale_at: datetime
    due_at: datetime

    @property
    def content(self) -> OwnersText:
        """Return what was read."""
        return OwnersText(self.path, self.blob, self.text)


class Claimed(NamedTuple):
    """A repository that nobody else looks after until an instant; whether its file is stale."""

    place: Place
    file: OwnersFile
    is_stale: bool
    until: datetime


class OwnedCase(NamedTuple):
    """A test as far as its owners depend on it, and who they are; texts empty when missing."""

    no: int
    file: str
    classname: str
    owners: tuple[str, ...]


files = CodeOwnersRow.__table__
cases = CaseRow.__table__

FILE = RowCodec(OwnersFile, files, keys={"org_id", "repository_id"})


def path_of(session: Connection, repository_id: int) -> str | None:
    """Return the path of the repository's file, empty without one; None: never looked for."""
    statement = select(files.c.path).where(files.c.repository_id == repository_id)
    path: str | None = session.execute(statement).scalar_one_or_none()
    return path


def begin(session: Connection, place: Place, at: datetime) -> None:
    """Have the repository's file looked for from an instant on; safe to repeat."""
    new = OwnersFile("", "", "", None, 0, stale_at=at, due_at=at)
    session.execute(upsert(files).on_conflict_do_nothing(), FILE.row(new) | keys_of(place))


def look_sooner(session: Connection, repository_id: int, at: datetime) -> None:
    """Have new tests get their owners at an instant or earlier."""
    _change(session, repository_id, files.c.due_at > at, due_at=at)


def read_sooner(session: Connection, repository_id: int, at: datetime) -> None:
    """Have the file read anew at an instant or earlier, if it is looked for at all."""
    _change(session, repository_id, files.c.stale_at > at, stale_at=at, due_at=at)


def claim(session: Connection, now: datetime, until: datetime) -> Claimed | None:
    """Claim the repository that has been due for longest until an instant, None if none is due."""
    row = session.execute(
        select(*FILE.columns, files.c.org_id, files.c.repository_id)
        .where(files.c.due_at <= now)
        .order_by(files.c.due_at)
        .limit(1)
        .with_for_update(skip_locked=True)
    ).first()
    if row is None:
        return None
    place, file = Place(row.org_id, row.repository_id), FILE.value(row)
    is_stale = file.stale_at <= now
    times = {"due_at": until} | ({"stale_at": until} if is_stale else {})
    _change(session, place.repository_id, **times)
    return Claimed(place, file, is_stale, until)


def finish(session: Connection, claimed: Claimed, fresh_until: datetime) -> None:
    """End a claim: the repository is due when its file is stale, or when requested meanwhile.

    `fresh_until` counts for a file that was stale.
    """
    here, until = claimed.place.repository_id, claimed.until
    if claimed.is_stale:
        _change(session, here, files.c.stale_at == until, stale_at=fresh_until)
    _change(session, here, files.c.due_at == until, due_at=files.c.stale_at)


def put(session: Connection, repository_id: int, read: OwnersText, at: datetime) -> None:
    """Store the file as it was read at an instant; no test has its owners by it yet."""
    _change(session, repository_id, **read._asdict(), read_at=at, owned_no=0)


def cases_after(
    session: Connection, repository_id: int, no: int, at_most: int
) -> tuple[OwnedCase, ...]:
    """Return tests with higher numbers than this, the lowest first, unlisted tests too."""
    statement = (
        select(cases.c.no, cases.c.file, cases.c.classname, cases.c.owners)
        .where(cases.c.repository_id == repository_id, cases.c.no > no)
        .order_by(cases.c.no)
        .limit(at_most)
    )
    return tuple(
        OwnedCase(row.no, row.file, row.classname, OWNERS.decode(row.owners))
        for row in session.execute(statement)
    )


def assign_owners(
    session: Connection,
    place: Place,
    as_read_at: datetime,
    changed: Mapping[int, tuple[str, ...]],
    up_to_no: int,
) -> bool:
    """Store other owners of tests; the owners of tests up to that number are then right.

    Return False, and change nothing, if the file was read again meanwhile.
    """
    here = place.repository_id
    # In the order of uploads, which lock their tests before the file.
    test_cases.lock(session, here)
    statement = select(files.c.read_at).where(files.c.repository_id == here)
    if session.execute(statement).scalar_one() != as_read_at:
        return False
    if changed:
        test_cases.put_owners(session, here, changed)
        test_cases.note_change(session, here)
    _change(session, here, owned_no=up_to_no)
    return True


def _change(
    session: Connection, repository_id: int, *conditions: ColumnElement[bool], **values: object
) -> None:
    statement = update(files).where(files.c.repository_id == repository_id, *conditions)
    session.execute(statement.values(**values))
