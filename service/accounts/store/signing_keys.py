"""Keys that sign evidence of landings, the present one and all before it."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, bindparam, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.accounts.store.tables_access import SigningKeyRow

keys = SigningKeyRow.__table__

SELECT_ALL = select(keys).order_by(keys.c.since, keys.c.id)
SELECT_PRESENT = select(keys).where(keys.c.is_present.is_(True))
# Of two processes that make the first key at once, one finds the other's.
INSERT = upsert(keys).on_conflict_do_nothing()
END = (
    update(keys)
    .where(keys.c.id == bindparam("of_id"), keys.c.is_present.is_(True))
    .values(is_present=False, until=bindparam("ended"))
)
BEGIN = (
    update(keys)
    .where(keys.c.id == bindparam("of_id"), keys.c.since > bindparam("begun"))
    .values(since=bindparam("begun"))
)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key of the installation: it signs from `since` until `until`, None: it still does."""

    id: str
    public: str
    sealed: bytes
    since: datetime
    until: datetime | None = None


def all_keys(session: Connection) -> tuple[SigningKey, ...]:
    """Return every key, the oldest first."""
    return tuple(_key(row) for row in session.execute(SELECT_ALL))


def present(session: Connection) -> SigningKey | None:
    """Return the key that signs now."""
    row = session.execute(SELECT_PRESENT).first()
    return None if row is None else _key(row)


def add(session: Connection, key: SigningKey) -> None:
    """Store a key as the present one, unless there is one."""
    row = {"id": key.id, "public": key.public, "sealed": key.sealed, "since": key.since}
    session.execute(INSERT, {**row, "until": None, "is_present": True})


def begin(session: Connection, key_id: str, at: datetime) -> None:
    """Let a key have signed from this moment, if it did so only later."""
    session.execute(BEGIN, {"of_id": key_id, "begun": at})


def end(session: Connection, key_id: str, at: datetime) -> None:
    """Let a key sign nothing more."""
    session.execute(END, {"of_id": key_id, "ended": at})


def _key(row: Row[*tuple[object, ...]]) -> SigningKey:
    return SigningKey(row.id, row.public, bytes(row.sealed), row.since, row.until)
