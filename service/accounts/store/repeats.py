"""Keys of requests that may be sent again, and the answers kept under them (docs/design/http.md 5).

A key is claimed by one request at a time. A claim whose request never ended, because its
process died, is free again after a while; an answer is kept for a day.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.accounts.store.tables_repeats import IdempotencyRow

KEPT = timedelta(hours=24)
CLAIMED = timedelta(seconds=60)

repeats = IdempotencyRow.__table__


def _named(*names: str) -> ColumnElement[bool]:
    """The row of a key; parameters begin with `of_`, since columns have the names themselves."""
    found = repeats.c.token_id == bindparam("of_token")
    found &= repeats.c.path == bindparam("of_path")
    found &= repeats.c.key == bindparam("of_key")
    for name in names:
        found &= repeats.c[name] == bindparam(f"of_{name}")
    return found


CLAIM = upsert(repeats).on_conflict_do_nothing().returning(repeats.c.key)
SELECT = select(repeats).where(_named())
TAKE_OVER = update(repeats).where(_named("claim"))
GIVE_UP = delete(repeats).where(_named("claim"), repeats.c.status.is_(None))


@dataclass(frozen=True, slots=True)
class Keyed:
    """A request with a key: whose, where, and the digest of its body."""

    token_id: str
    org_id: int
    path: str
    key: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer; `body` as it was sealed."""

    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Claimed:
    """This request is the one that works on it."""


@dataclass(frozen=True, slots=True)
class Running:
    """Another one does, and has not answered yet."""


@dataclass(frozen=True, slots=True)
class Reused:
    """The key belongs to a request with another body."""


def claim(
    session: Connection, keyed: Keyed, by: str, now: datetime
) -> Claimed | Running | Reused | Kept:
    """Return what becomes of a request with this key; `by` names the request itself."""
    fresh = {"claim": by, "digest": keyed.digest, "claimed_until": now + CLAIMED, "at": now}
    made = session.execute(
        CLAIM,
        {
            **fresh,
            "token_id": keyed.token_id,
            "org_id": keyed.org_id,
            "path": keyed.path,
            "key": keyed.key,
            "status": None,
            "content_type": None,
            "body": None,
        },
    )
    if made.first() is not None:
        return Claimed()
    row = session.execute(SELECT, _names(keyed)).first()
    if row is None:
        return Running()  # forgotten between the two statements: the next try makes it anew
    is_over = row.at <= now - KEPT
    if not is_over and bytes(row.digest) != keyed.digest:
        return Reused()
    if not is_over and row.status is not None:
        return Kept(row.status, row.content_type, bytes(row.body))
    if not is_over and row.claimed_until > now:
        return Running()
    names = {**_names(keyed), "of_claim": row.claim}
    cleared = {**fresh, "status": None, "content_type": None, "body": None}
    taken = session.execute(TAKE_OVER.values(**cleared), names)
    return Claimed() if taken.rowcount else Running()


def keep(session: Connection, keyed: Keyed, by: str, answer: Kept) -> None:
    """Keep what the request was answered; nothing, when another one has taken it over."""
    session.execute(
        TAKE_OVER.values(status=answer.status, content_type=answer.content_type, body=answer.body),
        {**_names(keyed), "of_claim": by},
    )


def give_up(session: Connection, keyed: Keyed, by: str) -> None:
    """Let the key be free at once: its request was answered with what does not last."""
    session.execute(GIVE_UP, {**_names(keyed), "of_claim": by})


def _names(keyed: Keyed) -> dict[str, str]:
    return {"of_token": keyed.token_id, "of_path": keyed.path, "of_key": keyed.key}
