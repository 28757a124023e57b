"""Tests by number and by id, and what the tests of a repository share.

Ids stay when an organization or repository is renamed, because a repository remembers every
name under which tests were first seen (docs/design/reports.md).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Row,
    case,
    func,
    literal,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database import bulk
from service.database.codec import JsonCodec, Raw
from service.database.types import Utc
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.store.tables_tests import CaseAliasRow, CaseRow, TestedRepositoryRow
from service.vocabulary import Health

ASKED_AT_ONCE = 1000
"""Ids in one statement."""

TEXT_MAX = 1000
"""Characters of a name as stored; identity uses the full text."""


@dataclass(frozen=True, slots=True)
class Place:
    """A repository and its organization."""

    org_id: int
    repository_id: int


@dataclass(frozen=True, slots=True)
class Shared:
    """The common data of a repository's tests; `names` oldest first, `clock` None without evidence.

    `revision` grows with every change that lists show, `removal` is the revision with which an
    upload or a test was last removed, `last_no` the last test number given out. `is_behind`:
    tests are left to be judged by evidence that is stored.
    """

    names: tuple[RepositoryKey, ...] = ()
    last_no: int = 0
    revision: int = 0
    clock: datetime | None = None
    removal: int = 0
    is_behind: bool = False


Fields = tuple[str, ...]
"""Name, class, suites and file of a test, each text at the length that is stored."""

NewCase = tuple[int | str | None, ...]
"""The number taken for a test, its id, its four `Fields`, and its line."""


class Past(NamedTuple):
    """Facts about a test that stay when its uploads are deleted."""

    first_run_at: datetime
    ever_passed: bool


class Doubtful(NamedTuple):
    """Tests whose first run or last failure an upload may be, or whose only passes it may have."""

    first: set[int]
    failed: set[int]
    passed: set[int]

    @property
    def nos(self) -> set[int]:
        """All of them."""
        return self.first | self.failed | self.passed


shared = TestedRepositoryRow.__table__
cases = CaseRow.__table__
aliases = CaseAliasRow.__table__

# In this form the databases know that the indexes of unhealthy tests have what is asked for.
IS_UNHEALTHY = cases.c.status != literal_column(f"'{Health.HEALTHY.value}'")

NAMES: JsonCodec[tuple[RepositoryKey, ...]] = JsonCodec(tuple[RepositoryKey, ...])
OWNERS: JsonCodec[tuple[str, ...]] = JsonCodec(tuple[str, ...])

_NEW = {
    "owners": OWNERS.encode(()),
    "is_known": False,
    "last_failed_at": None,
    "ever_passed": False,
    "status": Health.HEALTHY.value,
    "impact_rank": 0,
    "cost_rank": 0,
    "costs_since": None,
}
_EQUAL = (*_NEW, "named_under", "variant", "first_run_at", "status_since")
INSERT_CASES = bulk.inserted(
    cases,
    [cases.c[name] for name in ("no", "id", "name", "classname", "parent", "file", "line")],
    [cases.c[name] for name in (*_EQUAL, "org_id", "repository_id")],
)
INSERT_ALIASES = bulk.inserted(
    aliases, [aliases.c.id, aliases.c.no], [aliases.c.org_id, aliases.c.repository_id]
).on_conflict_do_nothing()


def keys_of(place: Place) -> dict[str, int]:
    """Return the columns that name the repository of a row."""
    return {"org_id": place.org_id, "repository_id": place.repository_id}


def in_parts(session: Connection, statement: Executable, nos: Iterable[int]) -> Iterator[Row[*Raw]]:
    """Execute a statement over `among(…, "of_numbers")` for some numbers at a time.

    In ascending order, so that two transactions never wait for each other.
    """
    for some in bulk.parts(sorted(set(nos))):
        result = session.execute(statement, {"of_numbers": some})
        if result.returns_rows:
            yield from result


# What the tests of a repository share.


def shared_by(session: Connection, repository_id: int) -> Shared:
    """Return what the repository's tests share; empty for a repository without tests."""
    row = session.execute(select(shared).where(shared.c.repository_id == repository_id)).first()
    return Shared() if row is None else _shared(row)


def lock(session: Connection, repository_id: int) -> Shared:
    """Return the same, and keep other transactions from changing the repository's tests.

    A repository without tests has nothing to keep, unless `name_repository` has named it.
    """
    statement = select(shared).where(shared.c.repository_id == repository_id).with_for_update()
    row = session.execute(statement).first()
    return Shared() if row is None else _shared(row)


def revision_of(session: Connection, repository_id: int) -> int:
    """Return a number that changes with everything that lists of the repository's tests show."""
    statement = select(shared.c.revision).where(shared.c.repository_id == repository_id)
    return session.execute(statement).scalar() or 0


def name_repository(session: Connection, place: Place, present: RepositoryKey) -> Shared:
    """Store a name under which tests are first seen; return what is shared, with that name."""
    stored = shared_by(session, place.repository_id)
    if present in stored.names:
        return stored
    names = NAMES.encode((*stored.names, present))
    if stored.names:
        _change_shared(session, place.repository_id, names=names)
    else:
        new = {"names": names, "last_no": 0, "revision": 0, "removal": 0}
        session.execute(upsert(shared).on_conflict_do_nothing(), keys_of(place) | new)
    return shared_by(session, place.repository_id)


def take_numbers(session: Connection, repository_id: int, many: int) -> int:
    """Reserve numbers for new tests; return the first of so many in a row."""
    statement = (
        update(shared)
        .where(shared.c.repository_id == repository_id)
        .values(last_no=shared.c.last_no + many)
        .returning(shared.c.last_no)
    )
    last: int = session.execute(statement).scalar_one()
    return last - many + 1


def note_change(session: Connection, repository_id: int) -> None:
    """Increment the revision: something that lists of the repository's tests show has changed."""
    _change_shared(session, repository_id, revision=shared.c.revision + 1)


def note_removal(session: Connection, repository_id: int) -> None:
    """Note that an upload or tests were removed: what was looked up before is stale."""
    after = shared.c.revision + 1
    _change_shared(session, repository_id, revision=after, removal=after)


def note_evidence(session: Connection, repository_id: int, clock: datetime | None) -> None:
    """Note that the uploads that count have changed, and the evidence clock.

    The clock is the time of the newest of them, None without any; it goes back when that one is
    removed.
    """
    _change_shared(session, repository_id, revision=shared.c.revision + 1, clock=clock)


def note_behind(session: Connection, repository_id: int, *, is_behind: bool) -> None:
    """Note whether tests of the repository are left to be judged by evidence that is stored."""
    _change_shared(session, repository_id, is_behind=is_behind)


def repositories_behind(session: Connection) -> tuple[int, ...]:
    """Return the repositories that have tests left to be judged."""
    statement = select(shared.c.repository_id).where(shared.c.is_behind.is_(True))
    return tuple(session.execute(statement).scalars())


def _shared(row: Row[*tuple[object, ...]]) -> Shared:
    return Shared(
        NAMES.decode(row.names), row.last_no, row.revision, row.clock, row.removal, row.is_behind
    )


def _change_shared(session: Connection, repository_id: int, **values: object) -> None:
    statement = update(shared).where(shared.c.repository_id == repository_id)
    session.execute(statement.values(**values))


# Tests.


def count(session: Connection, repository_id: int) -> int:
    """Return how many tests trusted uploads of the repository have."""
    statement = (
        select(func.count())
        .select_from(cases)
        .where(cases.c.repository_id == repository_id, cases.c.is_known.is_(True))
    )
    many: int = session.execute(statement).scalar_one()
    return many


def add(
    session: Connection,
    place: Place,
    seen: tuple[int, str, datetime],
    new: Sequence[NewCase],
) -> None:
    """Store new tests, unknown until a trusted upload counts.

    `seen`: the index in `Shared.names` of the name that their ids were made with, their variant,
    and when they ran.
    """
    named_under, variant, at = seen
    equal = _NEW | {"named_under": named_under, "variant": variant}
    equal |= {"first_run_at": at, "status_since": at}
    bulk.send(session, INSERT_CASES, new, **equal, **keys_of(place))


def add_aliases(session: Connection, place: Place, numbers: Mapping[str, int]) -> None:
    """Store other ids of tests; an id that names a test already keeps it."""
    bulk.send(session, INSERT_ALIASES, list(numbers.items()), **keys_of(place))


def fields_of(session: Connection, repository_id: int, ids: Iterable[str]) -> dict[str, Fields]:
    """Return the id of each known test → its names; a few thousand ids."""
    statement = select(
        cases.c.id, cases.c.name, cases.c.classname, cases.c.parent, cases.c.file
    ).where(
        cases.c.repository_id == repository_id,
        cases.c.id.in_(list(ids)),
        cases.c.is_known.is_(True),
    )
    return {each: tuple(row) for each, *row in session.execute(statement)}


def by_ids(session: Connection, repository_id: int, ids: Iterable[str]) -> dict[str, int]:
    """Return each id → the number of the known test of that id, or of that other id."""
    tests: dict[str, tuple[int, bool]] = {}
    by_id = select(cases.c.id, cases.c.no, cases.c.is_known)
    by_alias = select(aliases.c.id, cases.c.no, cases.c.is_known).join(
        cases, (cases.c.repository_id == aliases.c.repository_id) & (cases.c.no == aliases.c.no)
    )
    for some in bulk.parts(list(dict.fromkeys(ids)), ASKED_AT_ONCE):
        own = by_id.where(cases.c.repository_id == repository_id, cases.c.id.in_(some))
        tests |= {test_id: (no, is_known) for test_id, no, is_known in session.execute(own)}
        missing = [each for each in some if each not in tests]
        if missing:
            other = by_alias.where(
                aliases.c.repository_id == repository_id, aliases.c.id.in_(missing)
            )
            tests |= {test_id: (no, is_known) for test_id, no, is_known in session.execute(other)}
    return {each: no for each, (no, is_known) in tests.items() if is_known}


def pasts_of(session: Connection, repository_id: int, nos: Iterable[int]) -> dict[int, Past]:
    """Return the number of each known test → its past.

    Unknown tests have none: what untrusted uploads sent is not the past of a test.
    """
    statement = select(cases.c.no, cases.c.first_run_at, cases.c.ever_passed).where(
        *_of_tests(repository_id), cases.c.is_known.is_(True)
    )
    return {
        row.no: Past(row.first_run_at, row.ever_passed) for row in in_parts(session, statement, nos)
    }


def owners_of(
    session: Connection, repository_id: int, nos: Iterable[int]
) -> dict[int, tuple[str, ...]]:
    """Return the number of each test → its owners."""
    statement = select(cases.c.no, cases.c.owners).where(*_of_tests(repository_id))
    return {row.no: OWNERS.decode(row.owners) for row in in_parts(session, statement, nos)}


def put_owners(
    session: Connection, repository_id: int, owners: Mapping[int, tuple[str, ...]]
) -> None:
    """Store the owners of tests, by number."""
    nos_of: dict[tuple[str, ...], list[int]] = {}
    for no, names in owners.items():
        nos_of.setdefault(names, []).append(no)
    for names, nos in sorted(nos_of.items()):
        change(session, repository_id, nos, owners=OWNERS.encode(names))


def doubtful(
    session: Connection, repository_id: int, nos: Iterable[int], at: datetime, since: datetime
) -> Doubtful:
    """Return those of the tests whose facts an upload that ran `at` an instant may have given.

    Uploads are stored `since` an instant; facts from before it stay as they are.
    """
    is_young = cases.c.first_run_at >= since
    statement = select(
        cases.c.no,
        (is_young & (cases.c.first_run_at == at)).label("is_first"),
        (cases.c.last_failed_at == at).label("is_failed"),
        (is_young & cases.c.ever_passed).label("is_passed"),
    ).where(*_of_tests(repository_id))
    rows = list(in_parts(session, statement, nos))
    return Doubtful(
        {row.no for row in rows if row.is_first},
        {row.no for row in rows if row.is_failed},
        {row.no for row in rows if row.is_passed},
    )


def note_runs(
    session: Connection, repository_id: int, nos: Iterable[int], at: datetime, *, passed: bool
) -> None:
    """Note that trusted uploads ran these tests at an instant, and whether all or none passed."""
    ran_at, has_passed = literal(at, Utc()), literal(passed)
    is_new, is_first = cases.c.is_known.is_(False), cases.c.first_run_at > at
    was_always_so = cases.c.status_since == cases.c.first_run_at
    # A test that only untrusted uploads had begins anew, as if it had never been seen.
    change(
        session,
        repository_id,
        nos,
        is_new | is_first | (has_passed & cases.c.ever_passed.is_(False)),
        is_known=True,
        first_run_at=case((is_new | is_first, ran_at), else_=cases.c.first_run_at),
        status_since=case(
            (is_new | (is_first & was_always_so), ran_at), else_=cases.c.status_since
        ),
        last_failed_at=case((is_new, None), else_=cases.c.last_failed_at),
        ever_passed=case((is_new, has_passed), else_=or_(cases.c.ever_passed, has_passed)),
    )


def note_untrusted(
    session: Connection, repository_id: int, nos: Iterable[int], at: datetime
) -> None:
    """Note that an untrusted upload ran these tests."""
    is_older = cases.c.is_known.is_(False) & (cases.c.first_run_at < at)
    change(session, repository_id, nos, is_older, first_run_at=at)


def note_failed(session: Connection, repository_id: int, nos: Iterable[int], at: datetime) -> None:
    """Note that these tests failed at an instant."""
    is_older = (cases.c.last_failed_at < at) | cases.c.last_failed_at.is_(None)
    change(session, repository_id, nos, is_older, last_failed_at=at)


def change(
    session: Connection,
    repository_id: int,
    nos: Iterable[int],
    *conditions: ColumnElement[bool],
    **values: object,
) -> None:
    """Set columns of these tests where the conditions hold."""
    statement = update(cases).where(*_of_tests(repository_id), *conditions).values(**values)
    for _ in in_parts(session, statement, nos):
        pass


def _of_tests(repository_id: int) -> tuple[ColumnElement[bool], ...]:
    return cases.c.repository_id == repository_id, bulk.among(cases.c.no, "of_numbers")
