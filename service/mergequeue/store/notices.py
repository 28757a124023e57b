"""Our notices at the provider, recorded so that each is written once."""

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.records import Placed, Spot, Surface
from service.mergequeue.store.rows import queues
from service.mergequeue.store.tables_queues import NoticeRow

notices = NoticeRow.__table__

EDITED = "edited"
"""Instead of a digest: a person or a landing changed it, so it is written again in any case."""


def placed(session: Connection, spot: Spot) -> Placed | None:
    """Return the notice recorded for this spot, None if there is none."""
    statement = select(notices.c.provider_id, notices.c.digest).where(
        *(notices.c[name] == value for name, value in _key(spot).items())
    )
    row = session.execute(statement).first()
    return None if row is None else Placed(row.provider_id, row.digest)


def comment_spot(session: Connection, queue_id: int, comment_id: str) -> Spot | None:
    """Return the spot of a status comment by its id at the provider; None if it is not ours."""
    statement = select(notices.c.pr).where(
        notices.c.queue_id == queue_id,
        notices.c.surface == Surface.COMMENT.value,
        notices.c.provider_id == comment_id,
    )
    number = session.execute(statement).scalar()
    return None if number is None else Spot(queue_id, number, Surface.COMMENT, "")


def place(session: Connection, spot: Spot, standing: Placed) -> None:
    """Record the notice now at this spot."""
    statement = upsert(notices).values(
        **_key(spot),
        org_id=select(queues.c.org_id).where(queues.c.id == spot.queue_id).scalar_subquery(),
        provider_id=standing.provider_id,
        digest=standing.digest,
    )
    session.execute(
        statement.on_conflict_do_update(
            index_elements=["queue_id", "pr", "surface", "entry"],
            set_={"provider_id": standing.provider_id, "digest": standing.digest},
        )
    )


def _key(spot: Spot) -> dict[str, int | str]:
    """Return the key: one comment and label for a pull request and queue, else by submission."""
    entry = "" if spot.surface in (Surface.COMMENT, Surface.LABEL) else spot.entry
    return {
        "queue_id": spot.queue_id,
        "pr": spot.pr,
        "surface": spot.surface.value,
        "entry": entry,
    }
