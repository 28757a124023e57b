"""Tests by number and by id, and what the tests of a repository share.

Ids stay when an organization or repository is renamed, because a repository remembers every
name under which tests were first seen (FLAKY.md 3).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import BindParameter, Connection, bindparam, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.flaky.identity import RepositoryKey
from service.store.codec import JsonCodec, RowCodec
from service.store.tables.tests import CaseAliasRow, CaseRow, TestedRepositoryRow
from service.vocabulary import Health

ASKED_AT_ONCE = 1000
"""Ids in one statement."""


@dataclass(frozen=True, slots=True)
class Place:
    """A repository, and whose it is."""

    org_id: int
    repository_id: int


@dataclass(frozen=True, slots=True)
class Shared:
    """What a repository's tests share; `names` oldest first, `clock` None before any evidence."""

    names: tuple[RepositoryKey, ...] = ()
    last_no: int = 0
    revision: int = 0
    clock: datetime | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A test as it is stored; texts are empty when missing.

    `named_under` is the place of the name in `Shared.names` that its id was made with.
    `is_known` is false while only untrusted uploads have it. `impact_rank` is minus the number
    of pull requests hit in a week.
    """

    no: int
    id: str
    named_under: int
    name: str
    classname: str
    parent: str
    file: str
    variant: str
    owners: tuple[str, ...]
    first_run_at: datetime
    last_run_at: datetime
    status_since: datetime
    line: int | None = None
    is_known: bool = True
    last_failed_at: datetime | None = None
    ever_passed: bool = False
    status: Health = Health.HEALTHY
    impact_rank: int = 0

    @property
    def impact(self) -> int:
        """Pull requests hit in the last 168 hours."""
        return -self.impact_rank


shared = TestedRepositoryRow.__table__
cases = CaseRow.__table__
aliases = CaseAliasRow.__table__

NAMES: JsonCodec[tuple[RepositoryKey, ...]] = JsonCodec(tuple[RepositoryKey, ...])
CASE = RowCodec(Case, cases, keys={"repository_id", "org_id"})

_HERE: BindParameter[int] = bindparam("of_repository")
_IDS: BindParameter[str] = bindparam("of_ids", expanding=True)

SELECT_REVISION = select(shared.c.revision).where(shared.c.repository_id == _HERE)
SELECT_SHARED = select(shared).where(shared.c.repository_id == _HERE)
INSERT_SHARED = upsert(shared).on_conflict_do_nothing()
TAKE_NUMBERS = (
    update(shared)
    .where(shared.c.repository_id == _HERE)
    .values(last_no=shared.c.last_no + bindparam("many"))
    .returning(shared.c.last_no)
)
NOTE_CHANGE = (
    update(shared)
    .where(shared.c.repository_id == _HERE)
    .values(revision=shared.c.revision + 1)
    .returning(shared.c.clock)
)
NEXT_REVISION = (
    update(shared)
    .where(shared.c.repository_id == _HERE)
    .values(revision=shared.c.revision + 1)
    .returning(shared.c.revision)
)
NOTE_REMOVAL = (
    update(shared)
    .where(shared.c.repository_id == _HERE)
    .values(revision=shared.c.revision + 1, removal=shared.c.revision + 1)
)
SET_CLOCK = (
    update(shared).where(shared.c.repository_id == _HERE).values(clock=bindparam("to_clock"))
)
INSERT_CASE = insert(cases)
SELECT_CASES = select(*CASE.columns).where(cases.c.repository_id == _HERE, cases.c.id.in_(_IDS))
SELECT_CASES_BY_ALIAS = (
    select(*CASE.columns, aliases.c.id.label("alias"))
    .join(cases, (cases.c.repository_id == aliases.c.repository_id) & (cases.c.no == aliases.c.no))
    .where(aliases.c.repository_id == _HERE, aliases.c.id.in_(_IDS))
)
INSERT_ALIAS = upsert(aliases).on_conflict_do_nothing()


def shared_by(session: Connection, repository_id: int) -> Shared:
    """What the repository's tests share; nothing yet for one without tests."""
    row = session.execute(SELECT_SHARED, {"of_repository": repository_id}).first()
    if row is None:
        return Shared()
    return Shared(NAMES.decode(row.names), row.last_no, row.revision, row.clock)


def revision_of(session: Connection, repository_id: int) -> int:
    """A number that changes with whatever lists of the repository's tests show."""
    told = {"of_repository": repository_id}
    found: int | None = session.execute(SELECT_REVISION, told).scalar_one_or_none()
    return found or 0


def name_repository(session: Connection, place: Place, present: RepositoryKey) -> Shared:
    """Remember a name under which tests are first seen; what is shared, with that name in it."""
    known = shared_by(session, place.repository_id)
    if present in known.names:
        return known
    names = NAMES.encode((*known.names, present))
    if known.names:
        statement = update(shared).where(shared.c.repository_id == place.repository_id)
        session.execute(statement.values(names=names))
    else:
        keys = {"repository_id": place.repository_id, "org_id": place.org_id}
        session.execute(INSERT_SHARED, keys | {"names": names, "last_no": 0, "revision": 0})
    return shared_by(session, place.repository_id)


def take_numbers(session: Connection, repository_id: int, many: int) -> int:
    """Numbers for new tests: the first of so many in a row."""
    told = {"of_repository": repository_id, "many": many}
    last: int = session.execute(TAKE_NUMBERS, told).scalar_one()
    return last - many + 1


def note_change(session: Connection, repository_id: int) -> datetime | None:
    """Something that lists of its tests show is different now; the evidence clock.

    Called by whatever writes such a thing: what was answered before is then made anew.
    """
    clock: datetime | None = session.execute(
        NOTE_CHANGE, {"of_repository": repository_id}
    ).scalar_one_or_none()
    return clock


def next_revision(session: Connection, repository_id: int) -> int | None:
    """A revision that no transaction before this one has seen; None for one without tests.

    Who takes it keeps all others of the repository waiting until the commit, so that revisions
    become visible in their order.
    """
    told = {"of_repository": repository_id}
    found: int | None = session.execute(NEXT_REVISION, told).scalar_one_or_none()
    return found


def note_removal(session: Connection, repository_id: int) -> None:
    """An upload is taken out: what was counted with it is counted anew."""
    session.execute(NOTE_REMOVAL, {"of_repository": repository_id})


def note_upload(session: Connection, repository_id: int, ran_at: datetime) -> None:
    """An upload was completed: lists change, and the clock goes on; it never goes back."""
    clock = note_change(session, repository_id)
    if clock is None or ran_at > clock:
        session.execute(SET_CLOCK, {"of_repository": repository_id, "to_clock": ran_at})


def add(session: Connection, place: Place, new: Sequence[Case]) -> None:
    """Store tests that were not there before, under numbers that were taken for them."""
    keys = {"org_id": place.org_id, "repository_id": place.repository_id}
    if new:
        session.execute(INSERT_CASE, [CASE.row(case) | keys for case in new])


def add_aliases(session: Connection, place: Place, numbers: Mapping[str, int]) -> None:
    """Other ids of tests; one that names a test already keeps it."""
    keys = {"org_id": place.org_id, "repository_id": place.repository_id}
    if numbers:
        session.execute(
            INSERT_ALIAS, [{"id": each, "no": no} | keys for each, no in numbers.items()]
        )


def by_ids(session: Connection, repository_id: int, ids: Iterable[str]) -> dict[str, Case]:
    """Asked id → the known test of that id, or of that other id; the unknown are left out."""
    found: dict[str, Case] = {}
    asked = list(dict.fromkeys(ids))
    for first in range(0, len(asked), ASKED_AT_ONCE):
        some = asked[first : first + ASKED_AT_ONCE]
        told = {"of_repository": repository_id, "of_ids": some}
        for row in session.execute(SELECT_CASES, told):
            case = CASE.value(row)
            found[case.id] = case
        left = [each for each in some if each not in found]
        if left:
            for row in session.execute(SELECT_CASES_BY_ALIAS, told | {"of_ids": left}):
                found[row.alias] = CASE.value(row)
    return {each: case for each, case in found.items() if case.is_known}
