"""The health of tests: the present state, a history that only grows, and the measured noise."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, Connection, bindparam, desc, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database import bulk
from service.database.codec import RowCodec
from service.testhealth.detector.health import NO_NUMBERS, Numbers
from service.testhealth.detector.history import Change
from service.testhealth.detector.score import Noise
from service.testhealth.detector.spans import Settled
from service.testhealth.store import cases as test_cases
from service.testhealth.store.cases import Place, in_parts, keys_of
from service.testhealth.store.tables_evidence import NoiseRow
from service.testhealth.store.tables_tests import CaseRow, CaseStateEventRow, CaseStateRow
from service.vocabulary import Actor, ActorKind, Flag, Health

DETECTOR = Actor(ActorKind.SYSTEM, login="detector")
"""The author of changes that evidence made."""

WRITTEN_MAX = 1000
"""Entries of one instant that are read."""

EPOCH_DAY = date(1970, 1, 1).toordinal()
"""Rows count days from there."""


class ChangeKind(StrEnum):
    """A change that happened, or one of the past that late or deleted data changed.

    FLAGGED and UNFLAGGED: a person flagged the test, or removed the flag.
    """

    CHANGED = "changed"
    CORRECTED = "corrected"
    FLAGGED = "flagged"
    UNFLAGGED = "unflagged"


@dataclass(frozen=True, slots=True)
class CaseState:
    """The state of a test; `numbers` are what it was judged by, `flag` is a person's."""

    no: int
    value: Health
    reason: str
    since: datetime
    is_stale: bool = False
    numbers: Numbers = NO_NUMBERS
    settled: Settled | None = None
    flag: Flag = Flag.NONE
    flag_reason: str = ""
    flagged_by: str = ""
    flagged_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StateChange:
    """An entry of a test's history; `at` is the time of the evidence or of the flag."""

    no: int
    at: datetime
    written_at: datetime
    previous: Health
    value: Health
    reason: str
    actor_kind: ActorKind
    actor_login: str
    kind: ChangeKind = ChangeKind.CHANGED

    @property
    def change(self) -> Change:
        """The entry as the detector has it."""
        is_correction = self.kind is ChangeKind.CORRECTED
        return Change(self.at, self.value, self.reason, is_correction)


@dataclass(frozen=True, slots=True)
class DayOfNoise:
    """The totals and the noise of a day (docs/design/detector.md 6); days as `date.toordinal`."""

    day: int
    passing: int
    verdicts: int
    noise: Noise


states = CaseStateRow.__table__
events = CaseStateEventRow.__table__
noises = NoiseRow.__table__
cases = CaseRow.__table__

STATE = RowCodec(CaseState, states, keys={"org_id", "repository_id"})
CHANGE = RowCodec(StateChange, events, keys={"id", "org_id", "repository_id"})

_KEYS = ("org_id", "repository_id")
_put = bulk.inserted(states, STATE.columns, [states.c[name] for name in _KEYS])
PUT_STATES = _put.on_conflict_do_update(
    index_elements=["repository_id", "no"],
    set_={name: _put.excluded[name] for name in STATE.names if name != "no"},
)
COPY_STATE = (
    update(cases)
    .where(cases.c.repository_id == bindparam("of_repository"), cases.c.no == bindparam("of_no"))
    .values(status=bindparam("to_status"), status_since=bindparam("to_since"))
)
INSERT_CHANGES = bulk.inserted(events, CHANGE.columns, [events.c[name] for name in _KEYS])


def state(session: Connection, repository_id: int, no: int) -> CaseState | None:
    """Return the state of a test; None: it was never judged nor flagged, and is healthy."""
    return states_of(session, repository_id, [no]).get(no)


def states_of(session: Connection, repository_id: int, nos: Iterable[int]) -> dict[int, CaseState]:
    """Return the number of each test that was ever judged or flagged → its state."""
    statement = select(*STATE.columns).where(
        states.c.repository_id == repository_id, bulk.among(states.c.no, "of_numbers")
    )
    return {each.no: each for each in map(STATE.value, in_parts(session, statement, nos))}


def put(session: Connection, place: Place, *now: CaseState) -> None:
    """Store the states of tests, and the copies by which lists are ordered."""
    rows = [tuple(STATE.row(each).values()) for each in now]
    bulk.send(session, PUT_STATES, rows, **keys_of(place))
    copies = [
        {
            "of_repository": place.repository_id,
            "of_no": each.no,
            "to_status": each.value.value,
            "to_since": each.since,
        }
        for each in now
    ]
    if copies:
        session.execute(COPY_STATE, copies)
        test_cases.note_change(session, place.repository_id)


def note(session: Connection, place: Place, *changes: StateChange) -> None:
    """Add to the history, in this order."""
    rows = [tuple(CHANGE.row(each).values()) for each in changes]
    bulk.send(session, INSERT_CHANGES, rows, **keys_of(place))


def history(session: Connection, repository_id: int, no: int) -> tuple[StateChange, ...]:
    """Return the history of a test, oldest first."""
    return histories_of(session, repository_id, [no]).get(no, ())


def histories_of(
    session: Connection, repository_id: int, nos: Iterable[int]
) -> Mapping[int, tuple[StateChange, ...]]:
    """Return the number of each test that has a history → that history, oldest first."""
    return _histories(session, repository_id, nos)


def flagged_or_stale(session: Connection, repository_id: int) -> frozenset[int]:
    """Return the tests with a flag, and those that are healthy because they do not run."""
    statement = select(states.c.no).where(
        states.c.repository_id == repository_id,
        or_(states.c.flag != Flag.NONE.value, states.c.is_stale.is_(True)),
    )
    return frozenset(session.execute(statement).scalars())


def flags_of(
    session: Connection, repository_id: int, nos: Iterable[int]
) -> Mapping[int, tuple[StateChange, ...]]:
    """Return the number of each test that people flagged → set and removed flags, oldest first."""
    kinds = [ChangeKind.FLAGGED.value, ChangeKind.UNFLAGGED.value]
    return _histories(session, repository_id, nos, events.c.kind.in_(kinds))


def _histories(
    session: Connection, repository_id: int, nos: Iterable[int], *which: ColumnElement[bool]
) -> Mapping[int, tuple[StateChange, ...]]:
    statement = (
        select(*CHANGE.columns)
        .where(events.c.repository_id == repository_id, bulk.among(events.c.no, "of_numbers"))
        .where(*which)
        .order_by(events.c.id)
    )
    histories: defaultdict[int, list[StateChange]] = defaultdict(list)
    for change in map(CHANGE.value, in_parts(session, statement, nos)):
        histories[change.no].append(change)
    return {no: tuple(changes) for no, changes in histories.items()}


def recent(
    session: Connection, repository_id: int, no: int, at_most: int
) -> tuple[StateChange, ...]:
    """Return the newest entries of a test's history, newest first."""
    statement = (
        select(*CHANGE.columns)
        .where(events.c.repository_id == repository_id, events.c.no == no)
        .order_by(desc(events.c.id))
        .limit(at_most)
    )
    return tuple(map(CHANGE.value, session.execute(statement)))


def written_at(
    session: Connection, repository_id: int, at: datetime
) -> dict[int, tuple[Health, Health]]:
    """Return the number of each test that was judged differently at an instant → before, after.

    Only the first 1,000 entries of the history that evidence made then are read.
    """
    statement = (
        select(events.c.no, events.c.previous, events.c.value)
        .where(
            events.c.repository_id == repository_id,
            events.c.written_at == at,
            events.c.actor_kind == ActorKind.SYSTEM.value,
        )
        .order_by(events.c.id)
        .limit(WRITTEN_MAX)
    )
    changes: dict[int, tuple[Health, Health]] = {}
    for no, previous, value in session.execute(statement):
        before = changes[no][0] if no in changes else Health(previous)
        changes[no] = (before, Health(value))
    return {no: (before, after) for no, (before, after) in changes.items() if before is not after}


def noise_of(session: Connection, repository_id: int) -> dict[int, Noise]:
    """Return each day → the noise of the repository, as last measured."""
    statement = select(noises.c.day, noises.c.eps_a, noises.c.eps_b, noises.c.eps_c).where(
        noises.c.repository_id == repository_id
    )
    return {day + EPOCH_DAY: Noise(a, b, c) for day, a, b, c in session.execute(statement)}


def put_noise(session: Connection, place: Place, days: Sequence[DayOfNoise]) -> None:
    """Store the noise of these days, in place of what was measured before."""
    rows = [
        keys_of(place)
        | {
            "day": each.day - EPOCH_DAY,
            "totals": f'{{"passing":{each.passing},"verdicts":{each.verdicts}}}',
            "eps_a": each.noise.a,
            "eps_b": each.noise.b,
            "eps_c": each.noise.c,
        }
        for each in days
    ]
    if rows:
        put_ = upsert(noises)
        changed = {name: put_.excluded[name] for name in ("totals", "eps_a", "eps_b", "eps_c")}
        session.execute(
            put_.on_conflict_do_update(index_elements=["repository_id", "day"], set_=changed), rows
        )
