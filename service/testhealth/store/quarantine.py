"""Decisions of people: settings, quarantine overrides, tickets (docs/design/quarantine.md)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sqlalchemy import ColumnElement, Connection, Select, delete, desc, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database import bulk
from service.database.codec import Raw, RowCodec
from service.testhealth.settings import TestSettings
from service.testhealth.store import cases
from service.testhealth.store.cases import Place, in_parts, keys_of
from service.testhealth.store.tables_tests import CaseOverrideRow, TestSettingsRow, TicketRow
from service.vocabulary import ActorKind, Override

T = TypeVar("T")

EXPIRED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class StoredOverride:
    """A quarantine override, who set it, and when it expires; None: never."""

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
_ALERTED = {"alerted_week"}
SETTINGS = RowCodec(TestSettings, settings_table, keys=_PLACE | _SINCE | _ALERTED)
SINCE = RowCodec(Since, settings_table, keys=_PLACE | _ALERTED | set(SETTINGS.names))
OVERRIDE = RowCodec(StoredOverride, overrides, keys=_PLACE | {"id", "is_open"})

# Settings.


def settings_of(session: Connection, repository_id: int) -> TestSettings:
    """Return the repository's settings."""
    row = session.execute(_of_repository(SETTINGS, repository_id)).first()
    return TestSettings() if row is None else SETTINGS.value(row)


def settings_to_change(session: Connection, place: Place) -> TestSettings:
    """Return the settings, and keep other transactions from changing them."""
    new = SETTINGS.row(TestSettings()) | keys_of(place)
    session.execute(upsert(settings_table).on_conflict_do_nothing(), new)
    statement = _of_repository(SETTINGS, place.repository_id).with_for_update()
    return SETTINGS.value(session.execute(statement).one())


def since_of(session: Connection, repository_id: int) -> Since:
    """Return since when the repository's switches are on."""
    row = session.execute(_of_repository(SINCE, repository_id)).first()
    return Since() if row is None else SINCE.value(row)


def put_settings(session: Connection, place: Place, now: TestSettings, since: Since) -> None:
    """Store the repository's settings."""
    values = SETTINGS.row(now) | SINCE.row(since)
    statement = upsert(settings_table).on_conflict_do_update(
        index_elements=["repository_id"], set_=values
    )
    session.execute(statement, values | keys_of(place))
    cases.note_change(session, place.repository_id)


def _of_repository(codec: RowCodec[T], repository_id: int) -> Select[*Raw]:
    return select(*codec.columns).where(settings_table.c.repository_id == repository_id)


# Overrides.


def override_of(session: Connection, repository_id: int, no: int) -> StoredOverride | None:
    """Return the newest override of a test, expired or not; None if there is none."""
    statement = _overrides(repository_id).where(overrides.c.no == no, overrides.c.is_open.is_(True))
    row = session.execute(statement).first()
    return None if row is None else OVERRIDE.value(row)


def override_history(
    session: Connection, repository_id: int, no: int
) -> tuple[StoredOverride, ...]:
    """Return all overrides of a test, oldest first; UNSPECIFIED removed the one before."""
    return override_histories(session, repository_id, [no]).get(no, ())


def override_histories(
    session: Connection, repository_id: int, nos: Iterable[int]
) -> dict[int, tuple[StoredOverride, ...]]:
    """Return the same of several tests, by number; tests without overrides are left out."""
    among = bulk.among(overrides.c.no, "of_numbers")
    statement = _overrides(repository_id).where(among).order_by(overrides.c.id)
    histories: dict[int, tuple[StoredOverride, ...]] = {}
    for said in map(OVERRIDE.value, in_parts(session, statement, nos)):
        histories[said.no] = (*histories.get(said.no, ()), said)
    return histories


def recent_overrides(
    session: Connection, repository_id: int, no: int, at_most: int
) -> tuple[StoredOverride, ...]:
    """Return the newest overrides of a test, newest first."""
    statement = _overrides(repository_id).where(overrides.c.no == no)
    newest = statement.order_by(desc(overrides.c.id)).limit(at_most)
    return tuple(map(OVERRIDE.value, session.execute(newest)))


def put_override(session: Connection, place: Place, said: StoredOverride) -> None:
    """Store an override in place of the one before; UNSPECIFIED: there is none now."""
    before = update(overrides).where(
        overrides.c.repository_id == place.repository_id,
        overrides.c.no == said.no,
        overrides.c.is_open.is_(True),
    )
    session.execute(before.values(is_open=False))
    is_open = {"is_open": said.override is not Override.UNSPECIFIED}
    session.execute(insert(overrides), OVERRIDE.row(said) | is_open | keys_of(place))
    cases.note_change(session, place.repository_id)


def expired(session: Connection, now: datetime) -> tuple[tuple[Place, StoredOverride], ...]:
    """Return at most 100 overrides of all repositories that have expired, oldest first."""
    statement = (
        select(overrides.c.org_id, overrides.c.repository_id, *OVERRIDE.columns)
        .where(overrides.c.is_open.is_(True), overrides.c.expires_at <= now)
        .order_by(overrides.c.expires_at)
        .limit(EXPIRED_AT_ONCE)
    )
    return tuple(
        (Place(row.org_id, row.repository_id), OVERRIDE.value(row[2:]))
        for row in session.execute(statement)
    )


def _overrides(repository_id: int) -> Select[*Raw]:
    return select(*OVERRIDE.columns).where(overrides.c.repository_id == repository_id)


# Tickets.


def put_ticket(session: Connection, place: Place, no: int, html_url: str, at: datetime) -> None:
    """Link a test to a ticket; the newest wins."""
    link = {"html_url": html_url, "at": at}
    statement = upsert(tickets).on_conflict_do_update(
        index_elements=["repository_id", "no"], set_=link
    )
    session.execute(statement, link | {"no": no} | keys_of(place))
    cases.note_change(session, place.repository_id)


def remove_ticket(session: Connection, repository_id: int, no: int) -> None:
    """Remove the link of a test to its ticket."""
    session.execute(delete(tickets).where(*_ticket(repository_id, no)))
    cases.note_change(session, repository_id)


def ticket_of(session: Connection, repository_id: int, no: int) -> str | None:
    """Return the address of a test's ticket, None if there is none."""
    ticket: str | None = session.execute(
        select(tickets.c.html_url).where(*_ticket(repository_id, no))
    ).scalar()
    return ticket


def _ticket(repository_id: int, no: int) -> tuple[ColumnElement[bool], ...]:
    return tickets.c.repository_id == repository_id, tickets.c.no == no
