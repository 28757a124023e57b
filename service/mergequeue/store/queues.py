"""Queues as values: create, find, load, and save their difference.

The rows of entries and runs that have left the value are read by `runs.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache

from sqlalchemy import (
    BindParameter,
    Connection,
    Row,
    Select,
    Update,
    bindparam,
    desc,
    func,
    insert,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError

from service.database.tables_tenants import DeploymentRow, RepositoryRow
from service.database.types import Id
from service.errors import Conflict, NotFound, Stale
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import (
    HoldPlaced,
    HoldReleased,
    ModeChanged,
    QueueConfigured,
    QueueDeleted,
    QueueStateChanged,
    Step,
)
from service.mergequeue.store import changes, target_sets
from service.mergequeue.store.rows import (
    CHECKS,
    ENTRIES,
    GREEN,
    MEMBERS,
    QUEUE,
    RUNS,
    RunQuestion,
    entries,
    entries_of,
    greens,
    queues,
    runs,
    runs_found,
)
from service.vocabulary import QueueRef, RepoRef, Sha

OF_THE_QUEUE = (
    QueueConfigured,
    QueueStateChanged,
    ModeChanged,
    HoldPlaced,
    HoldReleased,
    QueueDeleted,
)
"""Events that change the queue's own answer, not its entries and runs: they raise `revision`."""

FIRST_EPOCH = 1
GREENS_MAX = 1000
"""Passed trees a value holds (docs/design/engine.md 6)."""

repositories = RepositoryRow.__table__
deployments = DeploymentRow.__table__

_QUEUE: BindParameter[int] = bindparam("of_queue")
_LIVE_RUN = (runs.c.queue_id == _QUEUE) & runs.c.live.is_(True)

SELECT_QUEUE = select(*QUEUE.columns).where(queues.c.id == _QUEUE)
SELECT_ENTRIES = ENTRIES.where(entries.c.queue_id == _QUEUE, entries.c.live.is_(True))
SELECT_RUNS = RunQuestion(RUNS.where(_LIVE_RUN), MEMBERS.where(_LIVE_RUN), CHECKS.where(_LIVE_RUN))
SELECT_GREENS = (
    select(*GREEN.columns, greens.c.key)
    .where(greens.c.queue_id == _QUEUE)
    .order_by(desc(greens.c.at), greens.c.key)
    .limit(GREENS_MAX)
)
_IS_THERE = queues.c.deleted.is_(False)
SELECT_HEAD = select(queues.c.version, queues.c.epoch).where(queues.c.id == _QUEUE, _IS_THERE)
# NO KEY UPDATE: rows that only refer to the queue may be written beside a turn.
LOCK_HEAD = SELECT_HEAD.with_for_update(key_share=True)

INSERT_QUEUE = insert(queues)
_IS_OURS = (
    (queues.c.id == _QUEUE)
    & (queues.c.version == bindparam("of_version"))
    & (queues.c.epoch == bindparam("of_epoch"))
)
UPDATE_OURS = update(queues).where(_IS_OURS)

SELECT_REFS = select(
    queues.c.id,
    queues.c.org_id,
    queues.c.repository_id,
    queues.c.branch,
    repositories.c.host,
    repositories.c.owner,
    repositories.c.name,
).join(repositories, repositories.c.id == queues.c.repository_id)
# In the order of lists, behind a place in it.
SELECT_REFS_AFTER = (
    SELECT_REFS.where(
        queues.c.deleted.is_(False),
        # Implied by the comparison of pairs, but lets the database use an index.
        repositories.c.id >= bindparam("after_repository"),
        tuple_(repositories.c.id, queues.c.branch)
        > tuple_(bindparam("after_repository", type_=Id), bindparam("after_branch")),
    )
    .order_by(repositories.c.id, queues.c.branch)
    .limit(bindparam("at_most"))
)
SELECT_REF_BY_ID = SELECT_REFS.where(queues.c.id == _QUEUE)
SELECT_ALL_REFS = SELECT_REFS.where(_IS_THERE).order_by(queues.c.id)
SELECT_REFS_OF_REPOSITORY = SELECT_REFS.where(
    queues.c.repository_id == bindparam("of_repository"), _IS_THERE
).order_by(queues.c.branch)
SELECT_NEXT_WAKE = select(func.min(queues.c.wake_at, type_=queues.c.wake_at.type)).where(
    queues.c.wake_at.is_not(None), _IS_THERE
)
SELECT_REF = SELECT_REFS.where(
    queues.c.repository_id == bindparam("of_repository"),
    queues.c.branch == bindparam("of_branch"),
    queues.c.org_id == bindparam("of_org"),
    queues.c.deleted.is_(False),
)
SELECT_DUE = (
    select(queues.c.id)
    .where(
        queues.c.wake_at.is_not(None),
        queues.c.wake_at <= bindparam("now"),
        queues.c.deleted.is_(False),
    )
    .order_by(queues.c.wake_at, queues.c.id)
)
POSTPONE = (
    update(queues)
    .where(queues.c.id == bindparam("of_queue"), _IS_THERE)
    .values(wake_at=bindparam("until"))
)
SELECT_LIVE = (
    select(entries.c.queue_id)
    .where(entries.c.live.is_(True))
    .distinct()
    .order_by(entries.c.queue_id)
)
SELECT_RUNS_OF_SHAS = (
    select(runs.c.queue_id, runs.c.id, runs.c.sha)
    .where(
        runs.c.repository_id == bindparam("of_repository"),
        runs.c.sha.in_(bindparam("of_shas", expanding=True)),
        runs.c.live.is_(True),
    )
    .order_by(runs.c.no)
)


@dataclass(frozen=True, slots=True)
class Head:
    """The stored version of a queue, and the epoch that may write the next."""

    version: int
    epoch: int


def deployment_id(session: Connection) -> str:
    """Return the id of this database: a random UUID, created when it was first opened."""
    found: str = session.execute(select(deployments.c.uuid)).scalar_one()
    return found


def create(session: Connection, org_id: int, repository_id: int, queue: MergeQueue) -> MergeQueue:
    """Store a new queue without entries; the value with its id, at version and revision 1.

    Raises Conflict(queue_exists).
    """
    row = QUEUE.row(replace(queue, revision=1, version=1)) | {
        "org_id": org_id,
        "repository_id": repository_id,
        "epoch": FIRST_EPOCH,
        "wake_at": None,
        "deleted_at": None,
    }
    del row["id"]
    try:
        queue_id = session.execute(INSERT_QUEUE.returning(queues.c.id), row).scalar_one()
    except IntegrityError as twice:
        raise Conflict(
            f'Branch "{queue.branch}" has a queue already.', code="queue_exists"
        ) from twice
    return replace(queue, id=queue_id, revision=1, version=1)


def queue_ref(session: Connection, org_id: int, repository_id: int, branch: str) -> QueueRef | None:
    """Return the queue of a branch, unless deleted or another organization's."""
    refs = _refs(
        session,
        SELECT_REF,
        {"of_org": org_id, "of_repository": repository_id, "of_branch": branch},
    )
    return refs[0] if refs else None


def ref_by_id(session: Connection, queue_id: int) -> QueueRef | None:
    """Return one queue, also when deleted."""
    refs = _refs(session, SELECT_REF_BY_ID, {"of_queue": queue_id})
    return refs[0] if refs else None


def queues_of(session: Connection, repository_id: int) -> tuple[QueueRef, ...]:
    """Return a repository's queues that are not deleted, by branch."""
    return _refs(session, SELECT_REFS_OF_REPOSITORY, {"of_repository": repository_id})


def all_queues(session: Connection) -> tuple[QueueRef, ...]:
    """Return every queue that is not deleted, by id."""
    return _refs(session, SELECT_ALL_REFS, {})


def _refs(
    session: Connection, statement: Select[*tuple[object, ...]], binds: Mapping[str, object]
) -> tuple[QueueRef, ...]:
    return tuple(map(ref_of, session.execute(statement, binds)))


def ref_of(row: Row[*tuple[object, ...]]) -> QueueRef:
    """Return the queue that a row of `SELECT_REFS`, or of a statement made of it, names."""
    repo = RepoRef(row.host, row.owner, row.name)
    return QueueRef(row.id, row.org_id, row.repository_id, repo, row.branch)


def head_of(session: Connection, queue_id: int, *, lock: bool = False) -> Head | None:
    """Return the stored version and epoch, None if the queue is deleted.

    `lock` keeps other turns out until the commit.
    """
    statement = LOCK_HEAD if lock else SELECT_HEAD
    row = session.execute(statement, {"of_queue": queue_id}).first()
    return None if row is None else Head(row.version, row.epoch)


def load(session: Connection, queue_id: int) -> MergeQueue:
    """Return the live value, also of a deleted queue.

    Entries and runs are in the order they were made. Raises NotFound(queue_not_found).
    """
    binds = {"of_queue": queue_id}
    row = session.execute(SELECT_QUEUE, binds).first()
    if row is None:
        raise NotFound("This queue does not exist.", code="queue_not_found")
    passed = session.execute(SELECT_GREENS, binds).all()
    held = target_sets.at_hand(session, (row.landed, row.kept_move))
    queue = QUEUE.value(
        row,
        {
            "entries": {entry.pr: entry for entry in entries_of(session, SELECT_ENTRIES, binds)},
            "runs": {run.id: run for run in runs_found(session, SELECT_RUNS, binds)},
            "greens": {row.key: GREEN.value(row) for row in reversed(passed)},
        },
    )
    del held
    return queue


def save(
    session: Connection, before: MergeQueue, step: Step, epoch: int = FIRST_EPOCH
) -> MergeQueue:
    """Write the difference between `before` and the step; return the next value.

    The version grows when anything of the value differs, the revision when an event tells of
    the queue itself; `wake_at` is written in any case.
    Raises Stale when the stored version or epoch is another than expected, and
    InvariantBroken(E0) when an entry or run left the value without being finished.
    """
    after = step.queue
    if any(isinstance(each.event, OF_THE_QUEUE) for each in step.events):
        after = replace(after, revision=before.revision + 1)
    changed = changes.between(before, step)
    row = QUEUE.changes(before, after)
    if row or changed.any:
        after = replace(after, version=before.version + 1)
        row["version"] = after.version
    row["wake_at"] = step.wake_at
    binds = {"of_queue": before.id, "of_version": before.version, "of_epoch": epoch}
    written = session.execute(_update_of(*row), binds | row)
    if written.rowcount != 1:
        raise Stale(f"queue {before.id} is not at version {before.version} any more")
    target_sets.keep(session, changes.targets_of_queue(before, after))
    changes.write(session, before.id, changed)
    return after


@cache
def _update_of(*names: str) -> Update:
    """Return the statement that changes these columns of our queue; few sets of them occur."""
    return UPDATE_OURS.values({name: bindparam(name) for name in names})


def due(session: Connection, now: datetime) -> tuple[int, ...]:
    """Return ids of queues whose time to be woken has come, the longest waiting first."""
    return tuple(session.execute(SELECT_DUE, {"now": now}).scalars())


def next_wake(session: Connection) -> datetime | None:
    """Return the next wake-up time of a queue, None if there is none."""
    at: datetime | None = session.execute(SELECT_NEXT_WAKE).scalar_one()
    return at


def postpone(session: Connection, queue_id: int, until: datetime) -> None:
    """Wake a queue later than it has asked for."""
    session.execute(POSTPONE, {"of_queue": queue_id, "until": until})


def live_queues(session: Connection) -> tuple[int, ...]:
    """Return ids of queues that hold an entry which is not final."""
    return tuple(session.execute(SELECT_LIVE).scalars())


def run_of_sha(session: Connection, repository_id: int, sha: Sha) -> tuple[tuple[int, str], ...]:
    """(queue id, run id) of the live runs on exactly this commit."""
    return tuple(runs_of_shas(session, repository_id, [sha]).get(sha, ()))


def runs_of_shas(
    session: Connection, repository_id: int, shas: Sequence[Sha]
) -> dict[Sha, list[tuple[int, str]]]:
    """The same of several commits, without those that have none."""
    found: dict[Sha, list[tuple[int, str]]] = {}
    binds = {"of_repository": repository_id, "of_shas": shas}
    for row in session.execute(SELECT_RUNS_OF_SHAS, binds):
        found.setdefault(row.sha, []).append((row.queue_id, row.id))
    return found


def mark_deleted(session: Connection, queue_id: int, at: datetime) -> None:
    """Free the branch for another queue; the rows stay."""
    session.execute(
        update(queues)
        .where(queues.c.id == queue_id)
        .values(deleted=True, deleted_at=func.coalesce(queues.c.deleted_at, at), wake_at=None)
    )


def rename_branch(session: Connection, queue_id: int, new: str) -> None:
    """Follow a renamed branch: a change of the value like any other."""
    session.execute(
        update(queues)
        .where(queues.c.id == queue_id)
        .values(branch=new, version=queues.c.version + 1)
    )
