"""Landings: intended, permitted and read back."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    BindParameter,
    Connection,
    Select,
    bindparam,
    insert,
    literal_column,
    select,
    update,
)

from service.database.codec import RowCodec
from service.mergequeue.engine.model import LandMode
from service.mergequeue.engine.outputs import Land
from service.mergequeue.landing_records import LandingRecord, LandingState
from service.mergequeue.store.rows import queues
from service.mergequeue.store.tables_queues import IS_LANDED, IS_OPEN_PERMIT, LandingRow
from service.vocabulary import QueueRef, Sha

landings = LandingRow.__table__
other = landings.alias("other")

LANDING = RowCodec(LandingRecord, landings, keys={"org_id", "repository_id"})

_SELECT = select(*LANDING.columns).order_by(landings.c.id)
_QUEUE: BindParameter[int] = bindparam("of_queue")

SELECT_LANDED_PRS = (
    select(landings.c.pr)
    .where(landings.c.run == bindparam("of_run"), IS_LANDED)
    .order_by(landings.c.id)
)
SELECT_ADVANCED = (
    select(landings.c.id)
    .where(
        landings.c.run == bindparam("of_run"),
        landings.c.mode == LandMode.CAS.value,
        IS_LANDED,
    )
    .limit(1)
)
SELECT_OPEN_PERMITS = _SELECT.where(landings.c.queue_id == _QUEUE, IS_OPEN_PERMIT)

SELECT_LANDED_HEADS = select(landings.c.pr, landings.c.head).where(
    landings.c.repository_id == bindparam("of_repository"),
    landings.c.pr.in_(bindparam("of_prs", expanding=True)),
    IS_LANDED,
)

INSERT = insert(landings).values(
    org_id=select(queues.c.org_id).where(queues.c.id == _QUEUE).scalar_subquery(),
    repository_id=select(queues.c.repository_id).where(queues.c.id == _QUEUE).scalar_subquery(),
    queue_id=_QUEUE,
    state=LandingState.INTENDED.value,
    **{
        name: bindparam(name)
        for name in (
            "run",
            "number",
            "position",
            "pr",
            "entry",
            "head",
            "mode",
            "expected_parent",
            "expected_tree",
            "tested_tree",
        )
    },
)
# From these a new permit may be taken: each retry takes one (docs/design/landing.md 3).
PERMITTABLE = (LandingState.INTENDED, LandingState.PERMITTED, LandingState.UNKNOWN)

# A landing by compare-and-swap moves all its positions at once, under one permit.
PERMIT = (
    update(landings)
    .where(
        landings.c.id == bindparam("of_id"),
        landings.c.state.in_([state.value for state in PERMITTABLE]),
        ~select(other.c.id)
        .where(
            other.c.queue_id == landings.c.queue_id,
            other.c.number != landings.c.number,
            other.c.state.in_([literal_column("'permitted'"), literal_column("'unknown'")]),
        )
        .exists(),
    )
    .values(state=LandingState.PERMITTED.value, permit_until=bindparam("until"))
)


@dataclass(frozen=True, slots=True)
class LandingOutcome:
    """The result of a landing, with what was read back."""

    state: LandingState
    sha: Sha | None = None
    tree: Sha | None = None
    evidence: str | None = None


def intend(session: Connection, queue_id: int, land: Land) -> None:
    """Store a row for each position to land, in order.

    The parent expected of a later position is the tested commit before it; by the merge call
    the provider makes another one, which is compared by its tree.
    """
    parents = [land.expected_tip.sha, *(step.commit for step in land.steps)]
    session.execute(
        INSERT,
        [
            {
                "of_queue": queue_id,
                "run": land.run,
                "number": land.number,
                "position": step.position,
                "pr": step.pr,
                "entry": step.entry,
                "head": step.head,
                "mode": land.mode.value,
                "expected_parent": parent,
                "expected_tree": step.tree,
                "tested_tree": step.tested_tree,
            }
            for step, parent in zip(land.steps, parents, strict=False)
        ],
    )


def landings_of_run(session: Connection, run_id: str) -> tuple[LandingRecord, ...]:
    """Return all landings of a run, in the order they were meant."""
    return _records(session, _SELECT.where(landings.c.run == run_id))


def landed_prs(session: Connection, run_id: str) -> tuple[int, ...]:
    """Return the pull requests that have landed by a run, in order."""
    found = session.execute(SELECT_LANDED_PRS, {"of_run": run_id}).scalars()
    return tuple(dict.fromkeys(found))


def heads_brought(
    session: Connection, queue: QueueRef, prs: Collection[int]
) -> frozenset[tuple[int, Sha]]:
    """Return which heads of these pull requests have landed, or may have, by a landing of ours."""
    binds = {"of_repository": queue.repository_id, "of_prs": sorted(prs)}
    found = session.execute(SELECT_LANDED_HEADS, binds)
    maybe = ((row.pr, row.head) for row in open_permits(session, queue.id) if row.pr in prs)
    return frozenset([*((row.pr, Sha(row.head)) for row in found), *maybe])


def has_advanced(session: Connection, run_id: str) -> bool:
    """Return whether a run has landed by moving the target, which deletes its test branch too."""
    return session.execute(SELECT_ADVANCED, {"of_run": run_id}).first() is not None


def open_permits(session: Connection, queue_id: int) -> tuple[LandingRecord, ...]:
    """Return positions that may be landing now: permitted ones, and those not read back yet.

    All of one landing (docs/design/landing.md 3).
    """
    return _records(session, SELECT_OPEN_PERMITS, {"of_queue": queue_id})


def permit(session: Connection, landing_id: int, until: datetime) -> bool:
    """Permit the landing until then; False if another one of the queue is open or it has ended."""
    return session.execute(PERMIT, {"of_id": landing_id, "until": until}).rowcount == 1


def settle(session: Connection, landing_id: int, outcome: LandingOutcome) -> None:
    """Write down how it ended; this closes its permit."""
    session.execute(
        update(landings)
        .where(landings.c.id == landing_id)
        .values(
            state=outcome.state.value,
            landed_sha=outcome.sha,
            landed_tree=outcome.tree,
            evidence=outcome.evidence,
        )
    )


def _records(
    session: Connection,
    statement: Select[*tuple[object, ...]],
    binds: Mapping[str, object] | None = None,
) -> tuple[LandingRecord, ...]:
    return tuple(LANDING.value(row) for row in session.execute(statement, binds or {}))
