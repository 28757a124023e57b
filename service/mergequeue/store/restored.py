"""Knowledge of a database about the provider's past, which may be newer than it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from service.accounts.store import audit
from service.database.types import Utc
from service.mergequeue.engine.model import Entry
from service.mergequeue.store import landings, runs
from service.mergequeue.store.rows import entries
from service.mergequeue.store.tables_queues import PullRequestRow
from service.vocabulary import QueueRef, Sha

ACTION = "queue.restored"
"""The action in the audit log; its data say what was found."""

CREATED = "queue.create"
"""The action in the audit log of a queue that is made."""

pull_requests = PullRequestRow.__table__


@dataclass(frozen=True, slots=True)
class KnownPast:
    """The rows about some pull requests of a queue.

    `live`: those in the queue. `newest` is the newest submission of each that is known. `brought`
    are heads that landed, or may have.
    """

    live: frozenset[int]
    newest: Mapping[int, Entry]
    brought: frozenset[tuple[int, Sha]]


def last_seen(session: Connection) -> dict[int, datetime]:
    """Return the newest time by the provider's clock that is stored of each repository, by its id.

    The database is at least as new as that.
    """
    newest = func.max(pull_requests.c.shown_at, type_=Utc).label("at")
    found = session.execute(
        select(pull_requests.c.repository_id, newest)
        .where(pull_requests.c.shown_at.is_not(None))
        .group_by(pull_requests.c.repository_id)
    )
    return {row.repository_id: row.at for row in found}


def begin_of(session: Connection, org_id: int, subject: str, since: datetime) -> datetime:
    """Return from when on rows of a queue must know what our App has done; at least `since`.

    `subject` is the queue as the audit log names it. What was before the queue was made is of
    another queue or database, and what was before the last restored backup was found then.
    """
    begins = [
        entry.at
        for action in (CREATED, ACTION)
        for entry in audit.of_subject(session, org_id, action, subject)
    ]
    return max([since, *begins])


def known_past(session: Connection, queue: QueueRef, numbers: Collection[int]) -> KnownPast:
    """Return what rows say of these pull requests of a queue."""
    newest = {number: runs.newest_entry(session, queue.id, number) for number in sorted(numbers)}
    live = session.execute(
        select(entries.c.pr).where(entries.c.queue_id == queue.id, entries.c.live.is_(True))
    ).scalars()
    return KnownPast(
        live=frozenset(live),
        newest={number: entry for number, entry in newest.items() if entry is not None},
        brought=landings.heads_brought(session, queue, numbers),
    )
