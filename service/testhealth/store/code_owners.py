"""The CODEOWNERS file that each repository has, and the owners of its tests by it.

One worker at a time claims a repository, by times that lie ahead; whoever wants something done
meanwhile sets others, and is heard when the claim ends (FLAKY.md 7.4).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.codec import RowCodec
from service.database.types import Utc
from service.testhealth.store import cases as test_cases
from service.testhealth.store import evidence_rows
from service.testhealth.store.cases import Place
from service.testhealth.store.evidence_rows import OWNERS, PUT_OWNERS
from service.testhealth.store.tables_tests import CaseRow, CodeOwnersRow


class FoundFile(NamedTuple):
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
    def found(self) -> FoundFile:
        """What was read."""
        return FoundFile(self.path, self.blob, self.text)


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

_HERE: BindParameter[int] = bindparam("of_repository")
_AT: BindParameter[datetime] = bindparam("to_at", type_=Utc)
_OF_REPOSITORY = files.c.repository_id == _HERE

SELECT_PATH = select(files.c.path).where(_OF_REPOSITORY)
SELECT_DUE = (
    select(*FILE.columns, files.c.org_id, files.c.repository_id)
    .where(files.c.due_at <= bindparam("now", type_=Utc))
    .order_by(files.c.due_at)
    .limit(1)
    .with_for_update(skip_locked=True)
)
BEGIN = upsert(files).on_conflict_do_nothing()
SET_DUE = update(files).where(_OF_REPOSITORY).values(due_at=_AT)
SET_STALE = update(files).where(_OF_REPOSITORY).values(stale_at=_AT)
LOOK_SOONER = SET_DUE.where(files.c.due_at > _AT)
READ_SOONER = (
    update(files).where(_OF_REPOSITORY, files.c.stale_at > _AT).values(stale_at=_AT, due_at=_AT)
)
_UNTIL: BindParameter[datetime] = bindparam("claimed_until", type_=Utc)
FRESH_UNTIL = SET_STALE.where(files.c.stale_at == _UNTIL)
FINISH = (
    update(files).where(_OF_REPOSITORY, files.c.due_at == _UNTIL).values(due_at=files.c.stale_at)
)
PUT = (
    update(files)
    .where(_OF_REPOSITORY)
    .values(
        path=bindparam("to_path"),
        blob=bindparam("to_blob"),
        text=bindparam("to_text"),
        read_at=_AT,
        owned_no=0,
    )
)
SELECT_READ_AT = select(files.c.read_at).where(_OF_REPOSITORY)
SET_OWNED = update(files).where(_OF_REPOSITORY).values(owned_no=bindparam("to_no"))
SELECT_CASES = (
    select(cases.c.no, cases.c.file, cases.c.classname, cases.c.owners)
    .where(cases.c.repository_id == _HERE, cases.c.no > bindparam("after_no"))
    .order_by(cases.c.no)
    .limit(bindparam("at_most"))
)


def path_of(session: Connection, repository_id: int) -> str | None:
    """Where the repository's file stands, empty without one; None: nobody looks after it yet."""
    found: str | None = session.execute(
        SELECT_PATH, {"of_repository": repository_id}
    ).scalar_one_or_none()
    return found


def begin(session: Connection, place: Place, at: datetime) -> None:
    """Have the repository looked after from an instant on; one that is, stays as it is."""
    new = OwnersFile("", "", "", None, 0, stale_at=at, due_at=at)
    keys = {"org_id": place.org_id, "repository_id": place.repository_id}
    session.execute(BEGIN, FILE.row(new) | keys)


def look_sooner(session: Connection, repository_id: int, at: datetime) -> None:
    """There are new tests: they are to have owners, at that instant or earlier."""
    session.execute(LOOK_SOONER, {"of_repository": repository_id, "to_at": at})


def read_sooner(session: Connection, repository_id: int, at: datetime) -> None:
    """Read the file anew at that instant or earlier; nothing where nobody looks after it."""
    session.execute(READ_SOONER, {"of_repository": repository_id, "to_at": at})


def claim(session: Connection, now: datetime, until: datetime) -> Claimed | None:
    """A repository of which something is due, the longest so first; its own until an instant."""
    row = session.execute(SELECT_DUE, {"now": now}).first()
    if row is None:
        return None
    place, file = Place(row.org_id, row.repository_id), FILE.value(row)
    is_stale = file.stale_at <= now
    told = {"of_repository": place.repository_id, "to_at": until}
    for statement in (SET_DUE, SET_STALE) if is_stale else (SET_DUE,):
        session.execute(statement, told)
    return Claimed(place, file, is_stale, until)


def finish(session: Connection, claimed: Claimed, fresh_until: datetime) -> None:
    """All is done, until the file is stale or what others wished for meanwhile is due.

    `fresh_until` counts for a file that was stale.
    """
    told = {"of_repository": claimed.place.repository_id, "claimed_until": claimed.until}
    if claimed.is_stale:
        session.execute(FRESH_UNTIL, told | {"to_at": fresh_until})
    session.execute(FINISH, told)


def put(session: Connection, repository_id: int, found: FoundFile, at: datetime) -> None:
    """The file as it was read at an instant; no test has its owners by it yet."""
    told = {f"to_{name}": word for name, word in found._asdict().items()}
    session.execute(PUT, {"of_repository": repository_id, "to_at": at} | told)


def cases_after(
    session: Connection, repository_id: int, no: int, at_most: int
) -> tuple[OwnedCase, ...]:
    """Tests with higher numbers than this, the lowest first, those that nobody knows too."""
    told = {"of_repository": repository_id, "after_no": no, "at_most": at_most}
    return tuple(
        OwnedCase(row.no, row.file, row.classname, OWNERS.decode(row.owners))
        for row in session.execute(SELECT_CASES, told)
    )


def own(
    session: Connection,
    place: Place,
    as_read_at: datetime,
    changed: Mapping[int, tuple[str, ...]],
    up_to_no: int,
) -> bool:
    """Give tests other owners; up to that number all are right then.

    False, and nothing is changed, when the file was read again meanwhile.
    """
    here = place.repository_id
    # In the order of uploads, which hold their tests when they come to the file.
    evidence_rows.lock(session, here)
    read_at = session.execute(SELECT_READ_AT, {"of_repository": here}).scalar_one()
    if read_at != as_read_at:
        return False
    if changed:
        told = [
            {"of_repository": here, "of_number": no, "to_owners": OWNERS.encode(owners)}
            for no, owners in sorted(changed.items())
        ]
        session.execute(PUT_OWNERS, told)
        test_cases.note_change(session, here)
    session.execute(SET_OWNED, {"of_repository": here, "to_no": up_to_no})
    return True
