"""The newest runs of one test: what its repository's uploads say of it (FLAKY.md 4).

A passing test leaves no row where it was tried once: it stands in its upload's set. So the
newest uploads are gone through, and those kept in which the test was.
"""

from collections import defaultdict
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, Row, bindparam, desc, select

from service.database.types import Utc
from service.testhealth.reports.results import Outcome
from service.testhealth.store.run_evidence import PRS
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.uploads_rows import attempts, uploads

UPLOADS_MAX = 300
"""Uploads that are gone through: those of a busy day."""

UPLOADS_AT_ONCE = 60

_HERE: BindParameter[int] = bindparam("of_repository")

SELECT_NEWEST = (
    select(
        uploads.c.id,
        uploads.c.ran_at,
        uploads.c.branch,
        uploads.c.prs,
        uploads.c.job,
        uploads.c.sha,
        uploads.c.passed,
        uploads.c.skipped,
    )
    .where(uploads.c.repository_id == _HERE, uploads.c.is_eligible.is_(True))
    .order_by(desc(uploads.c.ran_at))
    .limit(UPLOADS_MAX)
)
SELECT_ATTEMPTS = (
    select(
        attempts.c.upload,
        attempts.c.outcome,
        attempts.c.is_quarantined,
        attempts.c.headline,
    )
    .where(
        attempts.c.repository_id == _HERE,
        attempts.c.no == bindparam("of_number"),
        attempts.c.is_eligible.is_(True),
        attempts.c.ran_at >= bindparam("since", type_=Utc),
    )
    .order_by(attempts.c.upload, attempts.c.n)
)


class CaseRun(NamedTuple):
    """A test's result in one upload.

    `attempts` above 1: it was tried again there. `headline` is that of the last failed attempt,
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
    """The newest runs of a test, newest first, as far as the last 300 uploads know of any."""
    rows = session.execute(SELECT_NEWEST, {"of_repository": repository_id}).all()
    if not rows:
        return ()
    tried = _tried(session, repository_id, no, rows[-1].ran_at)
    found: list[CaseRun] = []
    # Not all at once: of a large repository each set takes megabytes while it is looked at.
    for first in range(0, len(rows), UPLOADS_AT_ONCE):
        some = rows[first : first + UPLOADS_AT_ONCE]
        keys = {key for row in some for key in (row.passed, row.skipped) if key is not None}
        members = sets.members(session, repository_id, keys, [no])
        for row in some:
            one = tried.get(row.id)
            if one is None and no in members.get(row.passed, ()):
                one = PASSED
            elif one is None and no in members.get(row.skipped, ()):
                one = SKIPPED
            if one is not None:
                found.append(_run(row, one))
        if len(found) >= at_most:
            break
    return tuple(found[:at_most])


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
    """Upload → the attempts that are stored of the test."""
    outcomes: defaultdict[str, list[Outcome]] = defaultdict(list)
    shielded: set[str] = set()
    headlines: dict[str, str] = {}
    told = {"of_repository": repository_id, "of_number": no, "since": since}
    for upload, outcome, is_quarantined, headline in session.execute(SELECT_ATTEMPTS, told):
        outcomes[upload].append(Outcome(outcome))
        if is_quarantined:
            shielded.add(upload)
        if headline:
            headlines[upload] = headline
    return {
        upload: _Tried(tuple(each), upload in shielded, headlines.get(upload, ""))
        for upload, each in outcomes.items()
    }
