"""Tests by number and by id, and what the tests of a repository share.

Ids stay when an organization or repository is renamed, because a repository remembers every
name under which tests were first seen (FLAKY.md 3).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database import bulk
from service.database.codec import JsonCodec, RowCodec
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.store.tables_tests import CaseAliasRow, CaseRow, TestedRepositoryRow
from service.vocabulary import Health

ASKED_AT_ONCE = 1000
"""Ids in one statement."""


TEXT_MAX = 1000
"""Characters of a name as stored; identity uses the full text (FLAKY.md 2.8)."""


@dataclass(frozen=True, slots=True)
class Place:
    """A repository, and whose it is."""

    org_id: int
    repository_id: int


@dataclass(frozen=True, slots=True)
class Shared:
    """What a repository's tests share; `names` oldest first, `clock` None before any evidence.

    `removal` is the revision with which an upload was last taken out.
    """

    names: tuple[RepositoryKey, ...] = ()
    last_no: int = 0
    revision: int = 0
    clock: datetime | None = None
    removal: int = 0


class Fields(NamedTuple):
    """What a test is called, each text at the length that is stored."""

    name: str
    classname: str
    parent: str
    file: str


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


class Own(NamedTuple):
    """What tells one new test from another; what else is stored, those of an upload share."""

    no: int
    id: str
    name: str
    classname: str
    parent: str
    file: str
    line: int | None


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
COUNT_KNOWN = (
    select(func.count())
    .select_from(cases)
    .where(cases.c.repository_id == _HERE, cases.c.is_known.is_(True))
)
TAKE_NUMBERS = (
    update(shared)
    .where(shared.c.repository_id == _HERE)
    .values(last_no=shared.c.last_no + bindparam("many"))
    .returning(shared.c.last_no)
)
NOTE_CHANGE = (
    update(shared).where(shared.c.repository_id == _HERE).values(revision=shared.c.revision + 1)
)
NOTE_REMOVAL = (
    update(shared)
    .where(shared.c.repository_id == _HERE)
    .values(revision=shared.c.revision + 1, removal=shared.c.revision + 1)
)
NOTE_EVIDENCE = NOTE_CHANGE.values(clock=bindparam("to_clock"))
NOTE_BEHIND = (
    update(shared).where(shared.c.repository_id == _HERE).values(is_behind=bindparam("to_behind"))
)
SELECT_BEHIND = select(shared.c.repository_id).where(shared.c.is_behind.is_(True))
OWN = Own._fields
SHARED = tuple(name for name in CASE.names if name not in OWN)
INSERT_CASES = bulk.inserted(
    cases,
    [cases.c[name] for name in OWN],
    [cases.c[name] for name in (*SHARED, "org_id", "repository_id")],
)
SELECT_CASES = select(*CASE.columns).where(cases.c.repository_id == _HERE, cases.c.id.in_(_IDS))
SELECT_CASES_BY_ALIAS = (
    select(*CASE.columns, aliases.c.id.label("alias"))
    .join(cases, (cases.c.repository_id == aliases.c.repository_id) & (cases.c.no == aliases.c.no))
    .where(aliases.c.repository_id == _HERE, aliases.c.id.in_(_IDS))
)
SELECT_FIELDS = select(
    cases.c.id, cases.c.name, cases.c.classname, cases.c.parent, cases.c.file
).where(cases.c.repository_id == _HERE, cases.c.id.in_(_IDS), cases.c.is_known.is_(True))
INSERT_ALIASES = bulk.inserted(
    aliases, [aliases.c.id, aliases.c.no], [aliases.c.org_id, aliases.c.repository_id]
).on_conflict_do_nothing()


def keys_of(place: Place) -> dict[str, int]:
    """The columns that say whose a row is."""
    return {"org_id": place.org_id, "repository_id": place.repository_id}


def shared_by(session: Connection, repository_id: int) -> Shared:
    """What the repository's tests share; nothing yet for one without tests."""
    row = session.execute(SELECT_SHARED, {"of_repository": repository_id}).first()
    if row is None:
        return Shared()
    return Shared(NAMES.decode(row.names), row.last_no, row.revision, row.clock, row.removal)


def revision_of(session: Connection, repository_id: int) -> int:
    """A number that changes with whatever lists of the repository's tests show."""
    found = session.execute(SELECT_REVISION, {"of_repository": repository_id}).scalar()
    return 0 if found is None else int(found)


def count(session: Connection, repository_id: int) -> int:
    """How many tests the repository has that trusted uploads know."""
    many: int = session.execute(COUNT_KNOWN, {"of_repository": repository_id}).scalar_one()
    return many


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
        fresh = {"names": names, "last_no": 0, "revision": 0, "removal": 0}
        session.execute(INSERT_SHARED, keys_of(place) | fresh)
    return shared_by(session, place.repository_id)


def take_numbers(session: Connection, repository_id: int, many: int) -> int:
    """Numbers for new tests: the first of so many in a row."""
    told = {"of_repository": repository_id, "many": many}
    last: int = session.execute(TAKE_NUMBERS, told).scalar_one()
    return last - many + 1


def note_change(session: Connection, repository_id: int) -> None:
    """Something that lists of its tests show is different now.

    Called by whatever writes such a thing: what was answered before is then made anew.
    """
    session.execute(NOTE_CHANGE, {"of_repository": repository_id})


def note_behind(session: Connection, repository_id: int, *, is_behind: bool) -> None:
    """Whether tests of the repository are left to be judged by evidence that is stored."""
    session.execute(NOTE_BEHIND, {"of_repository": repository_id, "to_behind": is_behind})


def repositories_behind(session: Connection) -> tuple[int, ...]:
    """Those that have tests left to be judged."""
    return tuple(session.execute(SELECT_BEHIND).scalars())


def note_evidence(session: Connection, repository_id: int, clock: datetime | None) -> None:
    """The uploads that count are others now: lists change, and the evidence clock is this.

    The time of the newest of them, None without any; it goes back when that one is taken out.
    """
    session.execute(NOTE_EVIDENCE, {"of_repository": repository_id, "to_clock": clock})


def note_removal(session: Connection, repository_id: int) -> None:
    """Note that an upload or tests were removed: what was looked up before is stale."""
    session.execute(NOTE_REMOVAL, {"of_repository": repository_id})


def add(session: Connection, place: Place, alike: Case, new: Sequence[Own]) -> None:
    """Store tests that were not there before, under numbers that were taken for them.

    They are `alike` in all that is not their own.
    """
    row = CASE.row(alike)
    common = bulk.same(**{name: row[name] for name in SHARED}, **keys_of(place))
    for some in bulk.parts(new):
        session.execute(INSERT_CASES, bulk.told(map(tuple, some)) | common)


def add_aliases(session: Connection, place: Place, numbers: Mapping[str, int]) -> None:
    """Other ids of tests; one that names a test already keeps it."""
    for some in bulk.parts(list(numbers.items())):
        session.execute(INSERT_ALIASES, bulk.told(some) | bulk.same(**keys_of(place)))


def fields_of(session: Connection, repository_id: int, ids: Iterable[str]) -> dict[str, Fields]:
    """Id → what the known test of that very id is called, of a few thousand."""
    told = {"of_repository": repository_id, "of_ids": list(ids)}
    return {each: Fields(*row) for each, *row in session.execute(SELECT_FIELDS, told)}


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
