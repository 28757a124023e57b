"""Uploads that show which tests a job reports on a target branch.

Uploads of the branch itself, and those of test runs that landed on it: what a test run reports
that did not land says nothing about the branch.
"""

from collections.abc import Iterable, Sequence, Set
from datetime import datetime

from sqlalchemy import BindParameter, Connection, and_, bindparam, exists, or_, select

from service.database import bulk
from service.database.types import Utc
from service.mergequeue.store.tables_queues import LandingRow, MergeQueueRow, RunRow
from service.testhealth.reports.results import Outcome
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.store.attempts import attempts
from service.testhealth.store.sets import StoredSets
from service.testhealth.store.tables_tests import CaseRow
from service.testhealth.store.uploads import UPLOAD, Upload, uploads

UPLOADS_MAX = 300
"""Newest uploads of a job that are looked at: a job may be split into many."""

SIBLINGS_MAX = 1000
"""Uploads of one CI run, or a few, of all their jobs."""

PLACES_AT_ONCE = 500

Place = tuple[str, str]
"""A file, or the class of tests whose reports name no file; the other one is empty."""

runs = RunRow.__table__
queues = MergeQueueRow.__table__
landings = LandingRow.__table__
cases = CaseRow.__table__

_HERE: BindParameter[int] = bindparam("of_repository")
_BRANCH: BindParameter[str] = bindparam("of_branch")
_JOB: BindParameter[str] = bindparam("of_job")
_SINCE: BindParameter[datetime] = bindparam("since", type_=Utc)
_BEFORE: BindParameter[datetime] = bindparam("before", type_=Utc)

_IS_LANDED_RUN = (
    runs.c.repository_id == uploads.c.repository_id,
    runs.c.branch == uploads.c.branch,
    runs.c.sha == uploads.c.sha,
    queues.c.id == runs.c.queue_id,
    queues.c.branch == _BRANCH,
    landings.c.run == runs.c.id,
    landings.c.state == "landed",
)
_OF_BRANCH = and_(uploads.c.kind == UploadClass.STABLE.value, uploads.c.branch == _BRANCH)
_TRUSTED_KINDS = [kind.value for kind in (UploadClass.STABLE, UploadClass.QUEUE, UploadClass.PR)]
_LANDED = and_(uploads.c.kind == UploadClass.QUEUE.value, exists().where(*_IS_LANDED_RUN))
_LANDED_BEFORE = and_(
    uploads.c.kind == UploadClass.QUEUE.value,
    exists().where(*_IS_LANDED_RUN, runs.c.finished_at <= _BEFORE),
)
_COMPLETE = (
    uploads.c.repository_id == _HERE,
    uploads.c.is_complete.is_(True),
    uploads.c.is_eligible.is_(True),
)

# Two questions instead of one: each goes through the index in its order and stops early.
SELECT_OF_JOB = tuple(
    select(*UPLOAD.columns)
    .where(*_COMPLETE, uploads.c.job == _JOB, uploads.c.ran_at <= _BEFORE, which)
    .order_by(uploads.c.ran_at.desc())
    .limit(UPLOADS_MAX)
    for which in (_OF_BRANCH, _LANDED_BEFORE)
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
SELECT_OF_RUNS = (
    select(*UPLOAD.columns)
    .where(*_COMPLETE, uploads.c.run_id.in_(bindparam("of_runs", expanding=True)))
    .where(uploads.c.kind.in_(_TRUSTED_KINDS))
    .order_by(uploads.c.ran_at.desc(), uploads.c.digest)
    .limit(SIBLINGS_MAX)
)
SELECT_ENDED = (
    select(*UPLOAD.columns)
    .where(*_COMPLETE, uploads.c.job == _JOB, uploads.c.ran_at <= _BEFORE)
    .where(uploads.c.kind.in_(_TRUSTED_KINDS))
    .order_by(uploads.c.ran_at.desc(), uploads.c.digest)
    .limit(UPLOADS_MAX)
)
SELECT_OF_PULL_REQUESTS = (
    select(*UPLOAD.columns)
    .where(*_COMPLETE, uploads.c.job == _JOB, uploads.c.kind == UploadClass.PR.value)
    .where(uploads.c.pr_number.in_(bindparam("of_prs", expanding=True)))
    .order_by(uploads.c.ran_at.desc(), uploads.c.digest)
    .limit(UPLOADS_MAX)
)
SELECT_RAN = (
    select(attempts.c.no)
    .distinct()
    .where(attempts.c.upload.in_(bindparam("of_uploads", expanding=True)))
    .where(attempts.c.outcome != Outcome.SKIPPED.value)
)
SELECT_IN_FILES = select(cases.c.no, cases.c.file.label("place")).where(
    cases.c.repository_id == _HERE, cases.c.file.in_(bindparam("of_places", expanding=True))
)
SELECT_IN_CLASSES = select(cases.c.no, cases.c.classname.label("place")).where(
    cases.c.repository_id == _HERE,
    cases.c.file == "",
    cases.c.classname.in_(bindparam("of_places", expanding=True)),
)
SELECT_NUMBERS = (
    select(attempts.c.no)
    .distinct()
    .where(attempts.c.upload.in_(bindparam("of_uploads", expanding=True)))
)


def of_job(
    session: Connection, repository_id: int, branch: str, job: str, before: datetime
) -> tuple[Upload, ...]:
    """Return the newest uploads of a job on a target branch by then, the newest first."""
    binds: dict[str, object] = {"of_repository": repository_id, "of_branch": branch, "of_job": job}
    binds["before"] = before
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


def of_runs(session: Connection, repository_id: int, run_ids: Sequence[str]) -> tuple[Upload, ...]:
    """Return the newest uploads of all jobs of these CI runs, the newest first."""
    binds = {"of_repository": repository_id, "of_runs": list(run_ids)}
    return tuple(map(UPLOAD.value, session.execute(SELECT_OF_RUNS, binds))) if run_ids else ()


def with_exit_code(
    session: Connection, repository_id: int, job: str, before: datetime
) -> tuple[Upload, ...]:
    """Return the newest uploads of a job by then that send an exit code, the newest first."""
    binds = {"of_repository": repository_id, "of_job": job, "before": before}
    newest = map(UPLOAD.value, session.execute(SELECT_ENDED, binds))
    return tuple(each for each in newest if each.account.exit_code is not None)


def of_pull_requests(
    session: Connection, repository_id: int, job: str, prs: Sequence[int]
) -> tuple[Upload, ...]:
    """Return the newest uploads of a job on the heads of these pull requests, the newest first."""
    binds = {"of_repository": repository_id, "of_job": job, "of_prs": list(prs)}
    return tuple(map(UPLOAD.value, session.execute(SELECT_OF_PULL_REQUESTS, binds))) if prs else ()


def tests_at(
    session: Connection, repository_id: int, places: Iterable[Place]
) -> dict[Place, set[int]]:
    """Return the numbers of the tests at each of these places."""
    found: dict[Place, set[int]] = {place: set() for place in places}
    for statement, names, at in (
        (SELECT_IN_FILES, sorted({file for file, _ in found if file}), 0),
        (SELECT_IN_CLASSES, sorted({name for file, name in found if not file}), 1),
    ):
        for some in bulk.parts(names, PLACES_AT_ONCE):
            binds = {"of_repository": repository_id, "of_places": list(some)}
            for row in session.execute(statement, binds):
                found[(row.place, "") if at == 0 else ("", row.place)].add(row.no)
    return found


def ran_in(session: Connection, sets: StoredSets, given: Sequence[Upload]) -> set[int]:
    """Return the numbers of all tests that passed or failed in these uploads."""
    keys = {upload.passed for upload in given if upload.passed is not None}
    tests = set[int]().union(*(sets.numbers(key) for key in keys))
    binds = {"of_uploads": [upload.id for upload in given]}
    tests.update(session.execute(SELECT_RAN, binds).scalars())
    return tests


def tests_in(session: Connection, sets: StoredSets, given: Sequence[Upload]) -> set[int]:
    """Return the numbers of all tests that these uploads report."""
    keys = {key for upload in given for key in (upload.passed, upload.skipped) if key is not None}
    tests = set[int]().union(*(sets.numbers(key) for key in keys))
    binds = {"of_uploads": [upload.id for upload in given]}
    tests.update(session.execute(SELECT_NUMBERS, binds).scalars())
    return tests
