"""Who is asking, and what they may see (API.md 2).

A thing outside the caller's organization or scope answers exactly as a missing one.
"""

import hmac
import zlib
from datetime import datetime, timedelta

from service.errors import NotFound, Unauthenticated
from service.operations.views import Caller
from service.runtime import Runtime
from service.store import access, queues
from service.store.database import Tx
from service.store.records import RepositoryRecord, TokenRecord
from service.vocabulary import Actor, ActorKind, Channel, QueueRef, RepoRef

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PREFIX = "hgt_"
PUBLIC_LENGTH = 10
RANDOM_LENGTH = 43
CHECKSUM_LENGTH = 6
TOKEN_LENGTH = len(PREFIX) + PUBLIC_LENGTH + 1 + RANDOM_LENGTH + CHECKSUM_LENGTH
_DUMMY = bytes(32)


def checksum(body: str) -> str:
    """CRC-32 of the first 58 characters in base 62, padded to six (API.md 2)."""
    number = zlib.crc32(body.encode("ascii"))
    digits = ""
    while number:
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits.rjust(CHECKSUM_LENGTH, ALPHABET[0])


def is_well_formed(token: str) -> bool:
    """Whether the text has a token's shape and checksum; no database is asked."""
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


async def authenticate(runtime: Runtime, token: str) -> Caller:
    """Who holds this token. Raises Unauthenticated: missing, malformed, expired, revoked."""
    if not is_well_formed(token):
        raise Unauthenticated("This is not a token.")
    now = runtime.clock.now()
    record = await runtime.store.read(access.token_by_id, public_id_of(token))
    if not _matches(runtime, token, record) or record is None or not is_valid(record, now):
        raise Unauthenticated("This token is unknown, expired or revoked.")
    if record.last_used_at is None or now - record.last_used_at > timedelta(minutes=1):
        await runtime.store.run(access.touch_token, record.id, now)
    return caller_of(record)


def is_valid(record: TokenRecord, now: datetime) -> bool:
    """Whether the token still opens anything at `now`."""
    expired = record.expires_at is not None and record.expires_at <= now
    return not expired and record.revoked_at is None


def caller_of(record: TokenRecord) -> Caller:
    """The caller that a valid token stands for."""
    return Caller(
        token_id=record.id,
        name=record.name,
        org_id=record.org_id,
        org_slug=record.org_slug,
        role=record.role,
        repositories=record.repositories,
    )


def _matches(runtime: Runtime, token: str, record: TokenRecord | None) -> bool:
    """Compare in constant time, also for unknown ids (RELIABILITY.md 8.1)."""
    stored = record.digest if record is not None else _DUMMY
    found = False
    for digest in runtime.keys.token_digests(token):
        found |= hmac.compare_digest(digest, stored)
    return found


def actor_of(caller: Caller) -> Actor:
    """The caller as an actor of commands and events."""
    return Actor(ActorKind.TOKEN, login=caller.name, id=caller.token_id, channel=Channel.API)


async def find_repository(runtime: Runtime, caller: Caller, ref: RepoRef) -> RepositoryRecord:
    """The repository, if the caller may see it. Raises NotFound(repository_not_found)."""
    record = await runtime.store.read(access.repository_by_ref, caller.org_id, ref)
    hidden = record is not None and (
        caller.repositories is not None and record.id not in caller.repositories
    )
    if record is None or hidden:
        raise NotFound(
            f"There is no repository {ref.slug} on {ref.host} that this token can see.",
            code="repository_not_found",
        )
    return record


async def find_queue(runtime: Runtime, caller: Caller, ref: RepoRef, branch: str) -> QueueRef:
    """The queue of a branch. Raises NotFound: repository_not_found, queue_not_found."""
    repository = await find_repository(runtime, caller, ref)
    found, branches = await runtime.store.read(_queue_of, repository, branch)
    if found is None:
        there = f"; queues here: {', '.join(branches)}" if branches else ""
        raise NotFound(
            f'branch "{branch}" has no queue{there}.',
            code="queue_not_found",
            members={"branches": list(branches)},
        )
    return found


def _queue_of(
    session: Tx, repository: RepositoryRecord, branch: str
) -> tuple[QueueRef | None, tuple[str, ...]]:
    found = queues.queue_ref(session, repository.org_id, repository.id, branch)
    if found is not None:
        return found, ()
    return None, tuple(sorted(ref.branch for ref in queues.queues_of(session, repository.id)))
