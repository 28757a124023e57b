"""Identify who is asking, and what they may see (docs/design/security.md 1).

A thing outside the caller's organization or scope answers exactly as a missing one.
"""

import hmac
import zlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from service.accounts import audit_log
from service.accounts.store import access, audit
from service.accounts.store.audit import AuditEntry
from service.accounts.tenants import RepositoryRecord, TokenRecord
from service.database.database import Tx
from service.errors import DatabaseUnavailable, NotFound, Unauthenticated
from service.http import callers
from service.http.callers import Caller
from service.memory import VersionedCache
from service.runtime import Runtime
from service.vocabulary import Actor, ActorKind, RepoId, RepoRef

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PREFIX = "hgt_"
PUBLIC_LENGTH = 10
RANDOM_LENGTH = 43
CHECKSUM_LENGTH = 6
TOKEN_LENGTH = len(PREFIX) + PUBLIC_LENGTH + 1 + RANDOM_LENGTH + CHECKSUM_LENGTH
_DUMMY = bytes(32)

EXPIRED = (
    'The x-api-token "{name}" expired on {at:%Y-%m-%d}. Create another with `headgate token'
    " create`."
)
REVOKED = (
    'The x-api-token "{name}" was revoked on {at:%Y-%m-%d}. Create another with'
    " `headgate token create`."
)

log = structlog.get_logger()


def checksum(body: str) -> str:
    """CRC-32 of the first 58 characters in base 62, padded to six (docs/design/security.md 1)."""
    number = zlib.crc32(body.encode("ascii"))
    digits = ""
    while number:
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits.rjust(CHECKSUM_LENGTH, ALPHABET[0])


def is_well_formed(token: str) -> bool:
    """Return whether the text has a token's shape and checksum; no database is asked."""
    if len(token) != TOKEN_LENGTH or not token.startswith(PREFIX):
        return False
    body, check = token[:-CHECKSUM_LENGTH], token[-CHECKSUM_LENGTH:]
    letters = body[len(PREFIX) :].replace("_", "", 1)
    if body[len(PREFIX) + PUBLIC_LENGTH] != "_" or not letters.isalnum() or not token.isascii():
        return False
    return checksum(body) == check


def public_id_of(token: str) -> str:
    """The part of a token that may be shown."""
    return token[len(PREFIX) : len(PREFIX) + PUBLIC_LENGTH]


TOUCHED_EVERY = timedelta(minutes=1)


@dataclass(slots=True)
class KnownToken:
    """A token that was looked up: whom it stands for, until when, and when it was last used."""

    caller: Caller
    expires_at: datetime | None
    touched_at: datetime | None


RepositoryQuestion = RepoId | tuple[int, frozenset[int] | None, RepoRef]
"""The provider's own id; or an organization, the repositories of a token, and a name."""


class _TokenCache(VersionedCache[str, KnownToken]):
    """Holders of tokens, valid while the store's access version is unchanged."""


class _RepositoryCache(VersionedCache[RepositoryQuestion, RepositoryRecord]):
    """Repositories, valid while the store's access version is unchanged."""


class AccessVersion:
    """The store's access version under which the newest request was let in."""

    def __init__(self) -> None:
        self.newest = -1


async def remembered(runtime: Runtime, token: str) -> Caller | None:
    """Return the holder of this token, if it was looked up since any token changed anywhere.

    Raises Unauthenticated if it has expired meanwhile.
    """
    version = runtime.memory.of(AccessVersion).newest = await runtime.store.access_version()
    known = runtime.memory.of(_TokenCache).get(version, token)
    return None if known is None else await _used(runtime, known)


async def look_up(runtime: Runtime, token: str) -> Caller:
    """Return who holds this well-formed token, by the database; remembered from then on.

    Asked after `remembered`. Raises Unauthenticated: unknown, expired, revoked. Only the holder of
    the whole secret is told that it expired or was revoked.
    """
    version = runtime.memory.of(AccessVersion).newest
    record = await runtime.store.read(access.token_by_id, public_id_of(token))
    is_its_own = _matches(runtime, token, record)
    if record is None or not is_its_own:
        raise Unauthenticated(callers.NO_TOKEN)
    check_valid(record, runtime.clock.now())
    known = KnownToken(caller_of(record), record.expires_at, record.last_used_at)
    runtime.memory.of(_TokenCache).put(version, token, known)
    return await _used(runtime, known)


async def _used(runtime: Runtime, known: KnownToken) -> Caller:
    now = runtime.clock.now()
    if known.expires_at is not None and known.expires_at <= now:
        raise Unauthenticated(EXPIRED.format(name=known.caller.name, at=known.expires_at))
    if known.touched_at is None or now - known.touched_at > TOUCHED_EVERY:
        known.touched_at = now
        await _touch(runtime, known.caller, now)
    return known.caller


async def _touch(runtime: Runtime, caller: Caller, now: datetime) -> None:
    """Remember the use; where nothing can be written, reading goes on.

    See docs/design/transactions.md 4.
    """
    try:
        await runtime.store.run(access.touch_token, caller.token_id, now)
    except DatabaseUnavailable as unavailable:
        log.warning("token_use_not_stored", token=caller.token_id, why=unavailable.detail)


def is_valid(record: TokenRecord, now: datetime) -> bool:
    """Return whether the token still opens anything at `now`."""
    expired = record.expires_at is not None and record.expires_at <= now
    return not expired and record.revoked_at is None


def check_valid(record: TokenRecord, now: datetime) -> None:
    """Raise Unauthenticated when the token was revoked or has expired at `now`."""
    if record.revoked_at is not None:
        raise Unauthenticated(REVOKED.format(name=record.name, at=record.revoked_at))
    if record.expires_at is not None and record.expires_at <= now:
        raise Unauthenticated(EXPIRED.format(name=record.name, at=record.expires_at))


def caller_of(record: TokenRecord) -> Caller:
    """The caller that a valid token stands for."""
    return Caller(
        token_id=record.id,
        name=record.name,
        org_id=record.org_id,
        org_slug=record.org_slug,
        host=record.host,
        role=record.role,
        repositories=record.repositories,
    )


def recheck(session: Tx, actor: Actor, now: datetime) -> TokenRecord | None:
    """The token that asks for this write, as it is now; None: whoever asks is no token.

    Raises Unauthenticated when the token has ended meanwhile (docs/design/security.md 1). Others
    were judged by other means.
    """
    if actor.kind is not ActorKind.TOKEN:
        return None
    record = access.token_by_id(session, actor.id)
    if record is None:
        raise Unauthenticated(callers.NO_TOKEN)
    check_valid(record, now)
    return record


async def note_denial(runtime: Runtime, caller: Caller, endpoint: str) -> None:
    """Write down that a token's role was too small (docs/design/security.md 7)."""
    row = audit_log.allowed(caller.actor, caller.org_id, "api.call", endpoint, runtime.clock.now())
    await store_denial(runtime, row, f"has role {caller.role.value}")


async def store_denial(runtime: Runtime, entry: AuditEntry, reason: str) -> None:
    """Store the entry of an action as denied, with the reason."""
    await runtime.store.run(audit.append, replace(entry, decision="denied", reason=reason))


def sees(caller: Caller, repository_id: int) -> bool:
    """Return whether a repository of the caller's organization lies in its scope."""
    return caller.repositories is None or repository_id in caller.repositories


def _matches(runtime: Runtime, token: str, record: TokenRecord | None) -> bool:
    """Compare in constant time, also for unknown ids (docs/design/security.md 1)."""
    stored = record.digest if record is not None else _DUMMY
    found = False
    for digest in runtime.keys.token_digests(token):
        found |= hmac.compare_digest(digest, stored)
    return found


async def find_repository(runtime: Runtime, caller: Caller, ref: RepoRef) -> RepositoryRecord:
    """The repository, if the caller may see it. Raises NotFound(repository_not_found).

    What was found under the version that let the caller in is remembered.
    """
    version = runtime.memory.of(AccessVersion).newest
    question = (caller.org_id, caller.repositories, ref)
    cache = runtime.memory.of(_RepositoryCache)
    known = cache.get(version, question)
    if known is not None:
        return known
    record = await runtime.store.read(access.repository_by_ref, caller.org_id, ref)
    if record is None or not sees(caller, record.id):
        raise NotFound(
            f"There is no repository {ref.slug} on {ref.host} that this token can see.",
            code="repository_not_found",
        )
    cache.put(version, question, record)
    return record


async def known_repository(runtime: Runtime, repository: RepoId) -> RepositoryRecord | None:
    """The repository with the provider's own id, None if we have not met it; then remembered.

    Every delivery asks, and a repository changes seldom.
    """
    version = await runtime.store.access_version()
    cache = runtime.memory.of(_RepositoryCache)
    known = cache.get(version, repository)
    if known is not None:
        return known
    found = await runtime.store.read(
        access.repository_by_provider_id, repository.host, repository.id
    )
    if found is not None:
        cache.put(version, repository, found)
    return found


async def repository_of_anyone(runtime: Runtime, ref: RepoRef) -> RepositoryRecord:
    """The repository, whoever owns it: asked where readers are known by being on this machine.

    Raises NotFound(repository_not_found).
    """
    record = await runtime.store.read(access.repository_by_ref, None, ref)
    if record is None:
        raise NotFound(
            f"There is no repository {ref.slug} on {ref.host} here.", code="repository_not_found"
        )
    return record
