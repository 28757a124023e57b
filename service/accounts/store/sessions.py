"""Sessions of people who signed in to the pages (docs/design/security.md 6)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, delete, insert, or_, select, update

from service.accounts.store.tables_access import WebSessionRow

IDLE_MAX = timedelta(hours=12)
AGE_MAX = timedelta(days=7)

sessions = WebSessionRow.__table__
SELECT = select(sessions).where(sessions.c.digest == bindparam("of_digest"))


@dataclass(frozen=True, slots=True)
class WebSession:
    """A session by the hash of its cookie; `person_id` is the provider's numeric id."""

    digest: bytes
    host: str
    person_id: str
    login: str
    created_at: datetime
    seen_at: datetime


def create(session: Connection, made: WebSession) -> None:
    """Store a new session, and delete those that have ended by then."""
    ended = or_(
        sessions.c.created_at <= made.created_at - AGE_MAX,
        sessions.c.seen_at <= made.created_at - IDLE_MAX,
    )
    session.execute(delete(sessions).where(ended))
    session.execute(
        insert(sessions),
        {
            "digest": made.digest,
            "host": made.host,
            "person_id": made.person_id,
            "login": made.login,
            "created_at": made.created_at,
            "seen_at": made.seen_at,
        },
    )


def find(session: Connection, digest: bytes, now: datetime) -> WebSession | None:
    """Return the session of a cookie; None if there is none, or it has ended."""
    row = session.execute(SELECT, {"of_digest": digest}).first()
    if row is None or row.created_at <= now - AGE_MAX or row.seen_at <= now - IDLE_MAX:
        return None
    return WebSession(
        bytes(row.digest), row.host, row.person_id, row.login, row.created_at, row.seen_at
    )


def touch(session: Connection, digest: bytes, at: datetime) -> None:
    """Store when a session was last used."""
    session.execute(update(sessions).where(sessions.c.digest == digest).values(seen_at=at))


def end(session: Connection, digest: bytes) -> None:
    """Delete a session; its cookie opens nothing from then on."""
    session.execute(delete(sessions).where(sessions.c.digest == digest))
