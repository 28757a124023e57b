"""What an upload changes of tests, many at a time: first and last runs, states."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from sqlalchemy import (
    BindParameter,
    Boolean,
    Connection,
    Integer,
    Select,
    Update,
    bindparam,
    case,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database import bulk
from service.database.codec import JsonCodec
from service.database.types import Utc
from service.testhealth.detector.score import Noise
from service.testhealth.store.cases import Place
from service.testhealth.store.states import (
    CHANGE,
    STATE,
    CaseState,
    ChangeKind,
    StateChange,
    events,
    states,
)
from service.testhealth.store.tables_evidence import NoiseRow
from service.testhealth.store.tables_tests import CaseRow, TestedRepositoryRow

EPOCH_DAY = date(1970, 1, 1).toordinal()
"""Rows count days from there."""

cases = CaseRow.__table__
shared = TestedRepositoryRow.__table__
noises = NoiseRow.__table__

_HERE: BindParameter[int] = bindparam("of_repository")
_NOS = bulk.firsts(Integer)
_AT: BindParameter[datetime] = bindparam("to_at", type_=Utc)

LOCK_SHARED = (
    select(
        shared.c.revision, shared.c.clock, shared.c.is_behind, shared.c.removal, shared.c.last_no
    )
    .where(shared.c.repository_id == _HERE)
    .with_for_update()
)


OWNERS: JsonCodec[tuple[str, ...]] = JsonCodec(tuple[str, ...])


def _of_cases() -> Update:
    return update(cases).where(cases.c.repository_id == _HERE, cases.c.no.in_(_NOS))


_PASSED: BindParameter[bool] = bindparam("to_passed", type_=Boolean)
_IS_NEW, _IS_FIRST = cases.c.is_known.is_(False), cases.c.first_run_at > _AT
_WAS_ALWAYS_SO = cases.c.status_since == cases.c.first_run_at
# A test that was a stranger's alone begins anew, as if nobody had seen it.
NOTE_RUN = (
    _of_cases()
    .where(_IS_NEW | _IS_FIRST | (_PASSED & cases.c.ever_passed.is_(False)))
    .values(
        is_known=True,
        first_run_at=case((_IS_NEW | _IS_FIRST, _AT), else_=cases.c.first_run_at),
        status_since=case(
            (_IS_NEW | (_IS_FIRST & _WAS_ALWAYS_SO), _AT), else_=cases.c.status_since
        ),
        last_failed_at=case((_IS_NEW, None), else_=cases.c.last_failed_at),
        ever_passed=case((_IS_NEW, _PASSED), else_=or_(cases.c.ever_passed, _PASSED)),
    )
)
NOTE_STRANGERS_RUN = (
    _of_cases()
    .where(cases.c.is_known.is_(False), cases.c.first_run_at < _AT)
    .values(first_run_at=_AT)
)
NOTE_FAILED = (
    _of_cases()
    .where((cases.c.last_failed_at < _AT) | cases.c.last_failed_at.is_(None))
    .values(last_failed_at=_AT)
)
SELECT_STATES = select(*STATE.columns).where(states.c.repository_id == _HERE, states.c.no.in_(_NOS))
SELECT_HISTORIES = (
    select(*CHANGE.columns)
    .where(events.c.repository_id == _HERE, events.c.no.in_(_NOS))
    .order_by(events.c.id)
)
SELECT_WORDS = SELECT_HISTORIES.where(
    events.c.kind.in_([ChangeKind.FLAGGED.value, ChangeKind.UNFLAGGED.value])
)
# Of a test that is not known yet only its uploads tell: what strangers sent is not its past.
SELECT_PASTS = select(cases.c.no, cases.c.first_run_at, cases.c.ever_passed).where(
    cases.c.repository_id == _HERE, cases.c.no.in_(_NOS), cases.c.is_known.is_(True)
)
SELECT_KNOWN = select(cases.c.no).where(
    cases.c.repository_id == _HERE, cases.c.no.in_(_NOS), cases.c.is_known.is_(True)
)
SELECT_OWNERS = select(cases.c.no, cases.c.owners).where(
    cases.c.repository_id == _HERE, cases.c.no.in_(_NOS)
)
PUT_OWNERS = (
    update(cases)
    .where(cases.c.repository_id == _HERE, cases.c.no == bindparam("of_number"))
    .values(owners=bindparam("to_owners"))
)
SELECT_NOISE = select(noises.c.day, noises.c.eps_a, noises.c.eps_b).where(
    noises.c.repository_id == _HERE
)
_noise = upsert(noises)
PUT_NOISE = _noise.on_conflict_do_update(
    index_elements=["repository_id", "day"],
    set_={name: _noise.excluded[name] for name in ("totals", "eps_a", "eps_b")},
)


class Revision(NamedTuple):
    """How often the repository's evidence changed, and up to when it reaches.

    It `is_behind` while tests are left to be judged by it; `removal` is the one with which an
    upload was last taken out, and `last_no` the number that a test was given last.
    """

    number: int
    clock: datetime | None
    is_behind: bool
    removal: int
    last_no: int


class Past(NamedTuple):
    """What a test keeps when its uploads are forgotten."""

    first_run_at: datetime
    ever_passed: bool


@dataclass(frozen=True, slots=True)
class DayOfNoise:
    """A day of a repository, as 6.2 of FLAKY.md measures; days as `date.toordinal`."""

    day: int
    passing: int
    verdicts: int
    noise: Noise


def lock(session: Connection, repository_id: int) -> Revision:
    """Where the repository's evidence stands; nobody else changes it until this transaction ends.

    The repository must have been named by then.
    """
    row = session.execute(LOCK_SHARED, {"of_repository": repository_id}).one()
    return Revision(*row)


def note_runs(
    session: Connection, repository_id: int, nos: Iterable[int], at: datetime, *, passed: bool
) -> None:
    """These tests ran, and all or none of them passed: they are known from now on."""
    for told in _told(repository_id, nos):
        session.execute(NOTE_RUN, told | {"to_at": at, "to_passed": passed})


def note_strangers(
    session: Connection, repository_id: int, nos: Iterable[int], at: datetime
) -> None:
    """Somebody whom nobody trusts ran these tests."""
    for told in _told(repository_id, nos):
        session.execute(NOTE_STRANGERS_RUN, told | {"to_at": at})


def note_failed(session: Connection, repository_id: int, nos: Iterable[int], at: datetime) -> None:
    """These tests have failed."""
    for told in _told(repository_id, nos):
        session.execute(NOTE_FAILED, told | {"to_at": at})


def states_of(session: Connection, repository_id: int, nos: Iterable[int]) -> dict[int, CaseState]:
    """Number → how the test is; those that nobody has judged or flagged are left out."""
    return {
        state.no: state
        for told in _told(repository_id, nos)
        for state in map(STATE.value, session.execute(SELECT_STATES, told))
    }


def histories_of(
    session: Connection, repository_id: int, nos: Iterable[int]
) -> Mapping[int, tuple[StateChange, ...]]:
    """Number → all that was noted of the test, oldest first; none: left out."""
    return _changes(session, SELECT_HISTORIES, repository_id, nos)


def words_of(
    session: Connection, repository_id: int, nos: Iterable[int]
) -> Mapping[int, tuple[StateChange, ...]]:
    """Number → what people said of the test's health, oldest first; none: left out."""
    return _changes(session, SELECT_WORDS, repository_id, nos)


def pasts_of(session: Connection, repository_id: int, nos: Iterable[int]) -> dict[int, Past]:
    """Number → what is known of the test's past."""
    return {
        no: Past(first_run_at, ever_passed)
        for told in _told(repository_id, nos)
        for no, first_run_at, ever_passed in session.execute(SELECT_PASTS, told)
    }


def known_among(session: Connection, repository_id: int, nos: Iterable[int]) -> set[int]:
    """Those of the tests that a trusted upload has."""
    return {
        no
        for told in _told(repository_id, nos)
        for no in session.execute(SELECT_KNOWN, told).scalars()
    }


def owners_of(
    session: Connection, repository_id: int, nos: Iterable[int]
) -> dict[int, tuple[str, ...]]:
    """Return the number of each test → its owners."""
    return {
        no: OWNERS.decode(known)
        for told in _told(repository_id, nos)
        for no, known in session.execute(SELECT_OWNERS, told)
    }


def put_owners(
    session: Connection, repository_id: int, owners: Mapping[int, tuple[str, ...]]
) -> None:
    """Give tests, by number, these owners."""
    rows = [
        {"of_repository": repository_id, "of_number": no, "to_owners": OWNERS.encode(names)}
        for no, names in sorted(owners.items())
    ]
    if rows:
        session.execute(PUT_OWNERS, rows)


def _changes(
    session: Connection,
    question: Select[*tuple[object, ...]],
    repository_id: int,
    nos: Iterable[int],
) -> Mapping[int, tuple[StateChange, ...]]:
    found: defaultdict[int, list[StateChange]] = defaultdict(list)
    for told in _told(repository_id, nos):
        for row in session.execute(question, told):
            change = CHANGE.value(row)
            found[change.no].append(change)
    return {no: tuple(changes) for no, changes in found.items()}


def noise_of(session: Connection, repository_id: int) -> dict[int, Noise]:
    """Day → the noise of the repository, as last measured."""
    found = session.execute(SELECT_NOISE, {"of_repository": repository_id})
    return {day + EPOCH_DAY: Noise(a, b) for day, a, b in found}


def put_noise(session: Connection, place: Place, days: Sequence[DayOfNoise]) -> None:
    """Store what was measured of these days; what was known of them goes."""
    if days:
        session.execute(
            PUT_NOISE,
            [
                {
                    "org_id": place.org_id,
                    "repository_id": place.repository_id,
                    "day": each.day - EPOCH_DAY,
                    "totals": f'{{"passing":{each.passing},"verdicts":{each.verdicts}}}',
                    "eps_a": each.noise.a,
                    "eps_b": each.noise.b,
                }
                for each in days
            ],
        )


def _told(repository_id: int, nos: Iterable[int]) -> Iterator[dict[str, object]]:
    # In one order, so that two transactions never wait for each other.
    for some in bulk.parts(sorted(set(nos))):
        yield bulk.told((no,) for no in some) | {"of_repository": repository_id}
