"""The positions of sweeps, which survive restarts."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.tables_deliveries import SweepCursorRow

cursors = SweepCursorRow.__table__

SELECT = select(cursors.c.at).where(cursors.c.name == bindparam("of_name"))
_PUT = upsert(cursors)
PUT = _PUT.on_conflict_do_update(index_elements=["name"], set_={"at": _PUT.excluded.at})


def read_position(session: Connection, name: str) -> datetime | None:
    """Return how far the sweep has read, None before its first round."""
    found: datetime | None = session.execute(SELECT, {"of_name": name}).scalar_one_or_none()
    return found


def store_position(session: Connection, name: str, at: datetime) -> None:
    """Keep how far the sweep has read."""
    session.execute(PUT, {"name": name, "at": at})
