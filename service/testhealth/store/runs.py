"""The newest runs of tests.

A test that passed at its only attempt has no row: it is in its upload's set. So the newest uploads
are searched for those in which the test ran.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
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
    session: Connection, sets: OutcomeSets, repository_id: int, nos: Sequence[int], at_most: int
) -> Mapping[int, Sequence[CaseRun]]:
    """Return the newest runs of each test among the last 300 uploads, newest first."""
    case_runs: dict[int, list[CaseRun]] = {no: [] for no in nos}
    of = uploads.c
    columns = (of.id, of.ran_at, of.branch, of.prs, of.job, of.sha, of.passed, of.skipped)
    rows = session.execute(
        select(*columns)
        .where(of.repository_id == repository_id, of.is_eligible.is_(True))
        .order_by(desc(of.ran_at))
        .limit(UPLOADS_MAX)
    ).all()
    if not rows or not nos:
        return case_runs
    tried = _tried(session, repository_id, nos, rows[-1].ran_at)
    # Not all at once: of a large repository each set takes megabytes while it is searched.
    for some in bulk.parts(rows, UPLOADS_AT_ONCE):
        missing = [no for no in nos if len(case_runs[no]) < at_most]
        if not missing:
            break
        keys = {key for row in some for key in (row.passed, row.skipped) if key is not None}
        members = sets.members(session, repository_id, keys, missing)
        for row in some:
            ran = dict.fromkeys(members.get(row.skipped, ()), SKIPPED)
            ran |= dict.fromkeys(members.get(row.passed, ()), PASSED)
            ran |= tried.get(row.id, {})
            for no, one in ran.items():
                if len(case_runs[no]) < at_most:
                    case_runs[no].append(_run(row, one))
    return case_runs


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


def _tried(
    session: Connection, repository_id: int, nos: Sequence[int], since: datetime
) -> Mapping[str, Mapping[int, _Tried]]:
    """Return each upload → the stored attempts of each of the tests in it."""
    of = attempts.c
    statement = (
        select(of.upload, of.no, of.outcome, of.is_quarantined, of.headline)
        .where(of.repository_id == repository_id, bulk.among(of.no, "of_numbers"))
        .where(of.is_eligible.is_(True), of.ran_at >= since)
        .order_by(of.upload, of.no, of.n)
    )
    tried: defaultdict[str, dict[int, _Tried]] = defaultdict(dict)
    rows = session.execute(statement, {"of_numbers": nos})
    for upload, no, outcome, is_quarantined, headline in rows:
        before = tried[upload].get(no, _Tried(()))
        tried[upload][no] = _Tried(
            (*before.outcomes, Outcome(outcome)),
            before.is_quarantined or is_quarantined,
            headline or before.headline,
        )
    return tried
