"""Rows of pairs of open pull requests that conflict with each other.

Paths are shown with their control characters escaped, so a line is a path.
"""

from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.mergequeue.conflict_pairs import ConflictPair
from service.mergequeue.store.tables_queues import ConflictPairRow
from service.vocabulary import QueueRef, Sha

pairs = ConflictPairRow.__table__

_QUEUE = pairs.c.queue_id == bindparam("of_queue")
SELECT = (
    select(
        pairs.c.low,
        pairs.c.high,
        pairs.c.head_low,
        pairs.c.head_high,
        pairs.c.paths,
        pairs.c.found_at,
    )
    .where(_QUEUE)
    .order_by(pairs.c.low, pairs.c.high)
    .limit(bindparam("at_most"))
)
_NEW = upsert(pairs)
PUT = _NEW.on_conflict_do_update(
    index_elements=["queue_id", "low", "high"],
    set_={name: _NEW.excluded[name] for name in ("head_low", "head_high", "paths")},
)
DELETE = delete(pairs).where(
    _QUEUE, pairs.c.low == bindparam("of_low"), pairs.c.high == bindparam("of_high")
)

PAIRS_MAX = 1_000


def of_queue(session: Connection, queue_id: int) -> tuple[ConflictPair, ...]:
    """Return the pairs of a queue, at most 1,000, by number."""
    rows = session.execute(SELECT, {"of_queue": queue_id, "at_most": PAIRS_MAX})
    return tuple(
        ConflictPair(
            row.low,
            row.high,
            Sha(row.head_low),
            Sha(row.head_high),
            tuple(row.paths.split("\n")),
            row.found_at,
        )
        for row in rows
    )


def put(session: Connection, queue: QueueRef, found: Iterable[ConflictPair]) -> None:
    """Store pairs; one that is known keeps the time at which it was found."""
    for one in found:
        session.execute(
            PUT,
            {
                "queue_id": queue.id,
                "org_id": queue.org_id,
                "low": one.low,
                "high": one.high,
                "head_low": one.head_low,
                "head_high": one.head_high,
                "paths": "\n".join(one.paths),
                "found_at": one.found_at,
            },
        )


def remove(session: Connection, queue: QueueRef, gone: Iterable[ConflictPair]) -> None:
    """Delete pairs."""
    for one in gone:
        session.execute(DELETE, {"of_queue": queue.id, "of_low": one.low, "of_high": one.high})
