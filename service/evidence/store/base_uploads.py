"""Uploads that show which tests a job reports on a target branch.

Uploads of the branch itself, and those of test runs that landed on it: what a test run reports
that did not land says nothing about the branch.
"""

from collections.abc import Sequence, Set
from datetime import datetime

from sqlalchemy import BindParameter, Connection, and_, bindparam, exists, or_, select

from service.database.types import Utc
from service.mergequeue.store.tables_queues import LandingRow, MergeQueueRow, RunRow
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.store.attempts import attempts
from service.testhealth.store.sets import StoredSets
from service.testhealth.store.uploads import UPLOAD, Upload, uploads

UPLOADS_MAX = 300
"""Newest uploads of a job that are looked at: a job may be split into many."""

runs = RunRow.__table__
queues = MergeQueueRow.__table__
landings = LandingRow.__table__

_HERE: BindParameter[int] = bindparam("of_repository")
_BRANCH: BindParameter[str] = bindparam("of_branch")
_JOB: BindParameter[str] = bindparam("of_job")
_SINCE: BindParameter[datetime] = bindparam("since", type_=Utc)

_has_landed = exists().where(
    runs.c.repository_id == uploads.c.repository_id,
    runs.c.branch == uploads.c.branch,
    runs.c.sha == uploads.c.sha,
    queues.c.id == runs.c.queue_id,
    queues.c.branch == _BRANCH,
    landings.c.run == runs.c.id,
    landings.c.state == "landed",
)
_OF_BRANCH = and_(uploads.c.kind == UploadClass.STABLE.value, uploads.c.branch == _BRANCH)
_LANDED = and_(uploads.c.kind == UploadClass.QUEUE.value, _has_landed)
_COMPLETE = (
    uploads.c.repository_id == _HERE,
    uploads.c.is_complete.is_(True),
    uploads.c.is_eligible.is_(True),
)

# Two questions instead of one: each goes through the index in its order and stops early.
SELECT_OF_JOB = tuple(
    select(*UPLOAD.columns)
    .where(*_COMPLETE, uploads.c.job == _JOB, which)
    .order_by(uploads.c.ran_at.desc())
    .limit(UPLOADS_MAX)
    for which in (_OF_BRANCH, _LANDED)
)
SELECT_ANY = select(uploads.c.id).where(*_COMPLETE, or_(_OF_BRANCH, _LANDED))
SELECT_JOBS = (
    select(uploads.c.job)
    .distinct()
    .where(*_COMPLETE, uploads.c.ran_at >= _SINCE, or_(_OF_BRANCH, _LANDED))
)
SELECT_JOBS_OF_RUNS = (
    select(uploads.c.job)
    .distinct()
    .where(*_COMPLETE, uploads.c.run_id.in_(bindparam("of_runs", expanding=True)))
)
SELECT_NUMBERS = (
    select(attempts.c.no)
    .distinct()
    .where(attempts.c.upload.in_(bindparam("of_uploads", expanding=True)))
)


def of_job(session: Connection, repository_id: int, branch: str, job: str) -> tuple[Upload, ...]:
    """Return the newest uploads of a job on a target branch, the newest first."""
    binds = {"of_repository": repository_id, "of_branch": branch, "of_job": job}
    newest = [UPLOAD.value(row) for one in SELECT_OF_JOB for row in session.execute(one, binds)]
    newest.sort(key=lambda upload: (upload.ran_at, upload.digest), reverse=True)
    return tuple(newest[:UPLOADS_MAX])


def are_there(session: Connection, repository_id: int, branch: str, but: Set[str]) -> bool:
    """Return whether any job has reported on the branch, the uploads `but` left out."""
    binds = {"of_repository": repository_id, "of_branch": branch}
    question = SELECT_ANY.limit(len(but) + 1)
    return any(each not in but for each in session.execute(question, binds).scalars())


def jobs_since(
    session: Connection, repository_id: int, branch: str, since: datetime
) -> frozenset[str]:
    """Return the jobs that have reported on the branch since a moment."""
    binds = {"of_repository": repository_id, "of_branch": branch, "since": since}
    return frozenset(session.execute(SELECT_JOBS, binds).scalars())


def jobs_of_runs(session: Connection, repository_id: int, run_ids: Sequence[str]) -> frozenset[str]:
    """Return the jobs that have reported in these CI runs."""
    binds = {"of_repository": repository_id, "of_runs": list(run_ids)}
    return frozenset(session.execute(SELECT_JOBS_OF_RUNS, binds).scalars())


def tests_in(session: Connection, sets: StoredSets, given: Sequence[Upload]) -> set[int]:
    """Return the numbers of all tests that these uploads report."""
    keys = {key for upload in given for key in (upload.passed, upload.skipped) if key is not None}
    tests = set[int]().union(*(sets.numbers(key) for key in keys))
    binds = {"of_uploads": [upload.id for upload in given]}
    tests.update(session.execute(SELECT_NUMBERS, binds).scalars())
    return tests
