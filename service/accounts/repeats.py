"""A request with an `Idempotency-Key` is carried out once, however often it comes.

The claim and the answer are stored in transactions of their own, before and after the request is
carried out. If the process dies in between, the claim ends after 60 seconds and the request may be
carried out again, which is safe but for what makes a new thing each time. Answers are stored
sealed, because that of a new token holds its secret.

See docs/design/http.md 5.
"""

import asyncio
import hashlib
from dataclasses import dataclass

import structlog

from service.accounts.store import repeats
from service.accounts.store.repeats import Kept, Keyed, Reused, Running
from service.errors import Conflict, Invalid, Overloaded
from service.http.callers import Caller
from service.http.replies import WholeAnswer
from service.runtime import Runtime

# Hashing a larger body would hold the loop for more than a millisecond.
THREAD_BYTES = 262_144

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RequestClaim:
    """The right to work on a request, and to say what it was answered."""

    keyed: Keyed
    id: str


async def begin(
    runtime: Runtime, caller: Caller, path: str, key: str, body: bytes
) -> RequestClaim | WholeAnswer:
    """Claim a request, or what it was answered within the last 24 hours.

    A caller without token has no keys of its own and must not come here. Raises
    Conflict(idempotency_in_progress) and Invalid(idempotency_key_reused).
    """
    if len(body) > THREAD_BYTES:
        digest = (await asyncio.to_thread(hashlib.sha256, body)).digest()
    else:
        digest = hashlib.sha256(body).digest()
    keyed = Keyed(caller.token_id, caller.org_id, path, key, digest)
    claim = RequestClaim(keyed, runtime.ids.uuid())
    found = await runtime.store.run(repeats.claim, keyed, claim.id, runtime.clock.now())
    if isinstance(found, Kept):
        return WholeAnswer(
            found.status, found.content_type, runtime.keys.opened(found.body).encode()
        )
    if isinstance(found, Reused):
        raise Invalid(
            f"Idempotency-Key {key[:40]!r} belongs to a request to {path} with another body. "
            "Send a new key with a new request.",
            code="idempotency_key_reused",
        )
    if isinstance(found, Running):
        raise Conflict(
            f"The first request with Idempotency-Key {key[:40]!r} has not been answered yet. "
            "Send it again in a second.",
            code="idempotency_in_progress",
        )
    return claim


async def keep(runtime: Runtime, claim: RequestClaim, answer: WholeAnswer) -> None:
    """Answer the same from now on, for 24 hours.

    When the database refuses, what is done stays done and the caller is told so all the same.
    """
    kept = Kept(answer.status, answer.content_type, runtime.keys.sealed(answer.body.decode()))
    try:
        await runtime.store.run(repeats.keep, claim.keyed, claim.id, kept)
    except Overloaded as refused:
        # The database refused the row: the same request, sent again, is carried out again.
        log.warning("answer_not_kept", endpoint=claim.keyed.path, reason=refused.detail)


async def give_up(runtime: Runtime, claim: RequestClaim) -> None:
    """Free the key at once; when the database refuses, it is free after 60 seconds."""
    try:
        await runtime.store.run(repeats.give_up, claim.keyed, claim.id)
    except Overloaded as refused:
        log.warning("key_not_freed", endpoint=claim.keyed.path, reason=refused.detail)
