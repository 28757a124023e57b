"""The newest runs of one test.

A test that passed at its only attempt has no row: it is in its upload's set. So the newest uploads
are searched for those in which the test ran.
"""

from collections import defaultdict
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, Row, desc, select

from service.database import bulk
from service.testhealth.reports.results import Outcome
from service.testhealth.store.attempts import PRS, attempts
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.uploads import uploads

UPLOADS_MAX = 300
"""Uploads that are searched: those of a busy day."""

UPLOADS_AT_ONCE = 60


class CaseRun(NamedTuple):
    """A test's result in one upload.

    `attempts` above 1: it was retried there. `headline` is that of the last failed attempt,
    empty without one.
    """

    upload_id: str
    at: datetime
    outcome: Outcome
    attempts: int
    is_quarantined: bool
    headline: str
    branch: str
    prs: tuple[int, ...]
    job: str
    sha: str


class _Tried(NamedTuple):
    outcomes: tuple[Outcome, ...]
    is_quarantined: bool = False
    headline: str = ""


PASSED, SKIPPED = _Tried((Outcome.PASSED,)), _Tried((Outcome.SKIPPED,))


def newest(
    session: Connection, sets: OutcomeSets, repository_id: int, no: int, at_most: int
) -> tuple[CaseRun, ...]:
    """Return the newest runs of a test among the last 300 uploads, newest first."""
    of = uploads.c
    columns = (of.id, of.ran_at, of.branch, of.prs, of.job, of.sha, of.passed, of.skipped)
    rows = session.execute(
        select(*columns)
        .where(of.repository_id == repository_id, of.is_eligible.is_(True))
        .order_by(desc(of.ran_at))
        .limit(UPLOADS_MAX)
    ).all()
    if not rows:
        return ()
    tried = _tried(session, repository_id, no, rows[-1].ran_at)
    case_runs: list[CaseRun] = []
    # Not all at once: of a large repository each set takes megabytes while it is searched.
    for some in bulk.parts(rows, UPLOADS_AT_ONCE):
        keys = {key for row in some for key in (row.passed, row.skipped) if key is not None}
        members = sets.members(session, repository_id, keys, [no])
        for row in some:
            one = tried.get(row.id)
            if one is None and no in members.get(row.passed, ()):
                one = PASSED
            elif one is None and no in members.get(row.skipped, ()):
                one = SKIPPED
            if one is not None:
                case_runs.append(_run(row, one))
        if len(case_runs) >= at_most:
            break
    return tuple(case_runs[:at_most])


def _run(row: Row[*tuple[object, ...]], tried: _Tried) -> CaseRun:
    ran = [each for each in tried.outcomes if each is not Outcome.SKIPPED]
    return CaseRun(
        upload_id=row.id,
        at=row.ran_at,
        outcome=ran[-1] if ran else Outcome.SKIPPED,
        attempts=len(tried.outcomes),
        is_quarantined=tried.is_quarantined,
        headline=tried.headline,
        branch=row.branch or "",
        prs=PRS.decode(row.prs),
        job=row.job,
        sha=row.sha,
    )


def _tried(session: Connection, repository_id: int, no: int, since: datetime) -> dict[str, _Tried]:
    """Return each upload → the stored attempts of the test in it."""
    of = attempts.c
    statement = (
        select(of.upload, of.outcome, of.is_quarantined, of.headline)
        .where(of.repository_id == repository_id, of.no == no)
        .where(of.is_eligible.is_(True), of.ran_at >= since)
        .order_by(of.upload, of.n)
    )
    tried: defaultdict[str, _Tried] = defaultdict(lambda: _Tried(()))
    for upload, outcome, is_quarantined, headline in session.execute(statement):
        before = tried[upload]
        tried[upload] = _Tried(
            (*before.outcomes, Outcome(outcome)),
            before.is_quarantined or is_quarantined,
            headline or before.headline,
        )
    return tried
