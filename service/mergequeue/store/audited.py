"""Questions of `headgate doctor` about runs and landings of the past."""

from datetime import datetime

from sqlalchemy import Connection, desc, select

from service.mergequeue.engine.states import EntryState, RunKind
from service.mergequeue.store.rows import entries, queues, runs
from service.vocabulary import Sha

LANDINGS_MAX = 20_000
"""Considered of an organization; more would not fit through a provider's limits in two weeks."""


def tested_commits(session: Connection, queue_id: int, limit: int) -> tuple[Sha, ...]:
    """Return the tips of the newest test branches whose runs have ended, newest first."""
    found = session.execute(
        select(runs.c.sha)
        .where(
            runs.c.queue_id == queue_id,
            runs.c.live.is_(False),
            runs.c.sha.is_not(None),
            runs.c.kind != RunKind.DIRECT.value,
        )
        .order_by(desc(runs.c.no))
        .limit(limit)
    )
    return tuple(Sha(row.sha) for row in found)


def landed_at(session: Connection, org_id: int, since: datetime) -> tuple[datetime, ...]:
    """Return when pull requests of an organization landed since then, in any order."""
    found = session.execute(
        select(entries.c.state_since)
        .where(
            entries.c.queue_id.in_(select(queues.c.id).where(queues.c.org_id == org_id)),
            entries.c.state == EntryState.MERGED.value,
            entries.c.state_since >= since,
        )
        .order_by(desc(entries.c.no))
        .limit(LANDINGS_MAX)
    )
    return tuple(row.state_since for row in found)
