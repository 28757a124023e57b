"""Facts of merge queues about uploads: the run that one is of, and who knows that any come."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, desc, exists, func, select

from service.database.types import Utc
from service.mergequeue.engine.model import Run
from service.mergequeue.operations import naming
from service.mergequeue.store import queues as stored_queues
from service.mergequeue.store import runs as stored_runs
from service.mergequeue.store.tables_queues import MergeQueueRow, RunRow
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.store.uploads import uploads
from service.vocabulary import QueueRef, Sha

runs = RunRow.__table__
queues = MergeQueueRow.__table__

_HERE: BindParameter[int] = bindparam("of_repository")

SELECT_RUN = (
    select(runs.c.queue_id, runs.c.id)
    .where(runs.c.repository_id == _HERE, runs.c.branch == bindparam("of_branch"))
    .order_by(desc(runs.c.no))
    .limit(1)
)
SELECT_RUN_BY_ID = select(runs.c.queue_id, runs.c.id).where(
    runs.c.repository_id == _HERE, runs.c.id == bindparam("of_run")
)
SELECT_ASKED = (
    select(runs.c.id)
    .where(
        runs.c.queue_id == bindparam("of_queue"),
        runs.c.asked_evidence.is_not(None),
        runs.c.finished_at.is_not(None),
    )
    .order_by(desc(runs.c.no))
    .limit(bindparam("at_most"))
)
SELECT_ARRIVED = (
    select(runs.c.id, func.max(uploads.c.received_at).label("arrived_at"))
    .join(
        uploads,
        (uploads.c.repository_id == runs.c.repository_id)
        & (uploads.c.sha == runs.c.sha)
        & (uploads.c.received_at >= runs.c.created_at),
    )
    .where(
        runs.c.id.in_(bindparam("of_ids", expanding=True)),
        uploads.c.kind == UploadClass.QUEUE.value,
        uploads.c.is_eligible.is_(True),
    )
    .group_by(runs.c.id)
)
SELECT_BRANCHES = select(queues.c.branch).where(
    queues.c.repository_id == _HERE, queues.c.deleted.is_(False)
)
SELECT_TESTING = (
    select(runs.c.id)
    .join(queues, queues.c.id == runs.c.queue_id)
    .where(queues.c.repository_id == _HERE, queues.c.deleted.is_(False), runs.c.live.is_(True))
    .limit(1)
)
_SENDS = exists().where(
    uploads.c.repository_id == queues.c.repository_id,
    uploads.c.is_eligible.is_(True),
    uploads.c.ran_at >= bindparam("since", type_=Utc),
)
SELECT_SENDING = select(queues.c.id, queues.c.sends_results, _SENDS.label("sends")).where(
    queues.c.deleted.is_(False)
)
SELECT_SENDING_HERE = SELECT_SENDING.where(queues.c.repository_id == _HERE)


class Uninformed(NamedTuple):
    """A queue that does not know yet whether its repository sends results."""

    queue_id: int
    sends_results: bool


def tested_run(session: Connection, repository_id: int, sha: Sha, branch: str | None) -> Run | None:
    """Return the live test run on this commit, else the newest one on this test branch.

    CI may end before the run knows its commit and its branch. Its branch is named after it.
    """
    ids = _ids_of_run(session, repository_id, sha, branch)
    return None if ids is None else stored_runs.run(session, *ids)


def live_run(session: Connection, repository_id: int, sha: Sha) -> tuple[QueueRef, Run] | None:
    """Return the live test run on exactly this commit, with its queue."""
    for queue_id, run_id in stored_queues.run_of_sha(session, repository_id, sha):
        queue = stored_queues.ref_by_id(session, queue_id)
        run = stored_runs.run(session, queue_id, run_id)
        if queue is not None and run is not None:
            return queue, run
    return None


def tested_target(
    session: Connection, repository_id: int, sha: Sha, branch: str | None
) -> str | None:
    """Return the target branch of that run's queue."""
    ids = _ids_of_run(session, repository_id, sha, branch)
    queue = None if ids is None else stored_queues.ref_by_id(session, ids[0])
    return None if queue is None else queue.branch


def _ids_of_run(
    session: Connection, repository_id: int, sha: Sha, branch: str | None
) -> tuple[int, str] | None:
    live = stored_queues.run_of_sha(session, repository_id, sha)
    if live:
        return live[0]
    row = session.execute(SELECT_RUN, {"of_repository": repository_id, "of_branch": branch}).first()
    being_built = naming.run_id_of(branch or "")
    if row is None and being_built is not None:
        binds = {"of_repository": repository_id, "of_run": being_built}
        row = session.execute(SELECT_RUN_BY_ID, binds).first()
    return None if row is None else (row.queue_id, row.id)


def queue_branches(session: Connection, repository_id: int) -> tuple[str, ...]:
    """Return the branches that have a queue."""
    return tuple(session.execute(SELECT_BRANCHES, {"of_repository": repository_id}).scalars())


def is_testing(session: Connection, repository_id: int) -> bool:
    """Return whether test runs of the repository's queues go on, or wait for machines."""
    return session.execute(SELECT_TESTING, {"of_repository": repository_id}).first() is not None


def runs_with_evidence_asked(session: Connection, queue_id: int, at_most: int) -> tuple[str, ...]:
    """Return the newest ended runs whose failure the queue asked about."""
    asked = session.execute(SELECT_ASKED, {"of_queue": queue_id, "at_most": at_most})
    return tuple(asked.scalars())


def results_arrived(session: Connection, run_ids: Sequence[str]) -> dict[str, datetime]:
    """Return when the last results of each run arrived; runs without any are left out."""
    if not run_ids:
        return {}
    return {
        row.id: row.arrived_at for row in session.execute(SELECT_ARRIVED, {"of_ids": list(run_ids)})
    }


def uninformed_queues(
    session: Connection, since: datetime, repository_id: int | None = None
) -> tuple[Uninformed, ...]:
    """Return queues that do not know yet whether their repository has sent results `since`.

    `repository_id` None: the queues of all repositories.
    """
    question = SELECT_SENDING if repository_id is None else SELECT_SENDING_HERE
    parameters: dict[str, object] = {"since": since}
    if repository_id is not None:
        parameters["of_repository"] = repository_id
    rows = session.execute(question, parameters)
    return tuple(
        Uninformed(row.id, bool(row.sends))
        for row in rows
        if bool(row.sends) is not row.sends_results
    )
