"""The installation's keys that sign evidence of landings (docs/design/security.md 12).

One key signs at a time. The public halves of all others stay known for ever, so that what they
signed can still be checked.
"""

from collections.abc import Sequence
from datetime import datetime

import structlog

from service.accounts import audit_log
from service.accounts.store import audit, signing_keys
from service.accounts.store.audit import AuditEntry
from service.accounts.store.signing_keys import SigningKey
from service.database.database import Tx
from service.errors import ServiceError
from service.runtime import Runtime
from service.vocabulary import Actor

log = structlog.get_logger()

REMEDY = (
    "Give this instance the HEADGATE_SECRET_KEY of the others, or the earlier one as "
    "HEADGATE_SECRET_KEY_PREVIOUS. If it is lost, run `headgate keys rotate`. Landings go on; their"
    " evidence waits to be signed."
)


async def all_keys(runtime: Runtime) -> tuple[SigningKey, ...]:
    """Return every key, the oldest first."""
    return await runtime.store.read(signing_keys.all_keys)


def served(keys: Sequence[SigningKey]) -> dict[str, object]:
    """Return the public halves as `/.well-known/headgate-keys.json` has them."""
    return {
        "keys": [
            {
                "keyid": key.id,
                "keytype": "ed25519",
                "scheme": "ed25519",
                "keyval": {"public": key.public},
                "validFrom": _shown(key.since),
                "validUntil": None if key.until is None else _shown(key.until),
            }
            for key in keys
        ]
    }


def _shown(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def prepare(runtime: Runtime) -> None:
    """Make the first key, so that it is served before anything is signed with it."""
    await runtime.store.run(_prepare, runtime, runtime.clock.now())


def _prepare(session: Tx, runtime: Runtime, now: datetime) -> None:
    sign(session, runtime, b"", now)


async def rotate(runtime: Runtime, actor: Actor) -> SigningKey:
    """End the present key and return a new one, which signs from now on."""
    return await runtime.store.run(_rotate, runtime, actor, runtime.clock.now())


def _rotate(session: Tx, runtime: Runtime, actor: Actor, now: datetime) -> SigningKey:
    old = signing_keys.present(session)
    if old is not None:
        signing_keys.end(session, old.id, now)
    made = _made(session, runtime, now)
    audit.append(session, _entry(actor, made, now))
    return made


def sign(session: Tx, runtime: Runtime, payload: bytes, now: datetime) -> tuple[str, str] | None:
    """Return a payload in a signed envelope, and the id of the key; None if it cannot sign.

    A key that this instance cannot open stays: it may be the key of instances with another secret
    key, which would replace this one's in turn. A key that was made while the clock was ahead
    begins earlier, or what it signs after the clock was set right would count as forged.
    """
    key = signing_keys.present(session) or _made(session, runtime, now)
    if now < key.since:
        signing_keys.begin(session, key.id, now)
    try:
        return runtime.keys.signed(key.sealed, payload), key.id
    except ServiceError as closed:
        # Landings go on; their evidence is not signed until `remedy` is done.
        log.error("signing_key_closed", key=key.id, why=closed.detail, remedy=REMEDY)
        return None


def _made(session: Tx, runtime: Runtime, now: datetime) -> SigningKey:
    """Return a new present key, or the one that another process has made meanwhile."""
    made = runtime.keys.new_signing_key()
    key = SigningKey(made.id, made.public, made.sealed, now)
    signing_keys.add(session, key)
    return signing_keys.present(session) or key


def _entry(actor: Actor, key: SigningKey, now: datetime) -> AuditEntry:
    return audit_log.allowed(actor, None, "signing_key.rotate", f"signing_key/{key.id}", now)
