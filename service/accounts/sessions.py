"""Sign-in sessions of people: a random cookie, of which only the hash is stored."""

import hashlib
import secrets
from datetime import timedelta

import structlog

from service.accounts import audit_log
from service.accounts.store import audit
from service.accounts.store import sessions as stored
from service.accounts.store.sessions import WebSession
from service.database.database import Tx
from service.errors import DatabaseUnavailable
from service.runtime import Runtime
from service.vocabulary import Actor, ActorKind, Channel

COOKIE_BYTES = 32
AGE_MAX = stored.AGE_MAX
TOUCHED_EVERY = timedelta(minutes=5)

log = structlog.get_logger()


async def open_session(runtime: Runtime, host: str, person: Actor) -> str:
    """Start a session of a person; return its cookie. Each sign-in gets a cookie of its own."""
    cookie = secrets.token_urlsafe(COOKIE_BYTES)
    now = runtime.clock.now()
    made = WebSession(_digest(cookie), host, person.id, person.login, now, now)
    entry = audit_log.allowed(person, None, "session.open", host, now)

    def write(session: Tx) -> None:
        stored.create(session, made)
        audit.append(session, entry)

    await runtime.store.run(write)
    return cookie


async def person_of(runtime: Runtime, cookie: str) -> Actor | None:
    """Return the person whose session this is; None: it is unknown or has ended."""
    if not cookie:
        return None
    now, digest = runtime.clock.now(), _digest(cookie)
    found = await runtime.store.read(stored.find, digest, now)
    if found is None:
        return None
    if now - found.seen_at > TOUCHED_EVERY:
        try:
            await runtime.store.run(stored.touch, digest, now)
        except DatabaseUnavailable as unavailable:
            log.warning("session_use_not_stored", why=unavailable.detail)
    return Actor(ActorKind.PERSON, found.login, found.person_id, Channel.DASHBOARD)


async def end(runtime: Runtime, cookie: str, person: Actor) -> None:
    """End a session everywhere at once."""
    entry = audit_log.allowed(person, None, "session.end", "", runtime.clock.now())

    def write(session: Tx) -> None:
        stored.end(session, _digest(cookie))
        audit.append(session, entry)

    await runtime.store.run(write)


def _digest(cookie: str) -> bytes:
    """Return the hash that is stored: of 256 random bits, so that it needs no salt."""
    return hashlib.sha256(cookie.encode()).digest()
