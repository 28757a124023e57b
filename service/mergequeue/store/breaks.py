"""Checks that are red on a target branch, and the newest commit that was verified there."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import BindParameter, Connection, Row, and_, bindparam, desc, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.codec import JsonCodec
from service.mergequeue.breaks.search import Break, StoredBreak, VerifiedCommit
from service.mergequeue.store.tables_breaks import TargetBreakRow, TargetGreenRow
from service.mergequeue.store.tables_queues import IS_LANDED, LandingRow
from service.vocabulary import QueueRef, Sha

breaks = TargetBreakRow.__table__
greens = TargetGreenRow.__table__
landings = LandingRow.__table__
former = landings.alias("former")

REVERTS_MAX = 200
"""Newest breaks whose reverts are known as such: of months."""

STATE: JsonCodec[Break] = JsonCodec(Break)

_COLUMNS = (breaks.c.queue_id, breaks.c.state, breaks.c.opened_at, breaks.c.ended_at)
_QUEUE: BindParameter[int] = bindparam("of_queue")
_IS_OPEN = breaks.c.is_open.is_(True)
SELECT_ONE = select(*_COLUMNS).where(breaks.c.id == bindparam("of_id"))
SELECT_OPEN = select(*_COLUMNS).where(breaks.c.queue_id == _QUEUE, _IS_OPEN).order_by(breaks.c.no)
SELECT_NEWEST = (
    select(*_COLUMNS)
    .where(breaks.c.queue_id == _QUEUE)
    .order_by(desc(breaks.c.no))
    .limit(bindparam("at_most"))
)
# Another process may have seen the same red check: one of them claims it.
CLAIM = upsert(breaks).on_conflict_do_nothing().returning(breaks.c.no)
SAVE = (
    update(breaks)
    .where(breaks.c.id == bindparam("of_id"))
    .values(state=bindparam("now_state"), is_open=bindparam("now_open"), ended_at=bindparam("end"))
)
# What is expected of a later position is the tested commit before it, which may not be the landed.
SELECT_LANDED = (
    select(
        landings.c.landed_sha,
        landings.c.pr,
        func.coalesce(former.c.landed_sha, landings.c.expected_parent).label("parent"),
    )
    .outerjoin(
        former,
        and_(
            former.c.run == landings.c.run,
            former.c.number == landings.c.number,
            former.c.position == landings.c.position - 1,
        ),
    )
    .where(
        landings.c.repository_id == bindparam("of_repository"),
        landings.c.landed_sha.is_not(None),
        landings.c.landed_sha.in_(bindparam("of_shas", expanding=True)),
        landings.c.queue_id == _QUEUE,
    )
)
SELECT_BROKEN = select(breaks.c.queue_id).where(_IS_OPEN).distinct()
SELECT_LANDED_AS = (
    select(landings.c.landed_sha)
    .where(
        landings.c.repository_id == bindparam("of_repository"),
        landings.c.pr == bindparam("of_pr"),
        IS_LANDED,
    )
    .limit(1)
)
SELECT_GREEN = select(greens.c.sha, greens.c.at).where(greens.c.queue_id == _QUEUE)
_PUT = upsert(greens)
PUT_GREEN = _PUT.on_conflict_do_update(
    index_elements=["queue_id"], set_={"sha": _PUT.excluded.sha, "at": _PUT.excluded.at}
)


def find(session: Connection, break_id: str) -> StoredBreak | None:
    """Return a break; None if there is none with this id."""
    row = session.execute(SELECT_ONE, {"of_id": break_id}).first()
    return None if row is None else _stored(row)


def open_breaks(session: Connection, queue_id: int) -> tuple[StoredBreak, ...]:
    """Return the open breaks of a queue's target, the oldest first."""
    return tuple(map(_stored, session.execute(SELECT_OPEN, {"of_queue": queue_id})))


def broken_queues(session: Connection) -> frozenset[int]:
    """Return the queues whose targets have open breaks."""
    return frozenset(session.execute(SELECT_BROKEN).scalars())


def newest(session: Connection, queue_id: int, at_most: int) -> tuple[StoredBreak, ...]:
    """Return the newest breaks of a queue's target, open and ended, the newest first."""
    binds = {"of_queue": queue_id, "at_most": at_most}
    return tuple(map(_stored, session.execute(SELECT_NEWEST, binds)))


def claim(session: Connection, queue: QueueRef, one: Break, now: datetime) -> bool:
    """Store a new break; False if one of the same check and queue is open."""
    row = {
        "id": one.id,
        "org_id": queue.org_id,
        "queue_id": queue.id,
        "name": one.check.name,
        "is_open": True,
        "opened_at": now,
        "ended_at": None,
        "state": STATE.encode(one),
    }
    return session.execute(CLAIM, row).first() is not None


def save(session: Connection, one: Break, now: datetime) -> None:
    """Store a changed break, which ends now if it is not open any more."""
    end = None if one.is_open else now
    state = STATE.encode(one)
    session.execute(
        SAVE, {"of_id": one.id, "now_state": state, "now_open": one.is_open, "end": end}
    )


@dataclass(frozen=True, slots=True)
class LandedCommit:
    """The pull request that the queue landed, and the target's tip before that."""

    pr: int
    parent: Sha


def landed(session: Connection, queue: QueueRef, shas: Sequence[Sha]) -> dict[Sha, LandedCommit]:
    """Return what the queue landed with each of these commits, where it did."""
    binds = {
        "of_repository": queue.repository_id,
        "of_queue": queue.id,
        "of_shas": list(shas),
    }
    rows = session.execute(SELECT_LANDED, binds)
    return {row.landed_sha: LandedCommit(row.pr, row.parent) for row in rows}


def reverts(session: Connection, queue_id: int) -> frozenset[int]:
    """Return the pull requests that were opened as reverts for the newest breaks."""
    known = (each.value.revert for each in newest(session, queue_id, REVERTS_MAX))
    return frozenset(each.number for each in known if each is not None and each.number is not None)


def landed_as(session: Connection, repository_id: int, pr: int) -> Sha | None:
    """Return the commit with which a pull request landed; None if it has not."""
    binds = {"of_repository": repository_id, "of_pr": pr}
    sha: Sha | None = session.execute(SELECT_LANDED_AS, binds).scalar()
    return sha


def verified(session: Connection, queue_id: int) -> VerifiedCommit | None:
    """Return the newest verified commit of a queue's target; None if none was seen."""
    row = session.execute(SELECT_GREEN, {"of_queue": queue_id}).first()
    return None if row is None else VerifiedCommit(row.sha, row.at)


def set_verified(session: Connection, queue: QueueRef, sha: Sha, now: datetime) -> None:
    """Store the newest verified commit of a queue's target."""
    session.execute(
        PUT_GREEN, {"queue_id": queue.id, "org_id": queue.org_id, "sha": sha, "at": now}
    )


def _stored(row: Row[*tuple[object, ...]]) -> StoredBreak:
    return StoredBreak(row.queue_id, STATE.decode(row.state), row.opened_at, row.ended_at)
