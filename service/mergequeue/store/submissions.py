"""The heads of pull requests that have been in a queue."""

from collections.abc import Iterable

from sqlalchemy import BindParameter, Connection, bindparam, select, tuple_

from service.mergequeue.store.rows import entries
from service.vocabulary import Sha

_HEADS: BindParameter[tuple[int, str]] = bindparam("of_heads", expanding=True)
_OF_HEADS = (entries.c.queue_id == bindparam("of_queue")) & tuple_(
    entries.c.pr, entries.c.head
).in_(_HEADS)
SELECT_SUBMITTED = select(entries.c.pr, entries.c.head).where(_OF_HEADS)
SELECT_ENDED = SELECT_SUBMITTED.where(entries.c.live.is_(False))


def submitted(
    session: Connection, queue_id: int, heads: Iterable[tuple[int, Sha]]
) -> frozenset[tuple[int, Sha]]:
    """Return those of these heads, each with its pull request, that are or were in the queue."""
    binds = {"of_queue": queue_id, "of_heads": list(heads)}
    rows = session.execute(SELECT_SUBMITTED, binds)
    return frozenset((row.pr, Sha(row.head)) for row in rows)


def has_ended(session: Connection, queue_id: int, number: int, head: Sha) -> bool:
    """Return whether an earlier submission of this head has left the queue."""
    binds = {"of_queue": queue_id, "of_heads": [(number, head)]}
    return session.execute(SELECT_ENDED, binds).first() is not None
