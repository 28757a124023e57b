"""Signed evidence of landed commits."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, bindparam, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.records import StoredLanding
from service.mergequeue.store.tables_queues import LandingEvidenceRow
from service.vocabulary import QueueRef, Sha

evidence = LandingEvidenceRow.__table__

# What is stored already stays: a landing that is recorded again happened once.
INSERT = upsert(evidence).on_conflict_do_nothing()
_ROW = (evidence.c.no, evidence.c.sha, evidence.c.pr, evidence.c.envelope, evidence.c.at)
SELECT_COMMIT = (
    select(*_ROW)
    .where(
        evidence.c.repository_id == bindparam("of_repository"),
        evidence.c.sha == bindparam("of_sha"),
    )
    .order_by(evidence.c.no)
)
SELECT_AFTER = (
    select(*_ROW)
    .where(evidence.c.queue_id == bindparam("of_queue"), evidence.c.no > bindparam("after"))
    .order_by(evidence.c.no)
    .limit(bindparam("at_most"))
)


@dataclass(frozen=True, slots=True)
class SignedLanding:
    """The evidence of one landed pull request."""

    sha: Sha
    pr: int
    envelope: str
    key_id: str
    at: datetime


def add(session: Connection, queue: QueueRef, signed: SignedLanding) -> None:
    """Store the evidence of a landed pull request."""
    session.execute(
        INSERT,
        {
            "org_id": queue.org_id,
            "repository_id": queue.repository_id,
            "queue_id": queue.id,
            "sha": signed.sha,
            "pr": signed.pr,
            "key_id": signed.key_id,
            "envelope": signed.envelope,
            "at": signed.at,
        },
    )


def of_commit(session: Connection, repository_id: int, sha: str) -> tuple[StoredLanding, ...]:
    """Return the evidence of a commit of this repository: of two pull requests if both end in it.

    Empty if there is none.
    """
    found = session.execute(SELECT_COMMIT, {"of_repository": repository_id, "of_sha": sha})
    return tuple(_stored(row) for row in found)


def after(session: Connection, queue_id: int, no: int, limit: int) -> tuple[StoredLanding, ...]:
    """Return evidence of a queue behind a number, the oldest first."""
    binds = {"of_queue": queue_id, "after": no, "at_most": limit}
    return tuple(_stored(row) for row in session.execute(SELECT_AFTER, binds))


def _stored(row: Row[*tuple[object, ...]]) -> StoredLanding:
    return StoredLanding(row.no, row.sha, row.pr, row.envelope, row.at)
