"""What people decide about tests: settings, overrides of quarantine, tickets (FLAKY.md 8)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import BindParameter, Connection, bindparam, delete, desc, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database import bulk
from service.database.codec import RowCodec
from service.testhealth.detector.settings import TestSettings
from service.testhealth.store import cases
from service.testhealth.store.cases import Place
from service.testhealth.store.tables_tests import CaseOverrideRow, TestSettingsRow, TicketRow
from service.vocabulary import ActorKind, Override

EXPIRED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class StoredOverride:
    """What was said of a test's quarantine, by whom, and until when; None: for ever."""

    no: int
    override: Override
    reason: str
    at: datetime
    actor_kind: ActorKind
    actor_login: str
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Since:
    """Since when the two switches of quarantine are on, None while off."""

    quarantine_since: datetime | None = None
    auto_since: datetime | None = None


settings_table = TestSettingsRow.__table__
overrides = CaseOverrideRow.__table__
tickets = TicketRow.__table__

_PLACE = {"org_id", "repository_id"}
_SINCE = {"quarantine_since", "auto_since"}
SETTINGS = RowCodec(TestSettings, settings_table, keys=_PLACE | _SINCE)
SINCE = RowCodec(Since, settings_table, keys=_PLACE | set(SETTINGS.names))
OVERRIDE = RowCodec(StoredOverride, overrides, keys=_PLACE | {"id", "is_open"})

_HERE: BindParameter[int] = bindparam("of_repository")
_NUMBER: BindParameter[int] = bindparam("of_number")
_IS_OPEN = overrides.c.is_open.is_(True)
_OF_CASE = (overrides.c.repository_id == _HERE, overrides.c.no == _NUMBER)

_OF_REPOSITORY = settings_table.c.repository_id == _HERE
SELECT_SETTINGS = select(*SETTINGS.columns).where(_OF_REPOSITORY)
SELECT_SINCE = select(*SINCE.columns).where(_OF_REPOSITORY)
LOCK_SETTINGS = SELECT_SETTINGS.with_for_update()
MAKE_SETTINGS = upsert(settings_table).on_conflict_do_nothing()
_put = upsert(settings_table)
PUT_SETTINGS = _put.on_conflict_do_update(
    index_elements=["repository_id"],
    set_={name: _put.excluded[name] for name in (*SETTINGS.names, *SINCE.names)},
)
SELECT_OPEN = select(*OVERRIDE.columns).where(*_OF_CASE, _IS_OPEN)
SELECT_HISTORY = select(*OVERRIDE.columns).where(*_OF_CASE).order_by(overrides.c.id)
SELECT_HISTORIES = (
    select(*OVERRIDE.columns)
    .where(overrides.c.repository_id == _HERE, bulk.among(overrides.c.no, "of_numbers"))
    .order_by(overrides.c.id)
)
SELECT_RECENT = (
    select(*OVERRIDE.columns)
    .where(*_OF_CASE)
    .order_by(desc(overrides.c.id))
    .limit(bindparam("at_most"))
)
CLOSE = update(overrides).where(*_OF_CASE, _IS_OPEN).values(is_open=False)
INSERT_OVERRIDE = insert(overrides)
SELECT_EXPIRED = (
    select(overrides.c.org_id, overrides.c.repository_id, *OVERRIDE.columns)
    .where(_IS_OPEN, overrides.c.expires_at <= bindparam("now"))
    .order_by(overrides.c.expires_at)
    .limit(EXPIRED_AT_ONCE)
)

_ticket = upsert(tickets)
PUT_TICKET = _ticket.on_conflict_do_update(
    index_elements=["repository_id", "no"],
    set_={name: _ticket.excluded[name] for name in ("html_url", "at")},
)
SELECT_TICKET = select(tickets.c.html_url).where(
    tickets.c.repository_id == _HERE, tickets.c.no == _NUMBER
)
DELETE_TICKET = delete(tickets).where(tickets.c.repository_id == _HERE, tickets.c.no == _NUMBER)


def settings_of(session: Connection, repository_id: int) -> TestSettings:
    """Return the repository's settings."""
    row = session.execute(SELECT_SETTINGS, {"of_repository": repository_id}).first()
    return TestSettings() if row is None else SETTINGS.value(row)


def settings_to_change(session: Connection, place: Place) -> TestSettings:
    """The same; nobody else changes them until this transaction ends."""
    session.execute(MAKE_SETTINGS, SETTINGS.row(TestSettings()) | _keys(place))
    told = {"of_repository": place.repository_id}
    return SETTINGS.value(session.execute(LOCK_SETTINGS, told).one())


def since_of(session: Connection, repository_id: int) -> Since:
    """Return since when its switches are on."""
    row = session.execute(SELECT_SINCE, {"of_repository": repository_id}).first()
    return Since() if row is None else SINCE.value(row)


def put_settings(session: Connection, place: Place, now: TestSettings, since: Since) -> None:
    """Store the repository's settings."""
    session.execute(PUT_SETTINGS, SETTINGS.row(now) | SINCE.row(since) | _keys(place))
    cases.note_change(session, place.repository_id)


def override_of(session: Connection, repository_id: int, no: int) -> StoredOverride | None:
    """What stands of a test's quarantine, expired or not; None: nobody has said anything."""
    told = {"of_repository": repository_id, "of_number": no}
    row = session.execute(SELECT_OPEN, told).first()
    return None if row is None else OVERRIDE.value(row)


def override_history(
    session: Connection, repository_id: int, no: int
) -> tuple[StoredOverride, ...]:
    """All that was ever said, oldest first; UNSPECIFIED took back what stood before."""
    told = {"of_repository": repository_id, "of_number": no}
    return tuple(OVERRIDE.value(row) for row in session.execute(SELECT_HISTORY, told))


def override_histories(
    session: Connection, repository_id: int, nos: Iterable[int]
) -> dict[int, tuple[StoredOverride, ...]]:
    """The same of several tests by number; those of which nothing was said are left out."""
    found: dict[int, tuple[StoredOverride, ...]] = {}
    for some in bulk.parts(sorted(nos)):
        told = {"of_repository": repository_id, "of_numbers": some}
        for said in map(OVERRIDE.value, session.execute(SELECT_HISTORIES, told)):
            found[said.no] = (*found.get(said.no, ()), said)
    return found


def recent_overrides(
    session: Connection, repository_id: int, no: int, at_most: int
) -> tuple[StoredOverride, ...]:
    """What was said last, newest first."""
    told = {"of_repository": repository_id, "of_number": no, "at_most": at_most}
    return tuple(OVERRIDE.value(row) for row in session.execute(SELECT_RECENT, told))


def put_override(session: Connection, place: Place, said: StoredOverride) -> None:
    """Let this stand instead of what stood before; UNSPECIFIED: nothing stands."""
    session.execute(CLOSE, {"of_repository": place.repository_id, "of_number": said.no})
    is_open = {"is_open": said.override is not Override.UNSPECIFIED}
    session.execute(INSERT_OVERRIDE, OVERRIDE.row(said) | is_open | _keys(place))
    cases.note_change(session, place.repository_id)


def expired(session: Connection, now: datetime) -> tuple[tuple[Place, StoredOverride], ...]:
    """Overrides of all repositories whose time is over, at most 100, the longest over first."""
    return tuple(
        (Place(row.org_id, row.repository_id), OVERRIDE.value(row[2:]))
        for row in session.execute(SELECT_EXPIRED, {"now": now})
    )


def put_ticket(session: Connection, place: Place, no: int, html_url: str, at: datetime) -> None:
    """Link a test to a ticket; the newest wins."""
    row = {"no": no, "html_url": html_url, "at": at}
    session.execute(PUT_TICKET, row | _keys(place))
    cases.note_change(session, place.repository_id)


def remove_ticket(session: Connection, repository_id: int, no: int) -> None:
    """Link it to none."""
    session.execute(DELETE_TICKET, {"of_repository": repository_id, "of_number": no})
    cases.note_change(session, repository_id)


def ticket_of(session: Connection, repository_id: int, no: int) -> str | None:
    """The address of its ticket."""
    told = {"of_repository": repository_id, "of_number": no}
    found: str | None = session.execute(SELECT_TICKET, told).scalar()
    return found


def _keys(place: Place) -> dict[str, int]:
    return {"org_id": place.org_id, "repository_id": place.repository_id}
