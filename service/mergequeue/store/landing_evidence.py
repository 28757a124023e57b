"""Signed evidence of landed commits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

from sqlalchemy import Connection, Row, bindparam, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.mergequeue.landing_records import StoredLanding
from service.mergequeue.store.tables_queues import LandingEvidenceRow
from service.vocabulary import QueueRef, Sha

evidence = LandingEvidenceRow.__table__

WAITS = ""
"""In place of the key's id: the statement is stored without an envelope until it is signed."""

# What is stored already stays: a landing that is recorded again happened once.
INSERT = upsert(evidence).on_conflict_do_nothing()
_ROW = (
    evidence.c.no,
    evidence.c.sha,
    evidence.c.pr,
    evidence.c.envelope,
    evidence.c.key_id,
    evidence.c.at,
)
SELECT_COMMIT = (
    select(*_ROW)
    .where(
        evidence.c.repository_id == bindparam("of_repository"),
        evidence.c.sha == bindparam("of_sha"),
        evidence.c.key_id != WAITS,
    )
    .order_by(evidence.c.no)
)
SELECT_PRS = select(evidence.c.sha, evidence.c.pr).where(
    evidence.c.repository_id == bindparam("of_repository"),
    evidence.c.sha.in_(bindparam("of_shas", expanding=True)),
)
SELECT_AFTER = (
    select(*_ROW)
    .where(evidence.c.queue_id == bindparam("of_queue"), evidence.c.no > bindparam("after"))
    .order_by(evidence.c.no)
    .limit(bindparam("at_most"))
)
SELECT_WAITING = (
    select(*_ROW)
    .where(evidence.c.key_id == WAITS)
    .order_by(evidence.c.no)
    .limit(bindparam("at_most"))
)
SELECT_IS_WAITING = select(evidence.c.no).where(
    evidence.c.repository_id == bindparam("of_repository"),
    evidence.c.sha == bindparam("of_sha"),
    evidence.c.key_id == WAITS,
)
SIGN = (
    update(evidence)
    .where(evidence.c.no == bindparam("of_no"), evidence.c.key_id == WAITS)
    .values(envelope=bindparam("signed"), key_id=bindparam("by_key"))
)


@dataclass(frozen=True, slots=True)
class SignedLanding:
    """The evidence of one landed pull request; with the key WAITS a statement alone."""

    sha: Sha
    pr: int
    envelope: str
    key_id: str
    at: datetime


def prs_of(session: Connection, repository_id: int, shas: Sequence[Sha]) -> dict[Sha, int]:
    """Return the pull requests that landed by these commits, of those that are recorded."""
    binds = {"of_repository": repository_id, "of_shas": list(shas)}
    return {Sha(row.sha): row.pr for row in session.execute(SELECT_PRS, binds)}


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
    """Return evidence of a queue behind a number, the oldest first.

    It ends before what waits to be signed: who continues from there later misses nothing.
    """
    binds = {"of_queue": queue_id, "after": no, "at_most": limit}
    rows = takewhile(lambda row: row.key_id != WAITS, session.execute(SELECT_AFTER, binds))
    return tuple(_stored(row) for row in rows)


def waiting(session: Connection, at_most: int) -> tuple[StoredLanding, ...]:
    """Return statements that wait to be signed, the oldest first."""
    return tuple(_stored(row) for row in session.execute(SELECT_WAITING, {"at_most": at_most}))


def is_waiting(session: Connection, repository_id: int, sha: str) -> bool:
    """Return whether evidence of a commit waits to be signed."""
    binds = {"of_repository": repository_id, "of_sha": sha.lower()}
    return session.execute(SELECT_IS_WAITING, binds).first() is not None


def put_signed(session: Connection, no: int, envelope: str, key_id: str) -> None:
    """Store the envelope of a statement that has waited."""
    session.execute(SIGN, {"of_no": no, "signed": envelope, "by_key": key_id})


def _stored(row: Row[*tuple[object, ...]]) -> StoredLanding:
    return StoredLanding(row.no, row.sha, row.pr, row.envelope, row.at)
